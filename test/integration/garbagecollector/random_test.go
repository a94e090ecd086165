// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package garbagecollector

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/test/integration/framework"
)

var seed = flag.Uint64("gc.seed", 0, "seed of the random graph; 0 chooses one, which is logged")

// node is an object that the random test has made, with what will be known of it at the end.
type node struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	ref             metav1.OwnerReference
	owners          []*node // those whose references can be followed
	lost            int     // references that cannot: to what never was, or to another namespace
	invalid         bool    // has a reference that the collector must not judge by
	// deleted says that the test has, with policy.
	deleted bool
	policy  metav1.DeletionPropagation
	// young ones were made after the first deletion: their owners may have been going already.
	young bool
}

func (n *node) String() string { return fmt.Sprintf("%s %s/%s", n.gvr.Resource, n.namespace, n.name) }

// fate is what must have become of an object.
type fate int

const (
	lives fate = iota
	dies
	// either: it depends on which of two requests the API server saw first.
	either
)

// fateOf judges by what is there at the end: whoever is there has been there all the time.
func (n *node) fateOf(there map[types.UID]bool) fate {
	switch {
	case n.deleted:
		return dies
	case n.invalid, len(n.owners)+n.lost == 0:
		return lives
	}
	orphaned := 0
	for _, owner := range n.owners {
		if there[owner.ref.UID] {
			return lives
		}
		if owner.deleted && owner.policy == metav1.DeletePropagationOrphan {
			orphaned++
		}
	}
	switch {
	case orphaned == 0:
		return dies
	// An owner with owners of its own may have been collected before it was orphaned.
	case orphaned == len(n.owners) && n.lost == 0 && !n.young && !slices.ContainsFunc(n.owners, func(o *node) bool { return len(o.owners)+o.lost > 0 }):
		return lives
	default:
		return either
	}
}

// randomGraph is a graph of objects of several kinds in two namespaces and outside of any.
type randomGraph struct {
	*space
	rng   *rand.Rand
	kinds []framework.CustomKind
	nodes []*node
	other string // a second namespace
}

// add makes an object with up to three owners among those that were made before.
func (g *randomGraph) add(young bool) *node {
	kind := g.kinds[g.rng.IntN(len(g.kinds))]
	n := &node{gvr: kind.Resource(), name: fmt.Sprintf("n-%d", len(g.nodes)), young: young}
	if !kind.ClusterScoped {
		n.namespace = []string{g.ns, g.other}[g.rng.IntN(2)]
	}
	var refs []metav1.OwnerReference
	add := func(ref metav1.OwnerReference) {
		ref.BlockOwnerDeletion = new(g.rng.IntN(2) == 0)
		refs = append(refs, ref)
	}
	for range min(g.rng.IntN(4), len(g.nodes)) {
		owner := g.nodes[g.rng.IntN(len(g.nodes))]
		if slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == owner.ref.UID }) {
			continue
		}
		switch {
		case n.namespace == "" && owner.namespace != "":
			n.invalid = true
		case owner.namespace == "" || owner.namespace == n.namespace:
			n.owners = append(n.owners, owner)
		default:
			n.lost++
		}
		add(owner.ref)
	}
	if g.rng.IntN(20) == 0 {
		n.lost++
		add(metav1.OwnerReference{APIVersion: kind.Resource().GroupVersion().String(), Kind: kind.Kind, Name: "never-was", UID: types.UID(fmt.Sprintf("ghost-%d", len(g.nodes)))})
	}
	if n.invalid {
		// The collector does nothing about it, so that an owner that it blocked would wait for ever.
		for i := range refs {
			refs[i].BlockOwnerDeletion = nil
		}
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(kind.Resource().GroupVersion().String())
	obj.SetKind(kind.Kind)
	obj.SetName(n.name)
	obj.SetOwnerReferences(refs)
	made, err := g.dynamic(n.gvr).Namespace(n.namespace).Create(g.t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	n.ref = metav1.OwnerReference{APIVersion: obj.GetAPIVersion(), Kind: kind.Kind, Name: n.name, UID: made.GetUID()}
	g.nodes = append(g.nodes, n)
	return n
}

// delete deletes an object, unless the collector was faster.
func (g *randomGraph) delete(n *node, policy metav1.DeletionPropagation) {
	err := g.dynamic(n.gvr).Namespace(n.namespace).Delete(g.t.Context(), n.name,
		metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &n.ref.UID}})
	switch {
	case err == nil:
		n.deleted, n.policy = true, policy
	case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		g.t.Fatal(err)
	}
}

