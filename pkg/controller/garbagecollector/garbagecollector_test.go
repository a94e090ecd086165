// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func pod(name string) worldKey    { return worldKey{pods, "ns", name} }
func set(name string) worldKey    { return worldKey{sets, "ns", name} }
func widget(name string) worldKey { return worldKey{widgets, "ns", name} }

func expectRequests(t *testing.T, c *cluster, want ...string) {
	t.Helper()
	got := c.requests()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func expectGone(t *testing.T, c *cluster, keys ...worldKey) {
	t.Helper()
	for _, k := range keys {
		if c.has(k) {
			t.Errorf("%s is still there: %+v", k, c.get(k).ObjectMeta)
		}
	}
}

func expectThere(t *testing.T, c *cluster, keys ...worldKey) {
	t.Helper()
	for _, k := range keys {
		if !c.has(k) {
			t.Errorf("%s is gone", k)
		}
	}
}

// A deletion needs one request for each object, and no read.
func TestBackgroundCascade(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rs := c.create(set("rs"), nil)
		c.settle() // an owner that the graph does not know yet is asked for
		p := c.create(pod("a"), nil, blocking(rs))
		c.create(pod("b"), nil, rs)
		c.settle()
		c.create(widget("w"), nil, p)
		c.settle()
		expectRequests(t, c)
		c.delete(set("rs"), metav1.DeletePropagationBackground)
		c.settle()
		expectGone(t, c, pod("a"), pod("b"), widget("w"))
		expectRequests(t, c, "delete pods ns/a Background", "delete pods ns/b Background", "delete widgets ns/w Background")
	})
}

func TestForegroundCascade(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		d := c.create(widget("d"), nil)
		c.settle() // an owner that the graph does not know yet is asked for
		rs := c.create(set("rs"), nil, blocking(d))
		c.settle()
		c.create(pod("a"), []string{"example.com/hold"}, blocking(rs))
		c.create(pod("b"), nil, rs)
		c.settle()
		c.delete(widget("d"), metav1.DeletePropagationForeground)
		c.settle()
		expectThere(t, c, widget("d"), set("rs"), pod("a"))
		expectGone(t, c, pod("b"))
		c.edit(pod("a"), func(obj *metav1.PartialObjectMetadata) { obj.Finalizers = nil })
		c.settle()
		expectGone(t, c, widget("d"), set("rs"), pod("a"))
		expectRequests(t, c, "delete replicasets ns/rs Foreground", "delete pods ns/a Background", "delete pods ns/b Background",
			"patch replicasets ns/rs merge", "patch widgets ns/d merge")
	})
}

// BC057: the leaf goes, the middle with a finalizer and the root wait.
func TestForegroundWithABlockedMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		root := c.create(pod("root"), nil)
		middle := c.create(pod("middle"), []string{"x/y"}, blocking(root))
		c.create(pod("leaf"), nil, blocking(middle))
		c.delete(pod("root"), metav1.DeletePropagationForeground)
		c.settle()
		expectGone(t, c, pod("leaf"))
		expectThere(t, c, pod("middle"), pod("root"))
		c.edit(pod("middle"), func(obj *metav1.PartialObjectMetadata) { obj.Finalizers = nil })
		c.settle()
		expectGone(t, c, pod("middle"), pod("root"))
	})
}

// What was deleted in the foreground while nobody collected goes when somebody does.
func TestForegroundDeletionBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context())
		rs := c.create(set("rs"), nil)
		c.create(pod("a"), nil, blocking(rs))
		c.delete(set("rs"), metav1.DeletePropagationForeground)
		c.stop()
		c.restart(t.Context(), pods, sets)
		defer func() { c.stop() }()
		c.settle()
		expectGone(t, c, set("rs"), pod("a"))
	})
}

