// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
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
	templates   *sharer[corev1.PodSpec]
	containers  *sharer[corev1.Container]
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
		templates:   newSharer[corev1.PodSpec](),
		containers:  newSharer[corev1.Container](),
	}
}

// anchor is what an object holds of a part that it shares: it keeps the part in the table.
type anchor struct{ key identity }

// identity tells encoded parts apart: the bytes themselves or, since those of a long part would take
// as much memory as the part, their SHA-256.
type identity struct {
	bytes  string
	digest bool
}

// shortKey is the greatest length of bytes that are their own identity.
const shortKey = 64

func identityOf(b []byte) identity {
	if len(b) <= shortKey {
		return identity{bytes: string(b)}
	}
	sum := sha256.Sum256(b)
	return identity{bytes: string(sum[:]), digest: true}
}

// is compares without allocating.
func (id identity) is(b []byte) bool {
	if id.digest != (len(b) > shortKey) {
		return false
	}
	if !id.digest {
		return id.bytes == string(b)
	}
	sum := sha256.Sum256(b)
	return id.bytes == string(sum[:])
}

// part is a decoded part and the identity of the bytes that it was decoded from.
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

// get returns the part that these bytes encode, of which nothing is kept.
func (s *sharer[P]) get(t *Table, key []byte, decode func(*Table, []byte, *P) error) (*part[P], error) {
	hash := maphash.Bytes(s.seed, key)
	s.mu.Lock()
	known := s.parts[hash].Value()
	s.mu.Unlock()
	if known != nil && known.key.is(key) {
		return known, nil
	}
	fresh := &part[P]{anchor: anchor{key: identityOf(key)}}
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
