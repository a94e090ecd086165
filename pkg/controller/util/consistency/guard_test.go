// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	replicaSets = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	owner       = types.NamespacedName{Namespace: "ns", Name: "web"}
)

// fakeCache is a cache that shows the version it is set to.
type fakeCache struct{ version string }

func (c *fakeCache) LastStoreSyncResourceVersion() string { return c.version }

func newTestGuard(podVersion, setVersion string) (*Guard, *fakeCache, *fakeCache, *clocktesting.FakePassiveClock) {
	podCache, setCache := &fakeCache{podVersion}, &fakeCache{setVersion}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return NewGuard(map[schema.GroupResource]Reader{pods: podCache, replicaSets: setCache}, WithClock(clock)), podCache, setCache, clock
}

func TestEnsureReady(t *testing.T) {
	tests := []struct {
		name    string
		pods    string
		sets    string
		arrange func(g *Guard)
		stale   *StaleError
	}{
		{name: "nothing written", pods: "5", sets: "5", arrange: func(*Guard) {}},
		{
			name: "cache is older", pods: "5", sets: "9",
			arrange: func(g *Guard) { g.WroteAt(owner, "u1", pods, "6") },
			stale:   &StaleError{ReadRV: "5", WroteRV: "6", GroupResource: pods},
		},
		{
			name: "cache has just that version", pods: "6", sets: "9",
			arrange: func(g *Guard) { g.WroteAt(owner, "u1", pods, "6") },
		},
		{
			name: "versions compare as integers, not as strings", pods: "9", sets: "9",
			arrange: func(g *Guard) { g.WroteAt(owner, "u1", pods, "10") },
			stale:   &StaleError{ReadRV: "9", WroteRV: "10", GroupResource: pods},
		},
		{
			name: "the newest write counts, in whatever order they are told", pods: "7", sets: "9",
			arrange: func(g *Guard) {
				g.WroteAt(owner, "u1", pods, "8")
				g.WroteAt(owner, "u1", pods, "6")
			},
			stale: &StaleError{ReadRV: "7", WroteRV: "8", GroupResource: pods},
		},
		{
			name: "one stale resource of two", pods: "9", sets: "5",
			arrange: func(g *Guard) {
				g.WroteAt(owner, "u1", pods, "8")
				g.WroteAt(owner, "u1", replicaSets, "8")
			},
			stale: &StaleError{ReadRV: "5", WroteRV: "8", GroupResource: replicaSets},
		},
		{
			name: "a new owner of the same name forgets its predecessor", pods: "5", sets: "5",
			arrange: func(g *Guard) {
				g.WroteAt(owner, "u1", pods, "8")
				g.WroteAt(owner, "u2", replicaSets, "5")
			},
		},
		{
			name: "another owner is not held back", pods: "5", sets: "5",
			arrange: func(g *Guard) {
				g.WroteAt(types.NamespacedName{Namespace: "ns", Name: "other"}, "u1", pods, "8")
			},
		},
		{
			name: "cleared", pods: "5", sets: "5",
			arrange: func(g *Guard) {
				g.WroteAt(owner, "u1", pods, "8")
				g.Clear(owner, "")
			},
		},
		{
			name: "clearing another UID changes nothing", pods: "5", sets: "5",
			arrange: func(g *Guard) {
				g.WroteAt(owner, "u1", pods, "8")
				g.Clear(owner, "u0")
			},
			stale: &StaleError{ReadRV: "5", WroteRV: "8", GroupResource: pods},
		},
		{
			name: "a cache that has seen no version counts as ready", pods: "", sets: "",
			arrange: func(g *Guard) { g.WroteAt(owner, "u1", pods, "8") },
		},
		{
			name: "a resource without a cache holds nothing back", pods: "5", sets: "5",
			arrange: func(g *Guard) { g.WroteAt(owner, "u1", schema.GroupResource{Resource: "events"}, "8") },
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g, _, _, _ := newTestGuard(tc.pods, tc.sets)
			tc.arrange(g)
			err := g.EnsureReady(owner)
			if tc.stale == nil {
				if err != nil {
					t.Fatalf("EnsureReady: %v, want nil", err)
				}
				return
			}
			var stale *StaleError
			if !errors.As(err, &stale) || *stale != *tc.stale {
				t.Fatalf("EnsureReady: %v, want %v", err, tc.stale)
			}
		})
	}
}

func TestReadyOwnerIsForgotten(t *testing.T) {
	g, podCache, _, _ := newTestGuard("5", "5")
	g.WroteAt(owner, "u1", pods, "6")
	podCache.version = "6"
	if err := g.EnsureReady(owner); err != nil {
		t.Fatal(err)
	}
	if len(g.owners) != 0 {
		t.Errorf("the guard still holds %d owners after all writes were seen", len(g.owners))
	}
}

