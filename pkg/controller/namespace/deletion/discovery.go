// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

const (
	// discoveryMaxAge is how old a complete discovery may be for a round to work from. A namespace
	// is let go only after one that began within the round.
	discoveryMaxAge = 30 * time.Second
	// failedDiscoveryMaxAge is the same for an incomplete one, which should soon be better.
	failedDiscoveryMaxAge = 5 * time.Second
)

var errNothingDiscovered = errors.New("discovery found no resources: a namespace cannot be deleted before its content is known")

// snapshot is the result of one discovery.
type snapshot struct {
	// began is when the discovery was asked for: what existed then is in it. ended is when it came.
	began, ended time.Time
	// targets are sorted; they are what was found even when there are errors.
	targets []target
	// discoveryErr says that kinds may be missing, parseErr that a group version was malformed.
	discoveryErr, parseErr error
}

func (s *snapshot) complete() bool { return s.discoveryErr == nil && s.parseErr == nil }

func (s *snapshot) maxAge() time.Duration {
	if s.complete() {
		return discoveryMaxAge
	}
	return failedDiscoveryMaxAge
}

// discoverer shares discovery between rounds that run at the same time or shortly after each other.
type discoverer struct {
	discover func() ([]*metav1.APIResourceList, error)
	clock    clock.PassiveClock

	// mu guards the following fields.
	mu      sync.Mutex
	latest  *snapshot
	running chan struct{} // closed when the discovery that runs has ended; nil when none does
}

// recent returns a snapshot that is not too old to work from.
func (d *discoverer) recent(ctx context.Context) (*snapshot, error) {
	return d.get(ctx, func(s *snapshot) bool { return d.clock.Since(s.ended) <= s.maxAge() })
}

// since returns a snapshot that began at t or later.
func (d *discoverer) since(ctx context.Context, t time.Time) (*snapshot, error) {
	return d.get(ctx, func(s *snapshot) bool { return !s.began.Before(t) })
}

// get returns the latest snapshot if it is acceptable. Otherwise it runs a discovery, or waits for
// the one that runs and decides anew. The error is ctx's; discovery's own is in the snapshot.
func (d *discoverer) get(ctx context.Context, acceptable func(*snapshot) bool) (*snapshot, error) {
	for {
		d.mu.Lock()
		if d.latest != nil && acceptable(d.latest) {
			defer d.mu.Unlock()
			return d.latest, nil
		}
		running := d.running
		if running == nil {
			done := make(chan struct{})
			d.running = done
			d.mu.Unlock()
			return d.run(done), nil
		}
		d.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// run discovers and publishes the result. Should discovery panic, those who wait take over.
func (d *discoverer) run(done chan struct{}) *snapshot {
	var s *snapshot
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.running = nil
		close(done)
		if s != nil {
			d.latest = s
		}
	}()
	began := d.clock.Now()
	lists, err := d.discover()
	targets, parseErr := planTargets(lists)
	if err == nil && parseErr == nil && len(targets) == 0 {
		err = errNothingDiscovered
	}
	s = &snapshot{began: began, ended: d.clock.Now(), targets: targets, discoveryErr: err, parseErr: parseErr}
	return s
}
