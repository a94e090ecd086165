// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	// fanBits is how many bits of a hash choose a slot of a node. Sixteen slots: a change copies
	// about log16(n) small nodes.
	fanBits  = 4
	fanMask  = 1<<fanBits - 1
	hashBits = 64
)

// A trie is a persistent map from strings: a changed copy shares all but the path to the change
// with the original, which readers may go on reading without a lock. It is iterated in the order
// of the keys' hashes, so an iteration can be left and taken up again at a hash.
//
// Each node splits its keys by the next four bits of their hashes, the highest first:
//
//	node  leafSlots 0010000000000100   leaves [ a, b ]       one key in slots 2 and 13
//	      nodeSlots 0000100000000000   nodes  [ • ]          more than one in slot 11
//
// The zero value is an empty map.
type trie[V any] struct {
	root *trieNode[V]
	size int
}

type trieNode[V any] struct {
	// owner is the edit that made the node and may still change it in place.
	owner                uint64
	leafSlots, nodeSlots uint16
	leaves               []*leaf[V]
	nodes                []*trieNode[V]
}

// leaf is a key with its value. Leaves of equal hashes are chained.
type leaf[V any] struct {
	hash  uint64
	key   string
	value V
	next  *leaf[V]
}

var hashSeed = maphash.MakeSeed()

// hashOf is where a key stands in every trie of this process.
func hashOf(key string) uint64 { return maphash.String(hashSeed, key) }

// lastEdit numbers edits; zero owns nothing.
var lastEdit atomic.Uint64

// edit changes a trie in place where it can: what it has made itself. The trie it began with is
// not changed. After done, neither is the result.
type edit[V any] struct {
	trie  trie[V]
	owner uint64
}

func newEditID() uint64 { return lastEdit.Add(1) }

func (t trie[V]) edit() *edit[V] { return t.editAs(newEditID()) }

// editAs returns an edit that is a part of a larger one, over several tries.
func (t trie[V]) editAs(id uint64) *edit[V] { return &edit[V]{trie: t, owner: id} }

func (e *edit[V]) done() trie[V] {
	e.owner = newEditID()
	return e.trie
}

func (t trie[V]) get(key string) (V, bool) {
	if l := t.find(hashOf(key), key); l != nil {
		return l.value, true
	}
	var zero V
	return zero, false
}

func (t trie[V]) find(hash uint64, key string) *leaf[V] {
	n := t.root
	for shift := hashBits - fanBits; n != nil; shift -= fanBits {
		bit := slotBit(hash, shift)
		if n.leafSlots&bit != 0 {
			for l := n.leaves[rank(n.leafSlots, bit)]; l != nil; l = l.next {
				if l.hash == hash && l.key == key {
					return l
				}
			}
			return nil
		}
		if n.nodeSlots&bit == 0 {
			return nil
		}
		n = n.nodes[rank(n.nodeSlots, bit)]
	}
	return nil
}

// set puts the value under the key. If the key is there already, the string that is there stays.
func (e *edit[V]) set(hash uint64, key string, value V) {
	if e.trie.root == nil {
		e.trie.root = &trieNode[V]{owner: e.owner}
	}
	var added bool
	e.trie.root, added = e.setIn(e.trie.root, hashBits-fanBits, &leaf[V]{hash: hash, key: key, value: value})
	if added {
		e.trie.size++
	}
}

func (e *edit[V]) setIn(n *trieNode[V], shift int, l *leaf[V]) (*trieNode[V], bool) {
	bit := slotBit(l.hash, shift)
	switch {
	case n.nodeSlots&bit != 0:
		i := rank(n.nodeSlots, bit)
		child, added := e.setIn(n.nodes[i], shift-fanBits, l)
		if child != n.nodes[i] {
			n = e.own(n)
			n.nodes[i] = child
		}
		return n, added
	case n.leafSlots&bit != 0:
		n = e.own(n)
		i := rank(n.leafSlots, bit)
		there := n.leaves[i]
		if there.hash == l.hash {
			chain, added := setInChain(there, l)
			n.leaves[i] = chain
			return n, added
		}
		n.removeLeaf(bit)
		n.insertNode(bit, e.fork(there, l, shift-fanBits))
		return n, true
	default:
		n = e.own(n)
		n.insertLeaf(bit, l)
		return n, true
	}
}

// fork makes a node for two leaves whose hashes agree in all bits above shift.
func (e *edit[V]) fork(a, b *leaf[V], shift int) *trieNode[V] {
	n := &trieNode[V]{owner: e.owner}
	bitA, bitB := slotBit(a.hash, shift), slotBit(b.hash, shift)
	if bitA == bitB {
		n.insertNode(bitA, e.fork(a, b, shift-fanBits))
		return n
	}
	n.insertLeaf(bitA, a)
	n.insertLeaf(bitB, b)
	return n
}

// setInChain returns a chain with the leaf in the place of the one of the same key, or before all.
func setInChain[V any](chain, l *leaf[V]) (*leaf[V], bool) {
	if rest, found := withoutKey(chain, l.key); found != nil {
		l.key, l.next = found.key, rest
		return l, false
	}
	l.next = chain
	return l, true
}

