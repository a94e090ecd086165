// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTrie compares a trie with a map: after each edit, every trie that was ever made still holds
// what it held then, and iterates in the order of hashes from anywhere. Few distinct hashes make
// keys collide in some bits, or in all.
func TestTrie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.Uint64(), 1, 12).Draw(t, "hashes")
		hashes = append(hashes, hashes[0]^1, hashes[0]^1<<63, 0, 1<<64-1)
		hash := func(key int) uint64 { return hashes[key%len(hashes)] }

		type version struct {
			trie  trie[int]
			model map[int]int
		}
		versions := []version{{model: map[int]int{}}}
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			base := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "base")]
			e, model := base.trie.edit(), maps.Clone(base.model)
			for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
				key := rapid.IntRange(0, 40).Draw(t, "key")
				if rapid.Bool().Draw(t, "set") {
					e.set(hash(key), fmt.Sprint(key), i)
					model[key] = i
				} else {
					e.remove(hash(key), fmt.Sprint(key))
					delete(model, key)
				}
			}
			versions = append(versions, version{e.done(), model})
		}
		from := rapid.OneOf(rapid.SampledFrom(hashes), rapid.Uint64()).Draw(t, "from")
		for _, v := range versions {
			checkTrie(t, v.trie, v.model, hash, from)
		}
	})
}

func checkTrie(t *rapid.T, got trie[int], model map[int]int, hash func(int) uint64, from uint64) {
	if got.size != len(model) {
		t.Fatalf("size %d, want %d", got.size, len(model))
	}
	higher := 0
	for key := range 41 {
		l := got.find(hash(key), fmt.Sprint(key))
		want, ok := model[key]
		if (l != nil) != ok || ok && l.value != want {
			t.Fatalf("key %d: got %v, want %d, %v", key, l, want, ok)
		}
		if ok && hash(key) >= from {
			higher++
		}
	}
	for _, start := range []uint64{0, from} {
		want := len(model)
		if start != 0 {
			want = higher
		}
		var seen []uint64
		keys := map[string]bool{}
		for l := range got.from(start) {
			seen = append(seen, l.hash)
			keys[l.key] = true
		}
		if len(seen) != want || len(keys) != want || !slices.IsSorted(seen) {
			t.Fatalf("from %x: iterated %x, want %d distinct keys in order", start, seen, want)
		}
		if want > 0 && seen[0] < start {
			t.Fatalf("from %x: iterated %x", start, seen[0])
		}
	}
}

// An edit that is done does not change what it has given away.
func TestEditAfterDone(t *testing.T) {
	e := trie[int]{}.edit()
	e.set(hashOf("a"), "a", 1)
	first := e.done()
	e.set(hashOf("a"), "a", 2)
	e.set(hashOf("b"), "b", 3)
	if v, _ := first.get("a"); v != 1 || first.size != 1 {
		t.Errorf("a = %d of %d keys, want 1 of 1", v, first.size)
	}
	if v, _ := e.done().get("a"); v != 2 {
		t.Errorf("a = %d, want 2", v)
	}
}

func BenchmarkTrie(b *testing.B) {
	keys := make([]string, 20000)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%d/pod-%d", i%100, i)
	}
	e := trie[any]{}.edit()
	for _, key := range keys {
		e.set(hashOf(key), key, nil)
	}
	full := e.done()
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			full.get(keys[i%len(keys)])
		}
	})
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			key := keys[i%len(keys)]
			e := full.edit()
			e.set(hashOf(key), key, nil)
			full = e.done()
		}
	})
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			e := trie[any]{}.edit()
			for _, key := range keys {
				e.set(hashOf(key), key, nil)
			}
		}
	})
	b.Run("iterate", func(b *testing.B) {
		for range b.N {
			for range full.all() {
			}
		}
	})
}
