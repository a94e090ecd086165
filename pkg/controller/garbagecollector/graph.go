// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// absentOwners is how many owners are remembered as gone after their last dependent.
const absentOwners = 500

// scope says whether the objects of a kind live in namespaces.
type scope uint8

const (
	scopeUnknown scope = iota
	scopeNamespaced
	scopeCluster
)

// kind is a group and kind, one value per graph: compared by its address.
type kind struct {
	schema.GroupKind
	scope scope // guarded by graph.mu
}

// identity says which object is meant, in full: an object whose kind, namespace, name or UID differs
// is another one. The API version is no part of it.
type identity struct {
	kind      *kind
	namespace string // empty for cluster-scoped objects
	name      string
	uid       types.UID
}

func (id identity) String() string {
	name := id.name
	if id.namespace != "" {
		name = id.namespace + "/" + name
	}
	return id.kind.String() + " " + name + " (" + string(id.uid) + ")"
}

// state is what the graph knows of a node.
type state uint8

const (
	// unknown: referred to, never seen; a live look-up is due.
	unknown state = iota
	// observed: its informer shows it.
	observed
	// live: no informer shows it, but the last look-up did. It is looked up again.
	live
	// absent: seen deleted, or not found by a look-up.
	absent
	// invalid: a namespaced owner that a cluster-scoped object refers to. It cannot be looked up, so
	// it is never believed absent.
	invalid
)

// node is an object that was observed, or that a dependent refers to as its owner.
type node struct {
	id         identity
	version    string // the API version that the first reference gave; empty if observed first
	sameUID    *node  // the next identity that claims this UID
	owners     []edge // empty unless observed
	dependents map[*node]struct{}
	state      state
	deleting   bool
	// foreground and orphaning: deleting, and held by that finalizer.
	foreground, orphaning bool
	checks                uint8 // look-ups without an end
}

// edge is an owner reference. An object may refer to one owner twice.
type edge struct {
	owner    *node
	version  string
	blocking bool
}

// object is what the graph takes from an observed object.
type object struct {
	id                              identity
	owners                          []metav1.OwnerReference
	deleting, foreground, orphaning bool
}

// invalidRef is a reference across namespaces.
type invalidRef struct {
	dependent identity
	owner     identity // as the dependent refers to it
	version   string
}

// effects are what has to be looked at because the graph changed.
type effects struct {
	toDelete []identity
	toOrphan []identity
	invalid  []invalidRef
}

func (e *effects) del(n *node) { e.toDelete = append(e.toDelete, n.id) }

// graph is who owns whom: pure state, without I/O or clock. Its order of changes does not matter:
// whatever it is told last of an object holds.
type graph struct {
	mu sync.RWMutex
	// mu guards the following fields.
	kinds map[schema.GroupKind]*kind
	nodes map[types.UID]*node // the first of a chain by sameUID
	gone  *lru.Cache          // identities that were absent when their last dependent went
}

func newGraph() *graph {
	return &graph{kinds: map[schema.GroupKind]*kind{}, nodes: map[types.UID]*node{}, gone: lru.New(absentOwners)}
}

func (g *graph) kindLocked(gk schema.GroupKind) *kind {
	k, ok := g.kinds[gk]
	if !ok {
		k = &kind{GroupKind: gk}
		g.kinds[gk] = k
	}
	return k
}

// setScope tells the graph a kind's scope and returns the kind. References that were made before
// the scope was known, or was another, are made anew.
func (g *graph) setScope(gk schema.GroupKind, s scope) (*kind, effects) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	k, known := g.kinds[gk]
	if !known {
		k = g.kindLocked(gk)
	}
	if k.scope == s {
		return k, e
	}
	k.scope = s
	if !known {
		return k, e
	}
	relink := map[*node]struct{}{}
	for n := range g.eachLocked {
		if n.id.kind == k && n.state != observed {
			for d := range n.dependents {
				relink[d] = struct{}{}
			}
		}
	}
	for d := range relink {
		g.linkLocked(d, refsOf(d), &e)
	}
	return k, e
}

func (g *graph) eachLocked(yield func(*node) bool) {
	for _, n := range g.nodes {
		for n != nil {
			next := n.sameUID
			if !yield(n) {
				return
			}
			n = next
		}
	}
}

func (g *graph) findLocked(id identity) *node {
	n := g.nodes[id.uid]
	for n != nil && n.id != id {
		n = n.sameUID
	}
	return n
}