// withoutKey returns the chain without the leaf of the key, and that leaf.
func withoutKey[V any](chain *leaf[V], key string) (rest, found *leaf[V]) {
	if chain == nil {
		return nil, nil
	}
	if chain.key == key {
		return chain.next, chain
	}
	rest, found = withoutKey(chain.next, key)
	if found == nil {
		return chain, nil
	}
	return &leaf[V]{hash: chain.hash, key: chain.key, value: chain.value, next: rest}, found
}

// remove takes the key out.
func (e *edit[V]) remove(hash uint64, key string) {
	if e.trie.find(hash, key) == nil {
		return
	}
	e.trie.size--
	if e.trie.size == 0 {
		e.trie.root = nil
		return
	}
	e.trie.root = e.removeIn(e.trie.root, hashBits-fanBits, hash, key)
}

// removeIn removes a key that is there. A child that is left with a single leaf is folded in.
func (e *edit[V]) removeIn(n *trieNode[V], shift int, hash uint64, key string) *trieNode[V] {
	bit := slotBit(hash, shift)
	n = e.own(n)
	if n.leafSlots&bit != 0 {
		i := rank(n.leafSlots, bit)
		if rest, _ := withoutKey(n.leaves[i], key); rest != nil {
			n.leaves[i] = rest
		} else {
			n.removeLeaf(bit)
		}
		return n
	}
	i := rank(n.nodeSlots, bit)
	child := e.removeIn(n.nodes[i], shift-fanBits, hash, key)
	if len(child.nodes) == 0 && len(child.leaves) == 1 {
		n.removeNode(bit)
		n.insertLeaf(bit, child.leaves[0])
		return n
	}
	n.nodes[i] = child
	return n
}

// own returns the node if this edit made it, else a copy that this edit may change.
func (e *edit[V]) own(n *trieNode[V]) *trieNode[V] {
	if n.owner == e.owner {
		return n
	}
	return &trieNode[V]{
		owner:     e.owner,
		leafSlots: n.leafSlots,
		nodeSlots: n.nodeSlots,
		leaves:    slices.Clone(n.leaves),
		nodes:     slices.Clone(n.nodes),
	}
}

func (n *trieNode[V]) insertLeaf(bit uint16, l *leaf[V]) {
	n.leaves = slices.Insert(n.leaves, rank(n.leafSlots, bit), l)
	n.leafSlots |= bit
}

func (n *trieNode[V]) removeLeaf(bit uint16) {
	i := rank(n.leafSlots, bit)
	n.leaves = slices.Delete(n.leaves, i, i+1)
	n.leafSlots &^= bit
}

func (n *trieNode[V]) insertNode(bit uint16, child *trieNode[V]) {
	n.nodes = slices.Insert(n.nodes, rank(n.nodeSlots, bit), child)
	n.nodeSlots |= bit
}

func (n *trieNode[V]) removeNode(bit uint16) {
	i := rank(n.nodeSlots, bit)
	n.nodes = slices.Delete(n.nodes, i, i+1)
	n.nodeSlots &^= bit
}

// all iterates over the leaves in the order of their hashes.
func (t trie[V]) all() iter.Seq[*leaf[V]] { return t.from(0) }

// from iterates, in the order of hashes, over the leaves with this hash or a higher one.
func (t trie[V]) from(hash uint64) iter.Seq[*leaf[V]] {
	return func(yield func(*leaf[V]) bool) {
		if t.root != nil {
			t.root.ascend(hashBits-fanBits, hash, yield)
		}
	}
}

// ascend yields the node's leaves whose hashes are from or higher, of which the bits above those of
// this node are known to be equal or higher.
func (n *trieNode[V]) ascend(shift int, from uint64, yield func(*leaf[V]) bool) bool {
	first := slotOf(from, shift)
	leafAt := bits.OnesCount16(n.leafSlots & (1<<first - 1))
	nodeAt := bits.OnesCount16(n.nodeSlots & (1<<first - 1))
	for slot := first; slot <= fanMask; slot++ {
		bit := uint16(1) << slot
		switch {
		case n.leafSlots&bit != 0:
			for l := n.leaves[leafAt]; l != nil; l = l.next {
				if l.hash >= from && !yield(l) {
					return false
				}
			}
			leafAt++
		case n.nodeSlots&bit != 0:
			below := uint64(0) // The bits of from matter only on its own path.
			if slot == first {
				below = from
			}
			if !n.nodes[nodeAt].ascend(shift-fanBits, below, yield) {
				return false
			}
			nodeAt++
		}
	}
	return true
}

func slotOf(hash uint64, shift int) uint { return uint(hash>>shift) & fanMask }

func slotBit(hash uint64, shift int) uint16 { return 1 << slotOf(hash, shift) }

// rank is where the bit's element stands in the packed slice of the bitmap.
func rank(slots, bit uint16) int { return bits.OnesCount16(slots & (bit - 1)) }
