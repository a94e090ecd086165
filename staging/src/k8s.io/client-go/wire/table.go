// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"hash/maphash"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Table is where equal parts of objects meet. All sources of a process should have the same one:
// the labels of a ReplicaSet are then also those of its pods' endpoints.
//
// It keeps nothing alive: a part lives as long as an object that has it. Its methods may be called
// concurrently.
type Table struct {
	strings     *interner
	origins     *sharer[metav1.ObjectMeta]
	labels      *sharer[map[string]string]
	annotations *sharer[map[string]string]
	podSpecs    *sharer[corev1.PodSpec]
	affinities  *sharer[*corev1.Affinity]
	podStatuses *sharer[corev1.PodStatus]
	hosts       *sharer[corev1.PodStatus]
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{
		strings:     newInterner(maxInterned),
		origins:     newSharer[metav1.ObjectMeta](),
		labels:      newSharer[map[string]string](),
		annotations: newSharer[map[string]string](),
		podSpecs:    newSharer[corev1.PodSpec](),
		affinities:  newSharer[*corev1.Affinity](),
		podStatuses: newSharer[corev1.PodStatus](),
		hosts:       newSharer[corev1.PodStatus](),
	}
}

// anchor is what an object holds of a part that it shares: it keeps the part in the table.
type anchor struct {
	// key is the encoded part.
	key string
}

// part is a decoded part and the bytes that it was decoded from.
type part[P any] struct {
	anchor
	val P
}

// sharer finds parts of one type by their bytes.
type sharer[P any] struct {
	seed maphash.Seed

	mu sync.Mutex // guards the following fields
	// parts has, by hash, the one part that came last. Two live parts of one hash are so rare that
	// the second is simply not shared.
	parts map[uint64]weak.Pointer[part[P]]
	// sweepAt is the size at which dead pointers are swept, so that at most half of them are dead.
	sweepAt int
}

// minSweep is the size below which a sweep is not worth its while.
const minSweep = 256

func newSharer[P any]() *sharer[P] {
	return &sharer[P]{seed: maphash.MakeSeed(), parts: map[uint64]weak.Pointer[part[P]]{}, sweepAt: minSweep}
}

// get returns the part that these bytes encode. They are copied when the part is new.
func (s *sharer[P]) get(t *Table, key []byte, decode func(*Table, []byte, *P) error) (*part[P], error) {
	hash := maphash.Bytes(s.seed, key)
	s.mu.Lock()
	known := s.parts[hash].Value()
	s.mu.Unlock()
	if known != nil && known.key == string(key) {
		return known, nil
	}
	fresh := &part[P]{anchor: anchor{key: string(key)}}
	if err := decode(t, key, &fresh.val); err != nil {
		return nil, err
	}
	return s.add(hash, fresh), nil
}

// add puts a part in the table, or returns the equal one that another goroutine has put there.
func (s *sharer[P]) add(hash uint64, fresh *part[P]) *part[P] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.parts[hash].Value(); other != nil && other.key == fresh.key {
		return other
	}
	s.parts[hash] = weak.Make(fresh)
	if len(s.parts) >= s.sweepAt {
		s.sweepLocked()
	}
	return fresh
}

func (s *sharer[P]) sweepLocked() {
	for hash, p := range s.parts {
		if p.Value() == nil {
			delete(s.parts, hash)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.parts))
}

// len is the number of parts, dead ones not yet swept included.
func (s *sharer[P]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}

// interner makes equal strings one. It forgets: it has two generations, and when the young one is
// full the old one is dropped. A string that is still asked for moves to the young one.
type interner struct {
	limit int

	mu         sync.Mutex // guards the following fields
	young, old map[string]string
}

const (
	// maxInterned strings a generation, about 100 bytes each with their place in the map.
	maxInterned = 16384
	// maxInternedLen: longer strings are texts, rarely equal.
	maxInternedLen = 256
)

func newInterner(limit int) *interner {
	return &interner{limit: limit, young: map[string]string{}}
}

func (in *interner) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxInternedLen {
		return string(b)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if s, ok := in.young[string(b)]; ok {
		return s
	}
	s, ok := in.old[string(b)]
	if !ok {
		s = string(b)
	}
	in.addLocked(s)
	return s
}

// again is get for what is a string already.
func (in *interner) again(s string) string {
	if s == "" || len(s) > maxInternedLen {
		return s
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if known, ok := in.young[s]; ok {
		return known
	}
	if known, ok := in.old[s]; ok {
		s = known
	}
	in.addLocked(s)
	return s
}

func (in *interner) addLocked(s string) {
	if len(in.young) >= in.limit {
		in.old, in.young = in.young, make(map[string]string, in.limit/4)
	}
	in.young[s] = s
}
