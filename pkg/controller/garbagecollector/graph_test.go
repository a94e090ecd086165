// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var (
	podKind  = schema.GroupKind{Kind: "Pod"}
	nodeKind = schema.GroupKind{Kind: "Node"}
	setKind  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
)

// testGraph is a graph that knows Pods and ReplicaSets as namespaced and Nodes as cluster-scoped.
type testGraph struct {
	*graph
	kinds map[schema.GroupKind]*kind
}

func newTestGraph() *testGraph {
	g := &testGraph{graph: newGraph(), kinds: map[schema.GroupKind]*kind{}}
	for gk, s := range map[schema.GroupKind]scope{podKind: scopeNamespaced, setKind: scopeNamespaced, nodeKind: scopeCluster} {
		g.kinds[gk], _ = g.setScope(gk, s)
	}
	return g
}

func (g *testGraph) id(gk schema.GroupKind, namespace, name, uid string) identity {
	return identity{kind: g.kinds[gk], namespace: namespace, name: name, uid: types.UID(uid)}
}

// pod returns a pod in namespace ns whose UID is its name.
func (g *testGraph) pod(name string) identity { return g.id(podKind, "ns", name, name) }

func ref(apiVersion, kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid)}
}

func podRef(name string) metav1.OwnerReference { return ref("v1", "Pod", name, name) }

func blocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = ptr.To(true)
	return r
}

