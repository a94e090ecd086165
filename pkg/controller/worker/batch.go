// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"
	"time"
)

// Batcher spaces the syncs of a key that changes often: the first change is synced at once, and
// all that follow within a period after that are synced together when the period is over. Its
// methods may be called concurrently.
type Batcher[K comparable] struct {
	worker *Worker[K]
	period time.Duration

	// mu guards the following field.
	mu sync.Mutex
	// last is when each key was, or is to be, synced last. A key that has been quiet for a period
	// may be in it or not.
	last map[K]time.Time
}

// NewBatcher returns a Batcher in front of a worker. With a period of 0 or less every change is
// enqueued at once.
func NewBatcher[K comparable](w *Worker[K], period time.Duration) *Batcher[K] {
	return &Batcher[K]{worker: w, period: period, last: map[K]time.Time{}}
}

// Add enqueues a key because of a change.
func (b *Batcher[K]) Add(key K) {
	if wait := b.wait(key); wait > 0 {
		b.worker.AddAfter(key, wait)
		return
	}
	b.worker.Add(key)
}

// Forget drops what is remembered of a key that is gone.
func (b *Batcher[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, key)
}

// wait returns how long the change must wait.
func (b *Batcher[K]) wait(key K) time.Duration {
	if b.period <= 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.worker.clock.Now()
	last, ok := b.last[key]
	switch {
	case !ok || now.Sub(last) >= b.period:
		b.last[key] = now
	case !last.After(now):
		b.last[key] = last.Add(b.period)
	}
	return b.last[key].Sub(now)
}
