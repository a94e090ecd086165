// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestBacklog pushes random changes while snapshots are walked over, with few distinct hashes, and
// takes in small steps: what is told must fit to what was told before, and end in what is so.
func TestBacklog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.Uint64(), 1, 6).Draw(t, "hashes")
		hash := func(key int) uint64 { return hashes[key%len(hashes)] }
		var (
			world   trie[entry]
			state   = map[string]*corev1.Pod{}
			version int
			log     backlog
			view    = map[string]any{}
			resyncs = 0
		)
		set := func(key int) {
			version++
			pod := newPod("", fmt.Sprint(key), fmt.Sprint(version))
			c := change{hash: hash(key), key: pod.Name, new: pod}
			if old := state[pod.Name]; old != nil {
				c.old = old
			}
			e := world.edit()
			e.set(c.hash, c.key, entry{obj: pod})
			world = e.done()
			state[c.key] = pod
			log.push(c)
		}
		remove := func(key int) {
			name := fmt.Sprint(key)
			old := state[name]
			if old == nil {
				return
			}
			e := world.edit()
			e.remove(hash(key), name)
			world = e.done()
			delete(state, name)
			log.push(change{hash: hash(key), key: name, old: old, final: old})
		}
		for key := range rapid.IntRange(0, 20).Draw(t, "at first") {
			set(key)
		}
		log = backlog{} // Before the handler was there.
		log.begin(initialWalk, &snapshot{objects: world})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 25).Draw(t, "key")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				set(key)
			case 3, 4:
				remove(key)
			case 5:
				tell(t, view, log.take(nil, rapid.IntRange(1, 4).Draw(t, "n")), &log)
			case 6:
				if log.synced() {
					log.begin(resyncWalk, &snapshot{objects: world})
					resyncs++
				}
			}
			if depth := log.depth(); depth < 0 || depth > 60 || log.empty() != (depth == 0) && log.walk.kind == noWalk {
				t.Fatalf("depth %d, empty: %t", depth, log.empty())
			}
		}
		for !log.empty() {
			tell(t, view, log.take(nil, 3), &log)
		}
		if !log.synced() || len(log.records) != 0 || log.depth() != 0 {
			t.Fatalf("synced %t, %d records, depth %d", log.synced(), len(log.records), log.depth())
		}
		if !maps.EqualFunc(view, state, func(a any, b *corev1.Pod) bool { return a == b }) {
			t.Fatalf("the handler believes in %v, want %v", view, state)
		}
	})
}

func tell(t *rapid.T, view map[string]any, batch []notification, log *backlog) {
	for _, n := range batch {
		name := n.obj.(*corev1.Pod).Name
		switch known := view[name]; n.kind {
		case added:
			if known != nil {
				t.Fatalf("%s was added twice", name)
			}
			view[name] = n.obj
		case updated:
			if known == nil || known != n.old {
				t.Fatalf("%s was updated from what was not known", name)
			}
			view[name] = n.obj
		case deleted:
			if known == nil {
				t.Fatalf("%s was deleted, but not known", name)
			}
			delete(view, name)
		}
	}
	if log.synced() && log.initial != 0 {
		t.Fatal("synced too early")
	}
}

// A backlog that a storm has grown gives its memory back.
func TestBacklogShrinks(t *testing.T) {
	var log backlog
	for n := range 5 * keepCapacity {
		log.push(change{key: fmt.Sprint(n), new: newPod("", fmt.Sprint(n), "1")})
	}
	if log.depth() != 5*keepCapacity {
		t.Errorf("depth %d", log.depth())
	}
	var batch []notification
	for !log.empty() {
		batch = log.take(batch, 10)
		if cap(log.order) > 11*keepCapacity {
			t.Fatalf("%d places are held for %d records", cap(log.order), len(log.order)-log.head)
		}
	}
	if len(batch) != 5*keepCapacity || cap(log.order) > keepCapacity {
		t.Errorf("%d notifications, %d places are held", len(batch), cap(log.order))
	}
	if !slices.IsSortedFunc(batch, func(a, b notification) int {
		return len(a.obj.(*corev1.Pod).Name) - len(b.obj.(*corev1.Pod).Name)
	}) {
		t.Error("not in order")
	}
}

// The deletion of another object than the one that is known is no last state of that one.
func TestRemoveOfAnother(t *testing.T) {
	known, other := newPod("x", "a", "1"), newPod("x", "a", "9")
	known.UID, other.UID = "1", "2"
	tx := begin(&snapshot{}, nil)
	tx.put("x/a", known, 10)
	tx.remove("x/a", other)
	tx.remove("x/a", other)
	if len(tx.changes) != 2 || tx.changes[1].final != any(tombstone("x/a", known)) {
		t.Errorf("changes %+v", tx.changes)
	}
	if next := tx.commit(); next.bytes != 0 || next.objects.size != 0 {
		t.Errorf("%d bytes in %d objects are left", next.bytes, next.objects.size)
	}
}