func TestGuardCannotBeStuck(t *testing.T) {
	t.Run("a version that goes back resets the guard", func(t *testing.T) {
		g, podCache, _, _ := newTestGuard("500", "1")
		if err := g.EnsureReady(owner); err != nil {
			t.Fatal(err)
		}
		g.WroteAt(owner, "u1", pods, "600")
		if g.EnsureReady(owner) == nil {
			t.Fatal("ready although the cache is older than the write")
		}
		podCache.version = "40" // etcd restored from a backup: version 600 may never come
		if err := g.EnsureReady(owner); err != nil {
			t.Fatalf("held back by a version of another history: %v", err)
		}
	})
	t.Run("a record ages out", func(t *testing.T) {
		g, _, _, clock := newTestGuard("5", "5")
		g.WroteAt(owner, "u1", pods, "6")
		clock.SetTime(clock.Now().Add(MaxAge - time.Second))
		if g.EnsureReady(owner) == nil {
			t.Fatal("ready before MaxAge")
		}
		clock.SetTime(clock.Now().Add(time.Second))
		if err := g.EnsureReady(owner); err != nil {
			t.Fatalf("held back after MaxAge: %v", err)
		}
	})
	t.Run("a deletion ages out", func(t *testing.T) {
		g, _, _, clock := newTestGuard("5", "5")
		g.Deleting(owner, "u1", "pod")
		clock.SetTime(clock.Now().Add(MaxAge))
		if g.IsDeleting(owner, "pod") {
			t.Fatal("still deleting after MaxAge")
		}
	})
}

// fakeBarrier is a cache that knows its epoch.
type fakeBarrier struct {
	fakeCache
	epoch uint64
}

func (c *fakeBarrier) HasReached(version string) bool { return !Newer(version, c.version) }
func (c *fakeBarrier) Epoch() uint64                  { return c.epoch }

// A cache that knows of another history is believed, even though its version does not show it.
func TestBarrier(t *testing.T) {
	cache := &fakeBarrier{fakeCache: fakeCache{"500"}, epoch: 3}
	g := NewGuard(map[schema.GroupResource]Reader{pods: cache})
	g.WroteAt(owner, "u1", pods, "600")
	var stale *StaleError
	if err := g.EnsureReady(owner); !errors.As(err, &stale) || stale.ReadRV != "500" {
		t.Fatalf("EnsureReady: %v, want a StaleError at 500", err)
	}
	cache.version, cache.epoch = "550", 4
	if err := g.EnsureReady(owner); err != nil {
		t.Fatalf("held back by a version of another history: %v", err)
	}
	g.WroteAt(owner, "u1", pods, "551")
	if g.EnsureReady(owner) == nil {
		t.Fatal("ready although the cache is older than the write of this epoch")
	}
	cache.version = "551"
	if err := g.EnsureReady(owner); err != nil || len(g.owners) != 0 {
		t.Fatalf("EnsureReady: %v, %d owners are remembered", err, len(g.owners))
	}
}

func TestDeletions(t *testing.T) {
	g, _, _, _ := newTestGuard("5", "5")
	for _, uid := range []types.UID{"a", "b", "c"} {
		g.Deleting(owner, "u1", uid)
	}
	g.DeleteFailed(owner, "b")
	g.Observe(owner, sets.New[types.UID]("a", "b")) // the cache still shows a and b as active, c is gone
	want := map[types.UID]bool{"a": true, "b": false, "c": false}
	for uid, deleting := range want {
		if got := g.IsDeleting(owner, uid); got != deleting {
			t.Errorf("IsDeleting(%s) = %v, want %v", uid, got, deleting)
		}
	}
	g.Observe(owner, nil)
	if len(g.owners) != 0 {
		t.Errorf("the guard still holds %d owners after all deletions were seen", len(g.owners))
	}
}

// TestGuardProperty: whatever the order of writes and of what the cache shows, a sync that is let
// through sees every write, unless the cache went back.
func TestGuardProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, podCache, _, _ := newTestGuard("1", "1")
		newestWrite, shown := 0, 1
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, fmt.Sprintf("write-%d", i)) {
				rv := rapid.IntRange(1, 100).Draw(t, "rv")
				newestWrite = max(newestWrite, rv)
				g.WroteAt(owner, "u1", pods, strconv.Itoa(rv))
			} else {
				shown = rapid.IntRange(shown, 100).Draw(t, "shown")
				podCache.version = strconv.Itoa(shown)
			}
			ready := g.EnsureReady(owner) == nil
			if want := shown >= newestWrite; ready != want {
				t.Fatalf("cache at %d, newest write %d: ready = %v", shown, newestWrite, ready)
			}
		}
	})
}
