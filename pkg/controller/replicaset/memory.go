// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// settleDelay is how long a request of unknown outcome may still be on its way in the
	// API server, after which a live list tells what became of it.
	settleDelay = time.Second
	// terminatingMemory is how long a set is not asked to create Pods again after its
	// namespace refused one for being in deletion, which is a state without return.
	terminatingMemory = 5 * time.Minute
)

// memory is what the controller must remember of a set between two syncs and cannot
// read from a cache. It is lost with the process, and then not needed: the first list
// of the next one is younger than every request of this one.
type memory struct {
	// mu guards the following fields.
	mu   sync.Mutex
	sets map[types.NamespacedName]*setMemory
}

// setMemory is the memory of one set. Only the set's own sync uses it, and the worker
// runs one sync per set at a time.
type setMemory struct {
	uid types.UID
	// unsettled is when a request last ended without telling what became of it.
	unsettled time.Time
	// undead are the Pods whose deletion may or may not have happened.
	undead map[types.UID]struct{}
	// namespaceTerminating is when the namespace refused a Pod for being in deletion.
	namespaceTerminating time.Time
}

func newMemory() *memory {
	return &memory{sets: map[types.NamespacedName]*setMemory{}}
}

// of returns the memory of the set, a copy; that of another UID under its name is nobody's.
func (m *memory) of(set types.NamespacedName, uid types.UID) setMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sets[set]; ok && s.uid == uid {
		return *s
	}
	return setMemory{uid: uid}
}

// forget drops what is remembered of the set if it has this UID, or any when uid is empty.
func (m *memory) forget(set types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sets[set]; ok && (uid == "" || s.uid == uid) {
		delete(m.sets, set)
	}
}

// update changes the memory of the set by change.
func (m *memory) update(set types.NamespacedName, uid types.UID, change func(*setMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sets[set]
	if !ok || s.uid != uid {
		s = &setMemory{uid: uid}
		m.sets[set] = s
	}
	change(s)
	if s.unsettled.IsZero() && s.namespaceTerminating.IsZero() {
		delete(m.sets, set)
	}
}

// createUnknown notes a creation that may or may not have happened.
func (m *memory) createUnknown(set types.NamespacedName, uid types.UID, now time.Time) {
	m.update(set, uid, func(s *setMemory) { s.unsettled = now })
}

// deleteUnknown notes a deletion that may or may not have happened.
func (m *memory) deleteUnknown(set types.NamespacedName, uid, pod types.UID, now time.Time) {
	m.update(set, uid, func(s *setMemory) {
		s.unsettled = now
		undead := map[types.UID]struct{}{pod: {}}
		for u := range s.undead { // a copy: of() gives the old map away
			undead[u] = struct{}{}
		}
		s.undead = undead
	})
}

// settled forgets the requests of unknown outcome.
func (m *memory) settled(set types.NamespacedName, uid types.UID) {
	m.update(set, uid, func(s *setMemory) { s.unsettled, s.undead = time.Time{}, nil })
}

// refusedByNamespace notes that the set's namespace is in deletion.
func (m *memory) refusedByNamespace(set types.NamespacedName, uid types.UID, now time.Time) {
	m.update(set, uid, func(s *setMemory) { s.namespaceTerminating = now })
}