func TestForegroundCycle(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.create(pod("a"), nil)
		b := c.create(pod("b"), nil, blocking(a))
		last := c.create(pod("c"), nil, blocking(b))
		c.edit(pod("a"), func(obj *metav1.PartialObjectMetadata) {
			obj.OwnerReferences = []metav1.OwnerReference{blocking(last)}
		})
		c.settle()
		c.delete(pod("a"), metav1.DeletePropagationForeground)
		c.settle()
		expectGone(t, c, pod("a"), pod("b"), pod("c"))
	})
}

func TestNonBlockingReferenceDoesNotBlock(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rs := c.create(set("rs"), nil)
		explicit := rs
		explicit.BlockOwnerDeletion = ptr.To(false)
		c.create(pod("a"), []string{"x/y"}, rs)
		c.create(pod("b"), []string{"x/y"}, explicit)
		c.settle()
		c.delete(set("rs"), metav1.DeletePropagationForeground)
		c.settle()
		expectGone(t, c, set("rs"))
		expectThere(t, c, pod("a"), pod("b"))
	})
}

func TestSolidOwnerDoesNotBlockWaitingOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		waiting, solid := c.create(set("waiting"), nil), c.create(set("solid"), nil)
		c.settle() // an owner that the graph does not know yet is asked for
		c.create(pod("p"), nil, blocking(waiting), solid)
		c.create(widget("w"), nil, blocking(waiting), solid)
		c.settle()
		c.delete(set("waiting"), metav1.DeletePropagationForeground)
		c.settle()
		expectGone(t, c, set("waiting"))
		for _, k := range []worldKey{pod("p"), widget("w")} {
			if refs := c.get(k).OwnerReferences; len(refs) != 1 || refs[0].Name != "solid" {
				t.Errorf("%s has owners %v", k, refs)
			}
		}
		expectRequests(t, c, "patch pods ns/p strategic", "patch widgets ns/w strategic", "patch widgets ns/w merge", "patch replicasets ns/waiting merge")
		if len(c.gc.written) > 0 {
			t.Errorf("writes that the cache shows are still remembered: %v", c.gc.written)
		}
	})
}

func TestOrphaning(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rs := c.create(set("rs"), nil)
		other := c.create(set("other"), nil)
		c.create(pod("a"), nil, rs)
		c.create(pod("b"), nil, rs, other)
		c.create(widget("w"), nil, rs)
		c.create(widget("w2"), nil, rs)
		c.settle()
		c.edit(pod("b"), func(obj *metav1.PartialObjectMetadata) { obj.Labels = map[string]string{"not": "delivered"} })
		c.edit(widget("w"), func(obj *metav1.PartialObjectMetadata) { obj.Labels = map[string]string{"not": "delivered"} })
		c.delete(set("rs"), metav1.DeletePropagationOrphan)
		c.deliver(set("rs"))
		synctest.Wait()
		// The owner's end is known before the dependents' new state.
		c.deliver(set("rs"))
		synctest.Wait()
		c.settle()
		expectGone(t, c, set("rs"))
		expectThere(t, c, pod("a"), pod("b"), widget("w"), widget("w2"))
		if refs := c.get(pod("b")).OwnerReferences; len(refs) != 1 || refs[0].UID != other.UID {
			t.Errorf("b has owners %v, want the other one", refs)
		}
	})
}

func TestOrphanDependentsFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rs := c.create(set("rs"), nil)
		c.create(pod("a"), nil, rs)
		c.create(pod("b"), nil, rs)
		c.settle()
		broken := errors.New("broken")
		c.fail = func(verb string, k worldKey) error {
			if verb == "patch" && k.name == "a" {
				return broken
			}
			return nil
		}
		owner := c.gc.builder.monitors[sets].key
		id := identity{kind: owner, namespace: "ns", name: "rs", uid: rs.UID}
		c.edit(set("rs"), func(obj *metav1.PartialObjectMetadata) { obj.Finalizers = []string{metav1.FinalizerOrphanDependents} })
		err := c.gc.orphanDependents(t.Context(), id, c.gc.builder.graph.dependentsOf(id))
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "failed to orphan dependents of owner ") {
			t.Errorf("error %v", err)
		}
		c.delete(set("rs"), metav1.DeletePropagationOrphan)
		c.settle()
		expectThere(t, c, set("rs"))
		c.mu.Lock()
		c.fail = nil
		c.mu.Unlock()
		time.Sleep(time.Hour)
		c.settle()
		expectGone(t, c, set("rs"))
		expectThere(t, c, pod("a"), pod("b"))
	})
}

