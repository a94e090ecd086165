// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Barrier lets whoever has written an object wait until the cache shows it. A Store is one.
//
// Versions are ordered within one history. When the server's history is another one (etcd was
// restored from a backup), the epoch changes: a version of an earlier epoch may never be reached,
// and whoever waits for one must read anew instead.
type Barrier interface {
	// HasReached says whether the cache shows everything up to the version. It is true for what
	// cannot be compared: a version that is no number, or a cache that has not seen any.
	HasReached(version string) bool
	// WaitFor waits until HasReached, and fails when ctx is done or the epoch changes.
	WaitFor(ctx context.Context, version string) error
	// Epoch counts the times that the versions went back.
	Epoch() uint64
}

// ErrHistoryLost ends the waiting for a version that may never come.
var ErrHistoryLost = fmt.Errorf("the server's history was replaced by an older one")

// barrier is the waiting side of a store. The zero value has no waiters.
type barrier struct {
	epoch atomic.Uint64

	// mu guards the following fields.
	mu      sync.Mutex
	waiting map[*waiter]struct{}
	// any mirrors len(waiting) > 0, so that a writer need not lock when nobody waits.
	any atomic.Bool
}

type waiter struct {
	version string
	done    chan error // holds one
}

// reached wakes those who wait for this version or an older one.
func (b *barrier) reached(version string) {
	if !b.any.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiting {
		if !newer(w.version, version) {
			b.wakeLocked(w, nil)
		}
	}
}

// lost begins another epoch.
func (b *barrier) lost() {
	b.epoch.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiting {
		b.wakeLocked(w, ErrHistoryLost)
	}
}

func (b *barrier) wakeLocked(w *waiter, err error) {
	delete(b.waiting, w)
	b.any.Store(len(b.waiting) > 0)
	w.done <- err
}

func (b *barrier) wait(version string) *waiter {
	w := &waiter{version: version, done: make(chan error, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[*waiter]struct{}{}
	}
	b.waiting[w] = struct{}{}
	b.any.Store(true)
	return w
}

func (b *barrier) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, w)
	b.any.Store(len(b.waiting) > 0)
}

var _ Barrier = (*Store)(nil)

// HasReached says whether the store shows everything up to the version.
func (s *Store) HasReached(version string) bool {
	return !newer(version, s.snapshot().version)
}

// WaitFor waits until the store shows everything up to the version.
func (s *Store) WaitFor(ctx context.Context, version string) error {
	if s.HasReached(version) {
		return nil
	}
	w := s.waiters.wait(version)
	defer s.waiters.leave(w)
	if s.HasReached(version) { // It may have come before we were in line.
		return nil
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the cache to reach resource version %s, it is at %s: %w",
			version, s.LastStoreSyncResourceVersion(), context.Cause(ctx))
	}
}

// Epoch counts the times that the versions went back.
func (s *Store) Epoch() uint64 { return s.waiters.epoch.Load() }

// newer says whether version a is newer than b. What cannot be compared is not.
func newer(a, b string) bool {
	cmp, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && cmp > 0
}
