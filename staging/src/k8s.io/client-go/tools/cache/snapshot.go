// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientcache "k8s.io/client-go/tools/cache"
)

// snapshot is the content of a store at one moment. It never changes.
type snapshot struct {
	objects trie[entry]
	indices []index
	// version is the newest resource version that the store has seen.
	version string
	// bytes is the sum of the sizes of the objects.
	bytes int64
}

// entry is an object in a store.
type entry struct {
	obj  any
	size int32
}

// index finds the keys of the objects that have a value in common.
type index struct {
	name string
	of   clientcache.IndexFunc
	// built: values holds all objects, and is kept up to date.
	built  bool
	values trie[trie[struct{}]]
}

func (s *snapshot) index(name string) (*index, error) {
	for i := range s.indices {
		if s.indices[i].name == name {
			return &s.indices[i], nil
		}
	}
	return nil, fmt.Errorf("index with name %q does not exist", name)
}

func (s *snapshot) list() []any {
	objs := make([]any, 0, s.objects.size)
	for l := range s.objects.all() {
		objs = append(objs, l.value.obj)
	}
	return objs
}

// objectsOf appends the objects of the keys, all of which are there.
func (s *snapshot) objectsOf(keys trie[struct{}], objs []any) []any {
	for k := range keys.all() {
		if l := s.objects.find(k.hash, k.key); l != nil {
			objs = append(objs, l.value.obj)
		}
	}
	return objs
}

// keysOf returns the keys of the objects that have one of the values in the index.
func (x *index) keysOf(values []string) trie[struct{}] {
	if len(values) == 1 {
		keys, _ := x.values.get(values[0])
		return keys
	}
	e := trie[struct{}]{}.edit()
	for _, value := range values {
		keys, _ := x.values.get(value)
		for k := range keys.all() {
			e.set(k.hash, k.key, k.value)
		}
	}
	return e.done()
}

// indexed returns the values that the index has for an object. An object for which the index
// function fails is not found by that index.
func (x *index) indexed(key string, obj any) []string {
	values, err := x.of(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("object %q is left out of index %q: %w", key, x.name, err))
		return nil
	}
	return values
}

// change is one step in the life of a key: from one object, or none, to another, or none.
type change struct {
	hash     uint64
	key      string
	old, new any
	// final is what handlers are told when new is nil: the last state of the object, or a
	// DeletedFinalStateUnknown.
	final any
}

// transaction makes the next snapshot of a store.
type transaction struct {
	id      uint64
	next    snapshot
	objects *edit[entry]
	indices []*edit[trie[struct{}]] // nil where an index has not changed
	changes []change
}

func begin(base *snapshot, changes []change) *transaction {
	tx := &transaction{id: newEditID(), next: *base, changes: changes}
	tx.objects = base.objects.editAs(tx.id)
	return tx
}

// commit returns the new snapshot. The transaction is not used any more.
func (tx *transaction) commit() *snapshot {
	tx.next.objects = tx.objects.trie
	cloned := false
	for i, e := range tx.indices {
		if e == nil {
			continue
		}
		if !cloned {
			tx.next.indices, cloned = slices.Clone(tx.next.indices), true
		}
		tx.next.indices[i].values = e.trie
	}
	return &tx.next
}

// saw notes a version that the store has now seen.
func (tx *transaction) saw(version string) {
	if version == "" || version == tx.next.version {
		return
	}
	if cmp, err := resourceversion.CompareResourceVersion(version, tx.next.version); err != nil || cmp > 0 {
		tx.next.version = version
	}
}

// put stores an object. An object of another UID under the key is first deleted: whoever keeps
// something by UID then hears of its end.
func (tx *transaction) put(key string, obj any, size int32) {
	hash := hashOf(key)
	old := tx.objects.trie.find(hash, key)
	if old == nil {
		tx.next.bytes += int64(size)
		tx.objects.set(hash, key, entry{obj, size})
		tx.reindex(hash, key, nil, obj)
		tx.changes = append(tx.changes, change{hash: hash, key: key, new: obj})
		return
	}
	key = old.key
	was := old.value
	tx.next.bytes += int64(size) - int64(was.size)
	tx.objects.set(hash, key, entry{obj, size})
	tx.reindex(hash, key, was.obj, obj)
	if uidOf(was.obj) != uidOf(obj) {
		tx.changes = append(tx.changes,
			change{hash: hash, key: key, old: was.obj, final: tombstone(key, was.obj)},
			change{hash: hash, key: key, new: obj})
		return
	}
	tx.changes = append(tx.changes, change{hash: hash, key: key, old: was.obj, new: obj})
}

// remove deletes what is stored under the key, if anything is. Last is its last state, nil if that
// is unknown.
func (tx *transaction) remove(key string, last any) {
	hash := hashOf(key)
	old := tx.objects.trie.find(hash, key)
	if old == nil {
		return
	}
	key = old.key
	was := old.value
	tx.next.bytes -= int64(was.size)
	tx.objects.remove(hash, key)
	tx.reindex(hash, key, was.obj, nil)
	final := last
	if last == nil || uidOf(last) != uidOf(was.obj) {
		final = tombstone(key, was.obj)
	}
	tx.changes = append(tx.changes, change{hash: hash, key: key, old: was.obj, final: final})
}

func tombstone(key string, obj any) clientcache.DeletedFinalStateUnknown {
	return clientcache.DeletedFinalStateUnknown{Key: key, Obj: obj}
}

// reindex moves a key from the values of the old object to those of the new one.
func (tx *transaction) reindex(hash uint64, key string, old, obj any) {
	for i := range tx.next.indices {
		x := &tx.next.indices[i]
		if !x.built {
			continue
		}
		var before, after []string
		if old != nil {
			before = x.indexed(key, old)
		}
		if obj != nil {
			after = x.indexed(key, obj)
		}
		if slices.Equal(before, after) {
			continue
		}
		values := tx.editIndex(i)
		for _, value := range before {
			if !slices.Contains(after, value) {
				values.takeOut(value, hash, key)
			}
		}
		for _, value := range after {
			if !slices.Contains(before, value) {
				values.putIn(value, hash, key)
			}
		}
	}
}

// indexEdit changes the values of one index.
type indexEdit struct {
	*edit[trie[struct{}]]
}

func (tx *transaction) editIndex(i int) indexEdit {
	if tx.indices == nil {
		tx.indices = make([]*edit[trie[struct{}]], len(tx.next.indices))
	}
	if tx.indices[i] == nil {
		tx.indices[i] = tx.next.indices[i].values.editAs(tx.id)
	}
	return indexEdit{tx.indices[i]}
}

func (e indexEdit) putIn(value string, hash uint64, key string) {
	valueHash := hashOf(value)
	var keys trie[struct{}]
	if l := e.trie.find(valueHash, value); l != nil {
		keys, value = l.value, l.key
	}
	set := keys.editAs(e.owner)
	set.set(hash, key, struct{}{})
	e.set(valueHash, value, set.trie)
}

func (e indexEdit) takeOut(value string, hash uint64, key string) {
	valueHash := hashOf(value)
	l := e.trie.find(valueHash, value)
	if l == nil {
		return
	}
	set := l.value.editAs(e.owner)
	set.remove(hash, key)
	if set.trie.size == 0 {
		e.remove(valueHash, value)
		return
	}
	e.set(valueHash, l.key, set.trie)
}