// replace makes another object of the name of one that is gone, which nobody owns and who owns nobody.
func (g *randomGraph) replace(n *node) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(n.ref.APIVersion)
	obj.SetKind(n.ref.Kind)
	obj.SetName(n.name)
	made, err := g.dynamic(n.gvr).Namespace(n.namespace).Create(g.t.Context(), obj, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return // not gone yet
	}
	if err != nil {
		g.t.Fatal(err)
	}
	ref := n.ref
	ref.UID = made.GetUID()
	g.nodes = append(g.nodes, &node{gvr: n.gvr, namespace: n.namespace, name: n.name, ref: ref, young: true})
}

// there returns the objects of the kinds that are there, and one that is on its way out, if any.
func (g *randomGraph) there(ctx context.Context) (uids map[types.UID]bool, going string, err error) {
	uids = map[types.UID]bool{}
	for _, kind := range g.kinds {
		list, err := g.dynamic(kind.Resource()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, "", err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if !slices.Contains([]string{"", g.ns, g.other}, obj.GetNamespace()) {
				continue
			}
			uids[obj.GetUID()] = true
			if obj.GetDeletionTimestamp() != nil {
				going = fmt.Sprintf("%s %s/%s with finalizers %v", kind.Plural, obj.GetNamespace(), obj.GetName(), obj.GetFinalizers())
			}
		}
	}
	return uids, going, nil
}

// settled returns what is there, and an error as long as something has not met its fate.
func (g *randomGraph) settled(ctx context.Context) (map[types.UID]bool, error) {
	uids, going, err := g.there(ctx)
	if err != nil {
		return nil, err
	}
	if going != "" {
		return nil, errors.New(going)
	}
	for _, n := range g.nodes {
		switch there := uids[n.ref.UID]; n.fateOf(uids) {
		case lives:
			if !there {
				return nil, fmt.Errorf("%s is gone", n)
			}
		case dies:
			if there {
				return nil, fmt.Errorf("%s is there", n)
			}
		}
	}
	return uids, nil
}

// TestRandomGraph makes random owners and dependents on a real API server, deletes some with every policy while others
// are made, gives names of the deleted to new objects, and compares what is left with what must be.
func TestRandomGraph(t *testing.T) {
	chosen := *seed
	if chosen == 0 {
		chosen = rand.Uint64()
	}
	t.Logf("-gc.seed=%d", chosen)
	s := newSpace(t)
	g := &randomGraph{space: s, rng: rand.New(rand.NewPCG(chosen, 1)), other: s.env.Namespace(t, "gc-other")}
	g.kinds = append(g.kinds, framework.CustomKind{Plural: "configmaps", Kind: "ConfigMap"})
	for _, kind := range []framework.CustomKind{
		{Group: "random.gc.kcm.example.com", Plural: "apples", Kind: "Apple"},
		{Group: "random.gc.kcm.example.com", Plural: "pears", Kind: "Pear"},
		{Group: "random.gc.kcm.example.com", Plural: "trees", Kind: "Tree", ClusterScoped: true},
	} {
		s.env.CustomResource(t, kind)
		g.kinds = append(g.kinds, kind)
	}
	_, gc := start(t, s.env)
	const objects = 250
	for range objects {
		g.add(false)
	}
	s.env.WaitFor(t, "the graph to know every object", timeout, func(ctx context.Context) (bool, error) {
		there, _, err := g.there(ctx)
		if err != nil {
			return false, err
		}
		for uid := range there {
			if !gc.GraphHasUID(uid) {
				return false, fmt.Errorf("%s is not in the graph", uid)
			}
		}
		return true, nil
	})
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for range objects / 2 {
		switch n := g.nodes[g.rng.IntN(len(g.nodes))]; {
		case n.deleted:
			g.replace(n)
		case g.rng.IntN(3) == 0:
			g.add(true)
		default:
			g.delete(n, policies[g.rng.IntN(len(policies))])
		}
	}
	// What is gone does not come back, so that an object that must live is missed for ever. Those whose fate depends on
	// the order of requests go when they do, with what they own: rest is when nothing has gone for a while.
	var kept map[types.UID]bool
	var since time.Time
	s.env.WaitFor(t, "everything to be gone that must go", timeout, func(ctx context.Context) (bool, error) {
		there, err := g.settled(ctx)
		if err != nil {
			return false, err
		}
		if !maps.Equal(there, kept) {
			kept, since = there, time.Now()
		}
		return time.Since(since) > short, nil
	})
	t.Logf("%d objects were made, %d are left", len(g.nodes), len(kept))
	if len(kept) == 0 || len(kept) == len(g.nodes) {
		t.Error("a graph of which all or nothing is left proves little")
	}
}
