// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Waiting remembers which owners wait for a cache, so that the event of their write brings them back
// at once. A controller whose handlers pass over the events of its own writes uses it: without, a
// sync that was held back would wait for a timer. The zero value is ready; its methods may be called
// concurrently.
type Waiting struct {
	// mu guards the following field.
	mu     sync.Mutex
	owners map[types.NamespacedName]struct{}
}

// EnsureReady is the Guard's; the owner waits from before the question until the answer is yes.
// The event that makes the answer yes therefore finds the owner waiting, however it interleaves.
func (w *Waiting) EnsureReady(guard *Guard, owner types.NamespacedName) error {
	w.mu.Lock()
	if w.owners == nil {
		w.owners = map[types.NamespacedName]struct{}{}
	}
	w.owners[owner] = struct{}{}
	w.mu.Unlock()
	if err := guard.EnsureReady(owner); err != nil {
		return err
	}
	w.Done(owner)
	return nil
}

// Done says whether the owner waits, and ends its waiting.
func (w *Waiting) Done(owner types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.owners[owner]
	delete(w.owners, owner)
	return ok
}