// One look-up for an owner, however many dependents wait, and none for those that come later.
func TestAbsentOwnerIsLookedUpOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		ghost := ref("apps/v1", "ReplicaSet", "ghost", "ghost")
		want := []string{"get replicasets ns/ghost"}
		for i := range 50 {
			name := fmt.Sprint("p", i)
			c.create(pod(name), nil, ghost)
			want = append(want, "delete pods ns/"+name+" Background")
		}
		c.settle()
		c.create(pod("late"), nil, ghost)
		c.settle()
		expectRequests(t, c, append(want, "delete pods ns/late Background")...)
	})
}

// Dependents in many namespaces of one cluster-scoped owner whose kind nobody watches.
func TestAbsentClusterScopedOwnerIsLookedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context(), pods)
		defer c.stop()
		want := []string{"get nodes /ghost"}
		for _, ns := range []string{"a", "b", "c"} {
			c.create(worldKey{pods, ns, "p"}, nil, ref("v1", "Node", "ghost", "ghost"))
			want = append(want, "delete pods "+ns+"/p Background")
		}
		c.settle()
		expectRequests(t, c, want...)
	})
}

// A name that another object has by now is no owner.
func TestUIDReuse(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		old := c.create(set("rs"), nil)
		c.create(pod("p"), nil, old)
		c.settle()
		c.delete(set("rs"), metav1.DeletePropagationBackground)
		again := c.create(set("rs"), nil)
		c.create(pod("q"), nil, again)
		c.settle()
		expectGone(t, c, pod("p"))
		expectThere(t, c, set("rs"), pod("q"))
		c.create(pod("r"), nil, ref("apps/v1", "ReplicaSet", "rs", "never-seen"))
		c.settle()
		expectGone(t, c, pod("r"))
		expectThere(t, c, set("rs"), pod("q"))
	})
}

func TestDeleteConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *cluster, owner metav1.OwnerReference)
		gone   bool
		want   []string
	}{
		"only the version": {
			change: func(c *cluster, _ metav1.OwnerReference) {
				c.edit(pod("p"), func(obj *metav1.PartialObjectMetadata) { obj.Labels = map[string]string{"a": "b"} })
			},
			gone: true,
			want: []string{"delete pods ns/p Background", "get pods ns/p", "delete pods ns/p Background any version"},
		},
		"a new owner": {
			change: func(c *cluster, owner metav1.OwnerReference) {
				c.edit(pod("p"), func(obj *metav1.PartialObjectMetadata) { obj.OwnerReferences = []metav1.OwnerReference{owner} })
			},
			want: []string{"delete pods ns/p Background", "get pods ns/p"},
		},
		"another finalizer": {
			change: func(c *cluster, _ metav1.OwnerReference) {
				c.edit(pod("p"), func(obj *metav1.PartialObjectMetadata) {
					obj.Finalizers = []string{metav1.FinalizerOrphanDependents}
				})
			},
			want: []string{"delete pods ns/p Background", "get pods ns/p", "delete pods ns/p Orphan", "patch pods ns/p merge"},
			gone: true,
		},
		"replaced": {
			change: func(c *cluster, owner metav1.OwnerReference) {
				c.delete(pod("p"), metav1.DeletePropagationBackground)
				c.create(pod("p"), nil, owner)
			},
			want: []string{"delete pods ns/p Background", "get pods ns/p"},
		},
		"gone": {
			change: func(c *cluster, _ metav1.OwnerReference) { c.delete(pod("p"), metav1.DeletePropagationBackground) },
			want:   []string{"delete pods ns/p Background"},
			gone:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				rs, owner := c.create(set("rs"), nil), c.create(set("other"), nil)
				c.settle() // an owner that the graph does not know yet is asked for
				c.create(pod("p"), nil, rs)
				c.settle()
				c.delete(set("rs"), metav1.DeletePropagationBackground)
				var once atomic.Bool
				c.before = func(verb string, k worldKey) {
					if verb == "delete" && once.CompareAndSwap(false, true) {
						tc.change(c, owner)
					}
				}
				c.settle()
				if c.has(pod("p")) == tc.gone {
					t.Errorf("p is there: %t", !tc.gone)
				}
				expectRequests(t, c, tc.want...)
			})
		})
	}
}

