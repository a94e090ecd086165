// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// maxWatchPause is the longest a standby that may not watch the lease waits before it tries again. Meanwhile it polls.
const maxWatchPause = time.Minute

// watch starts to follow the lock, if that has not happened yet. Only a candidate that has to wait needs it, so one
// that is alone never asks.
func (r *run) watch(ctx context.Context) {
	if r.news != nil {
		return
	}
	news := make(chan lookup, 1)
	r.news = news
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.follow(ctx, news)
	}()
	r.unwatch = func() {
		cancel()
		<-done
		r.news, r.unwatch = nil, func() {}
	}
}

// follow puts what the watch sees into news, the latest in place of what was not fetched yet, until ctx is done.
func (r *run) follow(ctx context.Context, news chan lookup) {
	pause := r.config.RetryPeriod
	for ctx.Err() == nil {
		start := r.config.Clock.Now()
		err := r.config.Lock.Watch(ctx, func(lock *resourcelock.Observation) {
			select {
			case <-news:
			default:
			}
			news <- lookup{lock}
		})
		if ctx.Err() != nil {
			return
		}
		// A stream that lived longer than the pause ended in the ordinary way: go on at once.
		if err == nil && r.config.Clock.Since(start) > pause {
			pause = r.config.RetryPeriod
			continue
		}
		r.logger.V(2).Info("Not watching the lease, polling it", "err", err, "retryAfter", pause)
		timer := r.config.Clock.NewTimer(utilwait.Jitter(pause, JitterFactor))
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
		pause = min(2*pause, maxWatchPause)
	}
}
