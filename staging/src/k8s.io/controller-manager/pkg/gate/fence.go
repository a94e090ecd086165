// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrFenced is why a write was not sent: this process does not lead, or may not any more. Retrying does not help
// before the fence opens. errors.Is finds it in what a client returns.
var ErrFenced = errors.New("write refused: not the leader")

// Fence says whether writes may be sent. A leader election opens it up to the deadline of each renewal, so that it
// closes by itself when renewals stop. The zero value is closed.
type Fence struct {
	clock clock.PassiveClock

	// mu guards the following fields.
	mu sync.Mutex
	// until is when the fence closes.
	until time.Time
	// forever says that until does not matter.
	forever bool
	// over says that the fence was closed for good.
	over bool
}

// NewFence makes a closed fence. Times given to OpenUntil are readings of c; nil stands for the real clock.
func NewFence(c clock.PassiveClock) *Fence {
	return &Fence{clock: c}
}

// OpenForever opens the fence until Close is called: for a process that runs without leader election.
func (f *Fence) OpenForever() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forever = true
}

// OpenUntil opens the fence up to t. It never shortens what an earlier call has allowed.
func (f *Fence) OpenUntil(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.After(f.until) {
		f.until = t
	}
}

// Close closes the fence; nothing opens it again.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// Err returns nil while the fence is open, and otherwise an ErrFenced that says why it is not.
func (f *Fence) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over:
		return fmt.Errorf("%w: the lease was lost or given back", ErrFenced)
	case f.forever:
		return nil
	case f.until.IsZero():
		return fmt.Errorf("%w: the lease has not been won yet", ErrFenced)
	case !f.now().Before(f.until):
		return fmt.Errorf("%w: the lease was not renewed before its deadline", ErrFenced)
	default:
		return nil
	}
}

func (f *Fence) now() time.Time {
	if f.clock == nil {
		return time.Now()
	}
	return f.clock.Now()
}