// Upstream's TestConflictingData, by what a user sees.
func TestConflictingData(t *testing.T) {
	type step = func(c *cluster)
	const ns1, ns2 = "ns1", "ns2"
	child := func(gvr schema.GroupVersionResource, ns string, owners ...metav1.OwnerReference) step {
		return func(c *cluster) { c.create(worldKey{gvr, ns, "child"}, nil, owners...) }
	}
	named := func(ns, name string, owner metav1.OwnerReference) step {
		return func(c *cluster) { c.create(worldKey{pods, ns, name}, nil, owner) }
	}
	// The first object that is created in a world has the UID uid-1.
	owner := func(gvr schema.GroupVersionResource, ns string) step {
		return func(c *cluster) { c.create(worldKey{gvr, ns, "owner"}, nil) }
	}
	toSet := func(apiVersion, uid string) metav1.OwnerReference { return ref(apiVersion, "ReplicaSet", "owner", uid) }
	for name, tc := range map[string]struct {
		steps []step
		there []worldKey
		gone  []worldKey
		event bool
	}{
		"good child -> cluster-scoped owner": {
			steps: []step{owner(nodes, ""), child(pods, ns1, ref("v1", "Node", "owner", "uid-1"))},
			there: []worldKey{{pods, ns1, "child"}},
		},
		"bad child in ns1 -> owner in ns2 (child first)": {
			steps: []step{child(pods, ns1, toSet("apps/v1", "uid-2")), owner(sets, ns2)},
			gone:  []worldKey{{pods, ns1, "child"}}, there: []worldKey{{sets, ns2, "owner"}},
		},
		"bad child in ns1 -> owner in ns2 (owner first)": {
			steps: []step{owner(sets, ns2), child(pods, ns1, toSet("apps/v1", "uid-1")), named(ns2, "good", toSet("apps/v1", "uid-1"))},
			gone:  []worldKey{{pods, ns1, "child"}}, there: []worldKey{{sets, ns2, "owner"}, {pods, ns2, "good"}}, event: true,
		},
		"bad cluster-scoped child -> owner in ns1 (child first)": {
			steps: []step{child(nodes, "", toSet("apps/v1", "uid-2")), owner(sets, ns1)},
			there: []worldKey{{nodes, "", "child"}}, event: true,
		},
		"bad cluster-scoped child -> owner in ns1 (owner first)": {
			steps: []step{owner(sets, ns1), child(nodes, "", toSet("apps/v1", "uid-1"))},
			there: []worldKey{{nodes, "", "child"}}, event: true,
		},
		"good child -> existing owner with non-preferred accessible API version": {
			steps: []step{owner(sets, ns1), child(pods, ns1, toSet("apps/v1beta1", "uid-1"))},
			there: []worldKey{{pods, ns1, "child"}},
		},
		"child -> existing owner with inaccessible API version (child first)": {
			steps: []step{child(pods, ns1, toSet("foo/v1", "uid-2")), owner(sets, ns1)},
			there: []worldKey{{pods, ns1, "child"}},
		},
		"child -> existing owner with inaccessible API version (owner first)": {
			steps: []step{owner(sets, ns1), child(pods, ns1, toSet("foo/v1", "uid-1"))},
			there: []worldKey{{pods, ns1, "child"}},
		},
		"child -> non-existent owner with inaccessible API version (inaccessible first)": {
			steps: []step{child(pods, ns1, toSet("foo/v1", "x")), named(ns1, "good", toSet("apps/v1", "x"))},
			there: []worldKey{{pods, ns1, "child"}}, gone: []worldKey{{pods, ns1, "good"}},
		},
		"child -> non-existent owner with inaccessible API version (accessible first)": {
			steps: []step{named(ns1, "good", toSet("apps/v1", "x")), child(pods, ns1, toSet("foo/v1", "x"))},
			there: []worldKey{{pods, ns1, "child"}}, gone: []worldKey{{pods, ns1, "good"}},
		},
		"child -> non-existent owner, kind served in another version only": {
			steps: []step{child(pods, ns1, toSet("apps/v7", "x")), named(ns1, "good", toSet("apps/v1", "x"))},
			there: []worldKey{{pods, ns1, "child"}}, gone: []worldKey{{pods, ns1, "good"}},
		},
		"bad child -> existing owner with incorrect kind": {
			steps: []step{child(pods, ns1, ref("v1", "Pod", "owner", "uid-3")), named(ns1, "good", toSet("apps/v1", "uid-3")), owner(sets, ns1)},
			gone:  []worldKey{{pods, ns1, "child"}}, there: []worldKey{{pods, ns1, "good"}, {sets, ns1, "owner"}},
		},
		"bad child after the good one": {
			steps: []step{named(ns1, "good", toSet("apps/v1", "uid-3")), child(pods, ns1, ref("v1", "Pod", "owner", "uid-3")), owner(sets, ns1)},
			gone:  []worldKey{{pods, ns1, "child"}}, there: []worldKey{{pods, ns1, "good"}, {sets, ns1, "owner"}},
		},
		"cluster-scoped bad child, namespaced good child, missing parent": {
			steps: []step{child(nodes, "", toSet("apps/v1", "x")), named(ns1, "good", toSet("apps/v1", "x"))},
			gone:  []worldKey{{pods, ns1, "good"}}, there: []worldKey{{nodes, "", "child"}},
		},
		"cluster-scoped bad child, namespaced good child, late observed parent": {
			steps: []step{child(nodes, "", toSet("apps/v1", "uid-3")), named(ns1, "good", toSet("apps/v1", "uid-3")), owner(sets, ns1)},
			there: []worldKey{{nodes, "", "child"}, {pods, ns1, "good"}, {sets, ns1, "owner"}}, event: true,
		},
		"namespaced good child, cluster-scoped bad child, missing parent": {
			steps: []step{named(ns1, "good", toSet("apps/v1", "x")), child(nodes, "", toSet("apps/v1", "x"))},
			gone:  []worldKey{{pods, ns1, "good"}}, there: []worldKey{{nodes, "", "child"}},
		},
	} {
		for _, atOnce := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/at once %t", name, atOnce), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					for i, step := range tc.steps {
						step(c)
						if !atOnce && i == len(tc.steps)-1 {
							c.settle()
						}
					}
					for _, k := range c.dirtyKeys() {
						c.deliver(k)
					}
					c.settle()
					expectGone(t, c, tc.gone...)
					expectThere(t, c, tc.there...)
					if !tc.event {
						return
					}
					found := false
					for _, a := range c.kube.Actions() {
						found = found || a.GetVerb() == "create" && a.GetResource().Resource == "events"
					}
					events, err := c.kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
					if err != nil || len(events.Items) == 0 {
						t.Fatalf("no event: %v", err)
					}
					e := events.Items[0]
					if !found || e.Reason != reasonInvalidNamespace || e.Type != corev1.EventTypeWarning || e.Source.Component != "garbage-collector-controller" {
						t.Errorf("event %+v", e)
					}
				})
			})
		}
	}
}