func idNames(ids []identity) string {
	var names []string
	for _, id := range ids {
		names = append(names, id.name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func expectEffects(t *testing.T, what string, e effects, toDelete, toOrphan string) {
	t.Helper()
	if got := idNames(e.toDelete); got != toDelete {
		t.Errorf("%s: to delete %q, want %q", what, got, toDelete)
	}
	if got := idNames(e.toOrphan); got != toOrphan {
		t.Errorf("%s: to orphan %q, want %q", what, got, toOrphan)
	}
}

func TestGraphLife(t *testing.T) {
	g := newTestGraph()
	owner, child := g.pod("owner"), g.pod("child")
	expectEffects(t, "child of an owner nobody has seen", g.upsert(object{id: child, owners: []metav1.OwnerReference{podRef("owner")}}), "owner", "")
	if !g.hasUID("owner") || !g.hasUID("child") {
		t.Error("the graph lacks the child or its owner")
	}
	expectEffects(t, "the owner appears", g.upsert(object{id: owner}), "", "")
	expectEffects(t, "the owner starts foreground deletion", g.upsert(object{id: owner, deleting: true, foreground: true}), "child owner", "")
	expectEffects(t, "no news", g.upsert(object{id: owner, deleting: true, foreground: true}), "", "")
	expectEffects(t, "a blocking child more", g.upsert(object{id: g.pod("b"), owners: []metav1.OwnerReference{blocking(podRef("owner"))}}), "b", "")
	expectEffects(t, "it blocks no more", g.upsert(object{id: g.pod("b"), owners: []metav1.OwnerReference{podRef("owner")}}), "b owner", "")
	expectEffects(t, "it goes", g.remove(g.pod("b")), "", "")
	expectEffects(t, "the owner goes", g.remove(owner), "child", "")
	expectEffects(t, "the child goes", g.remove(child), "", "")
	if len(g.nodes) != 0 {
		t.Errorf("%d nodes are left", len(g.nodes))
	}
	expectEffects(t, "a late child of the owner that is gone", g.upsert(object{id: child, owners: []metav1.OwnerReference{podRef("owner")}}), "child", "")
}

func TestGraphBlockingDependentGoes(t *testing.T) {
	g := newTestGraph()
	g.upsert(object{id: g.pod("owner"), deleting: true, foreground: true})
	g.upsert(object{id: g.pod("child"), owners: []metav1.OwnerReference{blocking(podRef("owner"))}})
	if f := g.facts(g.pod("owner"), nil); !f.blocked || !f.hasDependents {
		t.Errorf("facts %+v, want blocked with dependents", f)
	}
	expectEffects(t, "the child goes", g.remove(g.pod("child")), "owner", "")
	if f := g.facts(g.pod("owner"), nil); f.blocked || f.hasDependents {
		t.Errorf("facts %+v, want none", f)
	}
}

func TestGraphOrphaning(t *testing.T) {
	g := newTestGraph()
	g.upsert(object{id: g.pod("child"), owners: []metav1.OwnerReference{podRef("owner")}})
	expectEffects(t, "first seen while orphaning", g.upsert(object{id: g.pod("owner"), deleting: true, orphaning: true}), "", "owner")
	if got := idNames(g.dependentsOf(g.pod("owner"))); got != "child" {
		t.Errorf("dependents %q", got)
	}
	g.upsert(object{id: g.pod("child")})
	if got := idNames(g.dependentsOf(g.pod("owner"))); got != "" {
		t.Errorf("dependents %q after the reference is gone", got)
	}
}

// An owner that was looked up is there, until it is not.
func TestGraphLookUps(t *testing.T) {
	g := newTestGraph()
	two := []metav1.OwnerReference{podRef("a"), podRef("b")}
	g.upsert(object{id: g.pod("child"), owners: two})
	e, n := g.found(g.pod("a"), false, false)
	expectEffects(t, "a is live", e, "child", "")
	if _, again := g.found(g.pod("a"), false, false); n != 1 || again != 2 {
		t.Errorf("looked up %d and %d times", n, again)
	}
	expectEffects(t, "b is absent", g.notFound(g.pod("b")), "child", "")
	states := func() (s []refState) {
		for _, r := range g.facts(g.pod("child"), two).refs {
			s = append(s, r.state)
		}
		return s
	}
	if got := states(); !slices.Equal(got, []refState{refSolid, refDangling}) {
		t.Errorf("states %v", got)
	}
	e, _ = g.found(g.pod("a"), true, true)
	expectEffects(t, "a waits for its dependents", e, "child", "")
	if got := states(); got[0] != refWaiting {
		t.Errorf("states %v", got)
	}
	expectEffects(t, "b is restored from a backup", g.upsert(object{id: g.pod("b")}), "child", "")
	if got := states(); got[1] != refSolid {
		t.Errorf("states %v", got)
	}
	if e := g.notFound(g.pod("b")); len(e.toDelete) != 0 {
		t.Error("a late look-up counts more than the informer")
	}
}

// What was watched no longer is not gone.
func TestGraphForget(t *testing.T) {
	g := newTestGraph()
	g.upsert(object{id: g.pod("owner")})
	g.upsert(object{id: g.pod("child"), owners: []metav1.OwnerReference{podRef("owner")}})
	g.upsert(object{id: g.pod("kept")})
	e := g.forgetKind(g.kinds[podKind], func(id identity) bool { return id.name != "owner" })
	expectEffects(t, "forgotten", e, "owner", "")
	if f := g.facts(g.pod("child"), []metav1.OwnerReference{podRef("owner")}); f.refs[0].state != refUnknown {
		t.Errorf("state %v, want unknown", f.refs[0].state)
	}
	if !g.hasUID("kept") {
		t.Error("forgot what was to be kept")
	}
}

// Each identity that dependents claim for one UID has a fate of its own: upstream's
// TestGetAlternateOwnerIdentity, where only one of them is in the graph at a time.
func TestClaimsOfOneUID(t *testing.T) {
	g := newTestGraph()
	good := g.id(podKind, "ns", "child", "c1")
	goodRef := ref("v1", "Pod", "owner", "u")
	claims := map[string]object{
		"kind":      {id: g.pod("k"), owners: []metav1.OwnerReference{ref("v1", "Pud", "owner", "u")}},
		"group":     {id: g.pod("g"), owners: []metav1.OwnerReference{ref("apps/v1", "Pod", "owner", "u")}},
		"namespace": {id: g.id(podKind, "ns2", "n", "n"), owners: []metav1.OwnerReference{goodRef}},
		"name":      {id: g.pod("m"), owners: []metav1.OwnerReference{ref("v1", "Pod", "other", "u")}},
		"cluster":   {id: g.id(nodeKind, "", "x", "x"), owners: []metav1.OwnerReference{goodRef}},
	}
	for name, o := range claims {
		if e := g.upsert(o); len(e.toDelete) != 1 || e.toDelete[0].uid != "u" {
			t.Errorf("%s: to delete %v, want the claimed owner", name, e.toDelete)
		}
	}
	g.upsert(object{id: good, owners: []metav1.OwnerReference{goodRef}})
	v2 := object{id: g.pod("v"), owners: []metav1.OwnerReference{ref("v2", "Pod", "owner", "u")}}
	g.upsert(v2)
	g.upsert(object{id: g.id(podKind, "ns", "owner", "u")})

	for name, o := range claims {
		want := refUnknown
		if name == "cluster" {
			want = refInvalid
		}
		if got := g.facts(o.id, o.owners).refs[0].state; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, o := range []object{{id: good, owners: []metav1.OwnerReference{goodRef}}, v2} {
		if got := g.facts(o.id, o.owners).refs[0].state; got != refSolid {
			t.Errorf("%v: %v, want solid", o.id, got)
		}
	}
	claimed := g.id(podKind, "ns2", "owner", "u")
	expectEffects(t, "the claim of another namespace is found absent", g.notFound(claimed), "n", "")
	if got := g.facts(good, []metav1.OwnerReference{goodRef}).refs[0].state; got != refSolid {
		t.Errorf("the good child's owner is %v, want solid", got)
	}
	if got := idNames(g.dependentsOf(g.id(podKind, "ns", "owner", "u"))); got != "child g k v" {
		t.Errorf("dependents that orphaning has to part: %q", got)
	}
}

func TestInvalidNamespaceIsReported(t *testing.T) {
	for _, ownerFirst := range []bool{false, true} {
		for _, child := range []string{"ns2", ""} {
			g := newTestGraph()
			kind := podKind
			if child == "" {
				kind = nodeKind
			}
			events := []func() effects{
				func() effects {
					return g.upsert(object{id: g.id(kind, child, "child", "c"), owners: []metav1.OwnerReference{podRef("owner")}})
				},
				func() effects { return g.upsert(object{id: g.pod("owner")}) },
			}
			if ownerFirst {
				slices.Reverse(events)
			}
			var reported []invalidRef
			for _, event := range events {
				reported = append(reported, event().invalid...)
			}
			if len(reported) != 1 || reported[0].dependent.name != "child" {
				t.Fatalf("owner first %t, child in %q: reported %v", ownerFirst, child, reported)
			}
			want := fmt.Sprintf("[v1/Pod, namespace: %s, name: owner, uid: owner]", child)
			if got := describeRef(reported[0]); got != want {
				t.Errorf("described as %s, want %s", got, want)
			}
		}
	}
	g := newTestGraph()
	g.upsert(object{id: g.id(nodeKind, "", "n", "n")})
	if e := g.upsert(object{id: g.pod("p"), owners: []metav1.OwnerReference{ref("v1", "Node", "n", "n")}}); len(e.invalid)+len(e.toDelete) != 0 {
		t.Errorf("effects %v of a good reference to a cluster-scoped owner", e)
	}
}

// A scope that becomes known later finds those who referred to the kind before.
func TestScopeIsLearned(t *testing.T) {
	g := newTestGraph()
	refs := []metav1.OwnerReference{ref("example.com/v1", "Zone", "z", "z")}
	g.upsert(object{id: g.pod("p"), owners: refs})
	k, e := g.setScope(schema.GroupKind{Group: "example.com", Kind: "Zone"}, scopeCluster)
	expectEffects(t, "known as cluster-scoped", e, "z", "")
	expectEffects(t, "observed", g.upsert(object{id: identity{kind: k, name: "z", uid: "z"}}), "", "")
	if got := g.facts(g.pod("p"), refs).refs[0].state; got != refSolid {
		t.Errorf("state %v, want solid", got)
	}
	if e := g.upsert(object{id: g.pod("p"), owners: refs}); len(e.toDelete) != 0 {
		t.Errorf("the same references count as changed: %v", e)
	}
}

// snapshotText is all that a graph knows, to compare two graphs.
func snapshotText(g *graph) string {
	var lines []string
	for n := range g.eachLocked {
		if n.state != observed && len(n.dependents) == 0 {
			lines = append(lines, "LEFT OVER")
		}
		var owners []string
		for _, ref := range n.owners {
			owners = append(owners, fmt.Sprint(ref.owner.id, ref.blocking))
		}
		lines = append(lines, fmt.Sprint(n.id, n.state, n.deleting, n.foreground, n.orphaning, owners, len(n.dependents)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The order of events does not matter: each tells the latest of one object, or that it is gone.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			gone bool
			o    object
		}
		names := []string{"a", "b", "c", "d", "e", "f"}
		build := func(g *testGraph, seed []event) { // identities belong to a graph
			for _, ev := range seed {
				o := ev.o
				o.id = g.id(podKind, o.id.namespace, o.id.name, string(o.id.uid))
				g.upsert(o)
				if ev.gone {
					g.remove(o.id)
				}
			}
		}
		var events []event
		for _, name := range names {
			var refs []metav1.OwnerReference
			for _, owner := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "owners of "+name) {
				r := podRef(owner)
				r.BlockOwnerDeletion = ptr.To(rapid.Bool().Draw(t, "blocking"))
				refs = append(refs, r)
			}
			deleting := rapid.Bool().Draw(t, "deleting")
			events = append(events, event{
				gone: rapid.Bool().Draw(t, "gone"),
				o: object{id: identity{namespace: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "ns"), name: name, uid: types.UID(name)},
					owners: refs, deleting: deleting, foreground: deleting && rapid.Bool().Draw(t, "foreground")},
			})
		}
		one, two := newTestGraph(), newTestGraph()
		build(one, events)
		build(two, rapid.Permutation(events).Draw(t, "order"))
		// Whether an owner without an informer's view was seen deleted or never seen depends on the
		// order, and so does whether it will be looked up. Look everything up.
		for _, g := range []*testGraph{one, two} {
			for _, id := range virtuals(g.graph) {
				g.notFound(id)
			}
		}
		if a, b := snapshotText(one.graph), snapshotText(two.graph); a != b {
			t.Fatalf("graphs differ:\n%s\n\n%s", a, b)
		}
	})
}

func virtuals(g *graph) (ids []identity) {
	for n := range g.eachLocked {
		if n.state != observed {
			ids = append(ids, n.id)
		}
	}
	return ids
}