func (g *graph) createLocked(id identity) *node {
	n := &node{id: id, sameUID: g.nodes[id.uid]}
	g.nodes[id.uid] = n
	return n
}

// dropLocked removes a node that nobody refers to.
func (g *graph) dropLocked(n *node) {
	head := g.nodes[n.id.uid]
	switch {
	case head == n && n.sameUID == nil:
		delete(g.nodes, n.id.uid)
	case head == n:
		g.nodes[n.id.uid] = n.sameUID
	default:
		for head.sameUID != n {
			head = head.sameUID
		}
		head.sameUID = n.sameUID
	}
}

// ownerIDLocked returns the owner that a reference from an object in namespace means: the owner of
// a namespaced kind lives in the namespace of its dependent.
func (g *graph) ownerIDLocked(namespace string, ref *metav1.OwnerReference) (identity, string) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		// The API server does not let such a reference in. Its kind is served by nobody.
		gv = schema.GroupVersion{Group: ref.APIVersion}
	}
	k := g.kindLocked(schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	if k.scope == scopeCluster {
		namespace = ""
	}
	return identity{kind: k, namespace: namespace, name: ref.Name, uid: ref.UID}, gv.Version
}

// upsert takes in what an informer shows of an object.
func (g *graph) upsert(o object) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n := g.findLocked(o.id)
	isNew := n == nil
	if isNew {
		n = g.createLocked(o.id)
	}
	old := *n
	n.state, n.deleting, n.foreground, n.orphaning, n.checks = observed, o.deleting, o.foreground, o.orphaning, 0

	if old.state != observed {
		g.appearedLocked(n, &e)
	}
	if n.foreground && !(old.state == observed && old.foreground) {
		for d := range n.dependents {
			e.del(d)
		}
		e.del(n)
	}
	if n.orphaning && !(old.state == observed && old.orphaning) {
		e.toOrphan = append(e.toOrphan, n.id)
	}
	if !g.sameRefsLocked(n, o.owners) {
		g.linkLocked(n, o.owners, &e)
	}
	return e
}

// appearedLocked looks at those who referred to n before it was observed.
func (g *graph) appearedLocked(n *node, e *effects) {
	for d := range n.dependents {
		if len(d.owners) > 1 {
			// It may have waited with its other owners until this one was known.
			e.del(d)
		}
	}
	for other := g.nodes[n.id.uid]; other != nil; other = other.sameUID {
		if other.state == observed {
			continue
		}
		for d := range other.dependents {
			for _, ref := range d.owners {
				if ref.owner == other {
					g.reportLocked(d, ref, n, e)
				}
			}
		}
	}
}

// reportLocked reports a reference to the UID of an owner that lives elsewhere.
func (g *graph) reportLocked(dependent *node, ref edge, seen *node, e *effects) {
	if seen.id.namespace != "" && seen.id.namespace != dependent.id.namespace {
		e.invalid = append(e.invalid, invalidRef{dependent: dependent.id, owner: ref.owner.id, version: ref.version})
	}
}

func (g *graph) sameRefsLocked(n *node, refs []metav1.OwnerReference) bool {
	if len(n.owners) != len(refs) {
		return false
	}
	for i := range refs {
		id, version := g.ownerIDLocked(n.id.namespace, &refs[i])
		if has := n.owners[i]; has.owner.id != id || has.version != version || has.blocking != blocks(&refs[i]) {
			return false
		}
	}
	return true
}

// linkLocked replaces the owners of n.
func (g *graph) linkLocked(n *node, refs []metav1.OwnerReference, e *effects) {
	was := n.owners
	n.owners = make([]edge, 0, len(refs))
	for i := range refs {
		id, version := g.ownerIDLocked(n.id.namespace, &refs[i])
		owner := g.findLocked(id)
		if owner == nil {
			owner = g.createLocked(id)
			owner.version = version
			if _, gone := g.gone.Get(id); gone {
				owner.state = absent
			}
		}
		ref := edge{owner: owner, version: version, blocking: blocks(&refs[i])}
		n.owners = append(n.owners, ref)
		if owner.dependents == nil {
			owner.dependents = map[*node]struct{}{}
		}
		owner.dependents[n] = struct{}{}
		g.linkedLocked(n, ref, e)
	}
	g.unlinkLocked(n, was, e)
}

