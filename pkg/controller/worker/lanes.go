// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lanes is the storage under the workqueue: a lane of live keys that is always served first, and a
// lane of keys from the initial list. Both are first in, first out. It implements workqueue.Queue.
//
// A key that moves from the initial to the live lane leaves its old place behind; the place is
// skipped when it is reached, which keeps every operation O(1).
type lanes[K comparable] struct {
	clock clock.PassiveClock

	// mu guards the following fields: the workqueue calls under its own lock, but markInitial and
	// the record's reader do not hold that.
	mu      sync.Mutex
	marked  map[K]struct{}  // keys whose next Push or Touch comes from AddInitial
	waiting map[K]waitingAt // every key in a lane
	live    []entry[K]
	initial []entry[K]
	pushes  uint64
	// most is how many keys have waited at once since the maps were made.
	most int
}

// manyKeys is how many keys may leave their room behind: a map does not give back what it has grown
// to, and the first list of a big cluster would be paid for ever.
const manyKeys = 1 << 10

// waitingAt says where and since when a key waits.
type waitingAt struct {
	id      uint64 // the push that counts; other entries of the key are leftovers
	since   time.Time
	initial bool
}

type entry[K comparable] struct {
	key K
	id  uint64
}

func newLanes[K comparable](c clock.PassiveClock) *lanes[K] {
	return &lanes[K]{clock: c, marked: map[K]struct{}{}, waiting: map[K]waitingAt{}}
}

// markInitial says that the key's next Push comes from the initial list.
func (l *lanes[K]) markInitial(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked[key] = struct{}{}
}

// unmarkInitial says that a live event came after all.
func (l *lanes[K]) unmarkInitial(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.marked, key)
}

// Push adds a key that does not wait yet.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pushLocked(key, l.takeMarkLocked(key), l.clock.Now())
}

// Touch is called when a waiting key is added again: a live event promotes a key of the initial list.
func (l *lanes[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	initial := l.takeMarkLocked(key)
	at, ok := l.waiting[key]
	if !ok || initial || !at.initial {
		return
	}
	l.pushLocked(key, false, at.since)
}

// Len returns how many keys wait.
func (l *lanes[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Pop takes the next key. The workqueue calls it only when Len is not 0.
func (l *lanes[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lane := range []*[]entry[K]{&l.live, &l.initial} {
		for len(*lane) > 0 {
			e := (*lane)[0]
			(*lane)[0] = entry[K]{}
			*lane = (*lane)[1:]
			if at, ok := l.waiting[e.key]; ok && at.id == e.id {
				delete(l.waiting, e.key)
				l.shrinkLocked()
				return e.key
			}
		}
		*lane = nil
	}
	var none K
	return none
}

// depth returns how many keys wait, how many of them from the initial list, and since when the
// oldest live one waits (zero when none does).
func (l *lanes[K]) depth() (all, initial int, oldest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.waiting {
		if at.initial {
			initial++
			continue
		}
		if oldest.IsZero() || at.since.Before(oldest) {
			oldest = at.since
		}
	}
	return len(l.waiting), initial, oldest
}

func (l *lanes[K]) pushLocked(key K, initial bool, since time.Time) {
	l.pushes++
	l.waiting[key] = waitingAt{id: l.pushes, since: since, initial: initial}
	l.most = max(l.most, len(l.waiting))
	e := entry[K]{key: key, id: l.pushes}
	if initial {
		l.initial = append(l.initial, e)
		return
	}
	l.live = append(l.live, e)
}

// shrinkLocked gives back the room of many keys once none waits.
func (l *lanes[K]) shrinkLocked() {
	if len(l.waiting) > 0 || l.most < manyKeys {
		return
	}
	marked := make(map[K]struct{}, len(l.marked)) // maps.Clone would keep the room
	maps.Copy(marked, l.marked)
	l.waiting, l.marked, l.most = map[K]waitingAt{}, marked, 0
	l.live, l.initial = nil, nil // places that were left behind
}

func (l *lanes[K]) takeMarkLocked(key K) bool {
	_, ok := l.marked[key]
	delete(l.marked, key)
	return ok
}