// An owner of a kind that nobody watches lives as long as look-ups find it.
func TestUnwatchedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context(), pods)
		defer c.stop()
		w := c.create(widget("w"), nil)
		c.create(pod("p"), nil, w)
		c.settle()
		expectThere(t, c, pod("p"))
		c.delete(widget("w"), metav1.DeletePropagationBackground)
		time.Sleep(maxCheck)
		c.settle()
		expectGone(t, c, pod("p"))
	})
}

// A 404 that is not about the object, as while its CRD is away, proves nothing.
func TestUnservedResourceIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context(), pods)
		defer c.stop()
		w := c.create(widget("w"), nil)
		c.create(pod("p"), nil, w)
		c.fail = func(verb string, k worldKey) error {
			if k.gvr == widgets {
				return apierrors.NewGenericServerResponse(404, verb, k.gvr.GroupResource(), k.name, "404 page not found", 0, true)
			}
			return nil
		}
		time.Sleep(time.Hour)
		c.settle()
		expectThere(t, c, pod("p"))
	})
}

// While the first list of a resource is to come, nothing is concluded from what is not in the graph
// yet, and everything else is collected.
func TestPendingResource(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := c.watch(widgets)
		m.ready.Store(false)
		w := c.create(widget("w"), nil)
		c.create(pod("p"), nil, w)
		c.create(pod("ghostly"), nil, ref("example.com/v1", "Widget", "ghost", "ghost"))
		rs := c.create(set("rs"), nil)
		fg := c.create(set("fg"), nil)
		orphaned := c.create(set("orphaned"), nil)
		c.create(widget("orphan"), nil, orphaned)
		c.create(widget("late"), nil, blocking(fg))
		c.create(pod("q"), nil, rs)
		c.delete(set("rs"), metav1.DeletePropagationBackground)
		c.delete(set("fg"), metav1.DeletePropagationForeground)
		c.delete(set("orphaned"), metav1.DeletePropagationOrphan)
		for _, k := range c.dirtyKeys() {
			if k.gvr != widgets {
				c.deliver(k)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expectGone(t, c, pod("q"))
		expectThere(t, c, set("fg"), set("orphaned"))
		if c.gc.IsSynced(testLogger(t)) {
			t.Error("synced without widgets")
		}
		for _, r := range c.requests() {
			if strings.HasPrefix(r, "get widgets") {
				t.Error("looked up an owner that the list will show")
			}
		}
		if n := c.gc.builder.attemptToDelete.Record().Syncs; n > 100 {
			t.Errorf("%d syncs while waiting", n)
		}
		for _, k := range c.dirtyKeys() {
			c.deliver(k)
		}
		c.gc.builder.changes.AddInitial(change{monitor: m, marker: true})
		c.settle()
		expectGone(t, c, set("fg"), set("orphaned"), widget("late"), pod("ghostly"))
		expectThere(t, c, widget("orphan"), pod("p"))
		if !c.gc.IsSynced(testLogger(t)) {
			t.Error("not synced")
		}
	})
}

