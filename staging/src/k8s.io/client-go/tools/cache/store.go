// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	clientcache "k8s.io/client-go/tools/cache"
)

// Store keeps objects by key and finds them by index. It implements client-go's cache.Indexer.
//
// A reader takes the present snapshot, which never changes: it neither waits for writers nor makes
// them wait, and sees each batch of changes whole or not at all. Several reads are consistent with
// one another only within one call.
type Store struct {
	keyFunc clientcache.KeyFunc

	// mu makes writers take turns.
	mu      sync.Mutex
	current atomic.Pointer[snapshot]
	waiters barrier
}

var _ clientcache.Indexer = (*Store)(nil)

// NewStore returns an empty store without indexes.
func NewStore(keyFunc clientcache.KeyFunc) *Store { return NewIndexer(keyFunc, nil) }

// NewIndexer returns an empty store with these indexes.
func NewIndexer(keyFunc clientcache.KeyFunc, indexers clientcache.Indexers) *Store {
	s := &Store{keyFunc: keyFunc}
	s.current.Store(withIndexers(&snapshot{}, indexers))
	return s
}

func (s *Store) snapshot() *snapshot { return s.current.Load() }

// update makes a new snapshot with what change does. The changes that it makes are appended to
// buffer and returned.
func (s *Store) update(buffer []change, change func(tx *transaction)) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := begin(s.snapshot(), buffer)
	change(tx)
	next := tx.commit()
	s.current.Store(next)
	s.waiters.reached(next.version)
	return tx.changes
}

// Add stores the object.
func (s *Store) Add(obj any) error {
	key, err := s.keyFunc(obj)
	if err != nil {
		return clientcache.KeyError{Obj: obj, Err: err}
	}
	s.update(nil, func(tx *transaction) {
		tx.put(key, obj, 0)
		tx.saw(versionOf(obj))
	})
	return nil
}

// Update stores the object.
func (s *Store) Update(obj any) error { return s.Add(obj) }

// Delete removes what is stored under the object's key.
func (s *Store) Delete(obj any) error {
	key, err := s.keyFunc(obj)
	if err != nil {
		return clientcache.KeyError{Obj: obj, Err: err}
	}
	s.update(nil, func(tx *transaction) {
		tx.remove(key, nil)
		if _, unknown := obj.(clientcache.DeletedFinalStateUnknown); !unknown {
			tx.saw(versionOf(obj))
		}
	})
	return nil
}

// Replace makes the objects the whole content of the store.
func (s *Store) Replace(objs []any, version string) error {
	keys := make(map[string]any, len(objs))
	for _, obj := range objs {
		key, err := s.keyFunc(obj)
		if err != nil {
			return clientcache.KeyError{Obj: obj, Err: err}
		}
		keys[key] = obj
	}
	s.update(nil, func(tx *transaction) {
		for l := range s.snapshot().objects.all() {
			if _, ok := keys[l.key]; !ok {
				tx.remove(l.key, nil)
			}
		}
		for key, obj := range keys {
			tx.put(key, obj, 0)
		}
		if version != "" {
			tx.next.version = version
		}
	})
	return nil
}

// Bookmark notes that the store has seen everything up to the version.
func (s *Store) Bookmark(version string) {
	s.update(nil, func(tx *transaction) { tx.saw(version) })
}

// Resync does nothing.
func (s *Store) Resync() error { return nil }

// LastStoreSyncResourceVersion returns the newest resource version that the store has seen.
func (s *Store) LastStoreSyncResourceVersion() string { return s.snapshot().version }

// Get returns what is stored under the object's key.
func (s *Store) Get(obj any) (any, bool, error) {
	key, err := s.keyFunc(obj)
	if err != nil {
		return nil, false, clientcache.KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

// GetByKey returns what is stored under the key.
func (s *Store) GetByKey(key string) (any, bool, error) {
	e, ok := s.snapshot().objects.get(key)
	return e.obj, ok, nil
}

// List returns all objects, in no order that means anything.
func (s *Store) List() []any { return s.snapshot().list() }

// ListKeys returns the keys of all objects.
func (s *Store) ListKeys() []string {
	snap := s.snapshot()
	return keysIn(snap.objects)
}

func keysIn[V any](t trie[V]) []string {
	keys := make([]string, 0, t.size)
	for l := range t.all() {
		keys = append(keys, l.key)
	}
	return keys
}

// Index returns the objects that have a value in common with obj in the index.
func (s *Store) Index(indexName string, obj any) ([]any, error) {
	snap, x, err := s.index(indexName)
	if err != nil {
		return nil, err
	}
	values, err := x.of(obj)
	if err != nil {
		return nil, err
	}
	keys := x.keysOf(values)
	return snap.objectsOf(keys, make([]any, 0, keys.size)), nil
}

// ByIndex returns the objects that have the value in the index.
func (s *Store) ByIndex(indexName, value string) ([]any, error) {
	snap, x, err := s.index(indexName)
	if err != nil {
		return nil, err
	}
	keys, _ := x.values.get(value)
	return snap.objectsOf(keys, make([]any, 0, keys.size)), nil
}

// IndexKeys returns the keys of the objects that have the value in the index.
func (s *Store) IndexKeys(indexName, value string) ([]string, error) {
	_, x, err := s.index(indexName)
	if err != nil {
		return nil, err
	}
	keys, _ := x.values.get(value)
	return keysIn(keys), nil
}

// ListIndexFuncValues returns the values that objects have in the index.
func (s *Store) ListIndexFuncValues(indexName string) []string {
	_, x, err := s.index(indexName)
	if err != nil {
		return nil
	}
	return keysIn(x.values)
}

// GetIndexers returns the index functions by name.
func (s *Store) GetIndexers() clientcache.Indexers {
	indexers := clientcache.Indexers{}
	for _, x := range s.snapshot().indices {
		indexers[x.name] = x.of
	}
	return indexers
}

// AddIndexers adds indexes over what is stored and what will be. It fails, and adds none, if one of
// the names is taken. An index costs nothing before it is first read.
func (s *Store) AddIndexers(newIndexers clientcache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snapshot()
	var errs []error
	for name := range newIndexers {
		if _, err := snap.index(name); err == nil {
			errs = append(errs, fmt.Errorf("indexer conflict: index %q exists already", name))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	s.current.Store(withIndexers(snap, newIndexers))
	return nil
}

// withIndexers returns the snapshot with more indexes, which are not built yet.
func withIndexers(base *snapshot, indexers clientcache.Indexers) *snapshot {
	next := *base
	next.indices = slices.Clone(base.indices)
	for name, of := range indexers {
		next.indices = append(next.indices, index{name: name, of: of})
	}
	return &next
}

// index returns the present snapshot and an index of it, which is built if nobody has asked for it
// before: every informer is given indexes that nobody reads, the one by namespace above all.
func (s *Store) index(name string) (*snapshot, *index, error) {
	snap := s.snapshot()
	x, err := snap.index(name)
	if err != nil || x.built {
		return snap, x, err
	}
	s.build(name)
	snap = s.snapshot()
	x, err = snap.index(name)
	return snap, x, err
}

// build makes a snapshot in which the index is built.
func (s *Store) build(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.snapshot()
	next.indices = slices.Clone(next.indices)
	x, err := next.index(name)
	if err != nil || x.built {
		return
	}
	e := indexEdit{x.values.edit()}
	for l := range next.objects.all() {
		for _, value := range x.indexed(l.key, l.value.obj) {
			e.putIn(value, l.hash, l.key)
		}
	}
	x.values, x.built = e.done(), true
	s.current.Store(&next)
}
