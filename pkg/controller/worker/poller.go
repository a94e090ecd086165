// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Poller looks for something that nobody announces, and rests while there is nothing to look for.
// Create it with NewPoller.
type Poller struct {
	period time.Duration
	look   func(ctx context.Context) (more bool)
	clock  clock.WithTicker
	wake   chan struct{}
}

// NewPoller returns a Poller that, once woken, calls look at once and then every period for as long
// as it returns true.
func NewPoller(c clock.WithTicker, period time.Duration, look func(ctx context.Context) (more bool)) *Poller {
	return &Poller{period: period, look: look, clock: c, wake: make(chan struct{}, 1)}
}

// Wake says that there is something to look for. It never blocks, and may come before Run.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run looks whenever it is woken, until ctx is done.
func (p *Poller) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.poll(ctx)
		}
	}
}

func (p *Poller) poll(ctx context.Context) {
	ticker := p.clock.NewTicker(p.period)
	defer ticker.Stop()
	for p.look(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