// A resource that cannot be listed at all holds nothing up for long.
func TestResourceThatIsNeverListed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := c.watch(widgets)
		m.ready.Store(false)
		fg := c.create(set("fg"), nil)
		c.create(pod("p"), nil, blocking(fg))
		c.create(pod("q"), nil, ref("example.com/v1", "Widget", "ghost", "ghost"))
		c.delete(set("fg"), metav1.DeletePropagationForeground)
		for _, k := range c.dirtyKeys() {
			c.deliver(k)
		}
		time.Sleep(31 * time.Second)
		c.settle()
		expectGone(t, c, set("fg"), pod("p"), pod("q"))
		r := resourceReport{c.gc.builder}
		if rec := r.Record(); rec.FailingCount != 1 || rec.Failing[0].Key != widgets.String() || r.Check(time.Now()) != nil {
			t.Errorf("record %+v", rec)
		}
	})
}

func TestConstruction(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		if _, err := NewComposedGarbageCollector(t.Context(), c.kube, c.world, newMapper(), c.gc.builder); err == nil {
			t.Error("one builder serves two collectors")
		}
		if got := len(c.gc.Workers()); got != 4 {
			t.Errorf("%d workers", got)
		}
		if c.gc.GraphHasUID("x") {
			t.Error("has an unknown UID")
		}
	})
}
