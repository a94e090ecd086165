// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"errors"
	"testing"
)

func TestWaiting(t *testing.T) {
	g, podCache, _, _ := newTestGuard("5", "9")
	var w Waiting
	if err := w.EnsureReady(g, owner); err != nil || w.Done(owner) {
		t.Errorf("an owner that has written nothing waits (%v)", err)
	}
	g.WroteAt(owner, "u1", pods, "6")
	var stale *StaleError
	if err := w.EnsureReady(g, owner); !errors.As(err, &stale) {
		t.Fatalf("got %v, want a StaleError", err)
	}
	podCache.version = "6"
	if !w.Done(owner) {
		t.Error("the event of the write does not find the owner waiting")
	}
	if w.Done(owner) {
		t.Error("the owner is brought back twice")
	}
	if err := w.EnsureReady(g, owner); err != nil || w.Done(owner) {
		t.Errorf("the owner waits although the cache has its write (%v)", err)
	}
}