// linkedLocked looks at a new reference of n.
func (g *graph) linkedLocked(n *node, ref edge, e *effects) {
	owner := ref.owner
	switch {
	case owner.state == absent, owner.foreground:
		e.del(n)
	case owner.state == unknown:
		e.del(owner)
	default:
		if len(n.owners) > 1 {
			e.del(n)
		}
	}
	if owner.state == observed {
		return
	}
	for seen := g.nodes[owner.id.uid]; seen != nil; seen = seen.sameUID {
		if seen.state == observed {
			g.reportLocked(n, ref, seen, e)
		}
	}
}

// unlinkLocked takes references of n back, but for those that n.owners has too.
func (g *graph) unlinkLocked(n *node, was []edge, e *effects) {
	for _, ref := range was {
		kept, blocking := false, false
		for _, now := range n.owners {
			if now.owner == ref.owner {
				kept, blocking = true, blocking || now.blocking
			}
		}
		if !kept {
			delete(ref.owner.dependents, n)
		}
		if ref.owner.foreground && ref.blocking && !blocking {
			e.del(ref.owner)
		}
		if !kept {
			g.tidyLocked(ref.owner)
		}
	}
}

// tidyLocked forgets an owner that is only known by its dependents, when it has none.
func (g *graph) tidyLocked(n *node) {
	if len(n.dependents) > 0 {
		return
	}
	n.dependents = nil
	if n.state == observed || g.findLocked(n.id) == nil {
		return
	}
	if n.state == absent {
		g.gone.Add(n.id, struct{}{})
	}
	g.dropLocked(n)
}

// remove takes in that an object was deleted.
func (g *graph) remove(id identity) effects { return g.unobserve(id, absent) }

// forget takes in that no informer shows the object any longer, which need not mean that it is gone.
func (g *graph) forget(id identity) effects { return g.unobserve(id, unknown) }

func (g *graph) unobserve(id identity, s state) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n := g.findLocked(id)
	if n == nil || (n.state != observed && s == unknown) {
		return e
	}
	owners := n.owners
	n.owners = nil
	n.state, n.deleting, n.foreground, n.orphaning = s, false, false, false
	g.unlinkLocked(n, owners, &e)
	if s == absent {
		for d := range n.dependents {
			e.del(d)
		}
	} else if len(n.dependents) > 0 {
		e.del(n)
	}
	// Who refers to the object by another kind (an alias of it) is looked up again.
	for other := g.nodes[id.uid]; other != nil; other = other.sameUID {
		if other.state == live {
			other.state, other.checks = unknown, 0
			e.del(other)
		}
	}
	if len(n.dependents) == 0 && g.findLocked(id) != nil {
		g.dropLocked(n)
	}
	return e
}

// forgetKind forgets the objects of a kind for which keep is false.
func (g *graph) forgetKind(k *kind, keep func(identity) bool) effects {
	g.mu.RLock()
	var ids []identity
	for n := range g.eachLocked {
		if n.id.kind == k && n.state == observed {
			ids = append(ids, n.id)
		}
	}
	g.mu.RUnlock()
	var e effects
	for _, id := range ids {
		if keep(id) {
			continue
		}
		f := g.forget(id)
		e.toDelete = append(e.toDelete, f.toDelete...)
	}
	return e
}

// notFound takes in that a look-up did not find an owner that no informer shows.
func (g *graph) notFound(id identity) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n := g.findLocked(id)
	if n == nil || n.state == observed || n.state == absent {
		return e
	}
	n.state, n.deleting, n.foreground = absent, false, false
	for d := range n.dependents {
		e.del(d)
	}
	return e
}

// found takes in that a look-up found an owner that no informer shows. It returns how often it was
// looked up.
func (g *graph) found(id identity, deleting, foreground bool) (effects, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n := g.findLocked(id)
	if n == nil || n.state == observed {
		return e, 0
	}
	first := n.state != live
	news := foreground && !n.foreground
	n.state, n.deleting, n.foreground = live, deleting, foreground
	for d := range n.dependents {
		if news || first && len(d.owners) > 1 {
			e.del(d)
		}
	}
	return e, n.checkedLocked()
}

// unverified takes in that an owner could not be looked up. It returns how often that was.
func (g *graph) unverified(id identity) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.findLocked(id)
	if n == nil || n.state == observed {
		return 0
	}
	return n.checkedLocked()
}

func (n *node) checkedLocked() int {
	if n.checks < 255 {
		n.checks++
	}
	return int(n.checks)
}

// setInvalid takes in that an owner cannot exist.
func (g *graph) setInvalid(id identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.findLocked(id); n != nil && n.state == unknown {
		n.state = invalid
	}
}
