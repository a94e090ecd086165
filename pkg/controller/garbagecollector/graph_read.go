// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// status returns what the graph knows of an object; ok is false if it knows nothing. version is
// that of a reference to it, if there is one.
func (g *graph) status(id identity) (s state, version string, ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := g.findLocked(id)
	if n == nil {
		return unknown, "", false
	}
	return n.state, n.version, true
}

// dependentsOf returns who refers to an object, by whatever kind, from where it can be an owner.
func (g *graph) dependentsOf(id identity) []identity {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var ids []identity
	for n := g.nodes[id.uid]; n != nil; n = n.sameUID {
		if n.id.name != id.name {
			continue
		}
		for d := range n.dependents {
			if id.namespace == "" || id.namespace == d.id.namespace {
				ids = append(ids, d.id)
			}
		}
	}
	return ids
}

func (g *graph) hasUID(uid types.UID) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.nodes[uid] != nil
}

// facts fills in what the graph knows about an object and the owners it refers to. Its references
// are given, since the cache may show newer ones than the graph has taken in: an owner that only
// those name counts as unknown, until the graph knows it.
func (g *graph) facts(id identity, refs []metav1.OwnerReference) itemFacts {
	g.mu.Lock() // ownerIDLocked may add a kind
	defer g.mu.Unlock()
	f := itemFacts{}
	for i := range refs {
		ownerID, version := g.ownerIDLocked(id.namespace, &refs[i])
		f.refs = append(f.refs, refFact{
			ref: &refs[i], kind: ownerID.kind, version: version, state: g.refStateLocked(id, ownerID),
		})
	}
	n := g.findLocked(id)
	if n == nil {
		return f
	}
	f.hasDependents = len(n.dependents) > 0
	waiting := false
	for _, r := range f.refs {
		waiting = waiting || r.state == refWaiting
	}
	for d := range n.dependents {
		f.cycle = f.cycle || waiting && d.foreground
		for _, ref := range d.owners {
			f.blocked = f.blocked || ref.owner == n && ref.blocking
		}
		if f.blocked && (f.cycle || !waiting) {
			break
		}
	}
	return f
}

func (g *graph) refStateLocked(dependent, owner identity) refState {
	if dependent.namespace == "" && owner.kind.scope == scopeNamespaced {
		return refInvalid
	}
	n := g.findLocked(owner)
	switch {
	case n == nil, n.state == unknown:
		return refUnknown
	case n.state == invalid:
		return refInvalid
	case n.state == absent:
		return refDangling
	case n.foreground:
		return refWaiting
	}
	return refSolid
}

func blocks(ref *metav1.OwnerReference) bool { return ptr.Deref(ref.BlockOwnerDeletion, false) }

// refsOf returns the references of a node as they were given.
func refsOf(n *node) []metav1.OwnerReference {
	refs := make([]metav1.OwnerReference, 0, len(n.owners))
	for _, ref := range n.owners {
		refs = append(refs, metav1.OwnerReference{
			APIVersion:         schema.GroupVersion{Group: ref.owner.id.kind.Group, Version: ref.version}.String(),
			Kind:               ref.owner.id.kind.Kind,
			Name:               ref.owner.id.name,
			UID:                ref.owner.id.uid,
			BlockOwnerDeletion: ptr.To(ref.blocking),
		})
	}
	return refs
}

// unknownOf returns the owners of a kind that are to be looked up.
func (g *graph) unknownOf(k *kind) []identity {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var ids []identity
	for n := range g.eachLocked {
		if n.id.kind == k && n.state == unknown {
			ids = append(ids, n.id)
		}
	}
	return ids
}
