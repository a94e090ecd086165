// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/history"
)

// terminatingMemory is how long a set is not asked to create Pods again after its
// namespace refused one for being in deletion, which is a state without return.
const terminatingMemory = 5 * time.Minute

// memory is what is remembered of the sets between two syncs: what would be costly to
// work out again, and what has been told. It is lost with the process.
type memory struct {
	// mu guards sets. What a setMemory holds is for the set's own sync only, and the
	// worker runs one sync per set at a time.
	mu   sync.Mutex
	sets map[types.NamespacedName]*setMemory
}

type setMemory struct {
	uid types.UID

	// generation is the one of the set that patch was made of.
	generation int64
	patch      []byte
	// same is the newest revision that was found to hold the template of this
	// generation although its bytes differ.
	same types.UID

	// blocked is the blockage that was told last.
	blocked string
	// conflicts are the claims with another controller that were told.
	conflicts map[string]struct{}
	// namespaceTerminating is when the namespace refused a Pod for being in deletion.
	namespaceTerminating time.Time
}

func newMemory() *memory {
	return &memory{sets: map[types.NamespacedName]*setMemory{}}
}

// of returns the memory of the set; that of another UID under its name is forgotten.
func (m *memory) of(set types.NamespacedName, uid types.UID) *setMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sets[set]
	if !ok || s.uid != uid {
		s = &setMemory{uid: uid}
		m.sets[set] = s
	}
	return s
}

// forget drops what is remembered of the set if it has this UID, or any when uid is empty.
func (m *memory) forget(set types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sets[set]; ok && (uid == "" || s.uid == uid) {
		delete(m.sets, set)
	}
}

// templatePatch returns the data of a revision of the set as it is now.
func (m *setMemory) templatePatch(set *apps.StatefulSet) ([]byte, error) {
	// A generation of 0 is that of an object that no API server has seen.
	if m.patch != nil && m.generation == set.Generation && set.Generation != 0 {
		return m.patch, nil
	}
	patch, err := history.TemplatePatch(&set.Spec.Template)
	if err != nil {
		return nil, err
	}
	m.generation, m.patch, m.same = set.Generation, patch, ""
	return patch, nil
}
