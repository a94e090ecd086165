// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// history is what has become of every object that ever was.
type history struct {
	t *rapid.T
	c *cluster
	// bad collects violations found while a lock is held.
	bad []string
}

// alive tells whether an owner keeps its dependents: it is in the place that the reference means
// and does not wait for them to go.
func alive(objects map[worldKey]*metav1.PartialObjectMetadata, dependent worldKey, r metav1.OwnerReference) (there, waits bool) {
	for k, o := range objects {
		if o.UID != r.UID || o.Name != r.Name || o.Kind != r.Kind {
			continue
		}
		if k.namespace == "" || k.namespace == dependent.namespace {
			return true, o.DeletionTimestamp != nil && hasFinalizer(o.Finalizers, metav1.FinalizerDeleteDependents)
		}
	}
	return false, false
}

// watchDeletions records a violation when an object with a live owner is deleted.
func (h *history) watchDeletions() {
	h.c.deleting = func(obj *metav1.PartialObjectMetadata) { // the world's lock is held
		k := keyOf(obj)
		if len(obj.OwnerReferences) == 0 {
			h.bad = append(h.bad, fmt.Sprintf("%s was deleted, which never had an owner", k))
		}
		for _, r := range obj.OwnerReferences {
			if there, waits := alive(h.c.objects, k, r); there && !waits {
				h.bad = append(h.bad, fmt.Sprintf("%s was deleted while its owner %s lives", k, r.Name))
			}
		}
	}
}

func keyOf(obj *metav1.PartialObjectMetadata) worldKey {
	for gvr, r := range served {
		if r.kind.Kind == obj.Kind {
			return worldKey{gvr, obj.Namespace, obj.Name}
		}
	}
	return worldKey{}
}

// checkEnd checks what is left when nothing happens any more.
func (h *history) checkEnd() {
	c := h.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, bad := range h.bad {
		h.t.Error(bad)
	}
	for k, obj := range c.objects {
		anyInvalid, anyLive := false, len(obj.OwnerReferences) == 0
		for _, r := range obj.OwnerReferences {
			there, waits := alive(c.objects, k, r)
			anyLive = anyLive || there && !waits
			anyInvalid = anyInvalid || k.namespace == "" && r.Kind != nodeKind.Kind
		}
		if !anyLive && !anyInvalid && obj.DeletionTimestamp == nil {
			h.t.Errorf("%s is left without an owner: %v", k, obj.OwnerReferences)
		}
		if obj.DeletionTimestamp == nil {
			continue
		}
		if hasFinalizer(obj.Finalizers, metav1.FinalizerOrphanDependents) {
			h.t.Errorf("%s is orphaning for ever", k)
		}
		if !hasFinalizer(obj.Finalizers, metav1.FinalizerDeleteDependents) {
			continue
		}
		blocked := false
		for other, o := range c.objects {
			for _, r := range o.OwnerReferences {
				blocked = blocked || r.UID == obj.UID && blocks(&r) && (k.namespace == "" || other.namespace == k.namespace)
			}
		}
		if !blocked {
			h.t.Errorf("%s waits for dependents that are not there", k)
		}
	}
}

// Random ownership, deletions with every policy, UID reuse, lagging caches and restarts: nothing with
// a live owner is deleted, and everything without one is.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var panicked any // how rapid ends a case, which has to happen on its own goroutine
		synctest.Test(t, func(t *testing.T) {
			defer func() { panicked = recover() }()
			randomHistory(t, rt)
		})
		if panicked != nil {
			panic(panicked)
		}
	})
}

func randomHistory(t *testing.T, rt *rapid.T) {
	c := newCluster(t.Context(), pods, sets, nodes, widgets)
	defer func() { c.stop() }()
	h := &history{t: rt, c: c}
	h.watchDeletions()
	var keys []worldKey
	for _, name := range []string{"a", "b", "c"} {
		keys = append(keys, worldKey{pods, "ns", name}, worldKey{sets, "ns", name}, worldKey{pods, "ns2", name}, worldKey{widgets, "ns", name}, worldKey{nodes, "", name})
	}
	var made []metav1.OwnerReference
	anyKey := func() worldKey { return rapid.SampledFrom(keys).Draw(rt, "key") }
	owners := func() (refs []metav1.OwnerReference) {
		if len(made) == 0 {
			return nil
		}
		for _, r := range rapid.SliceOfN(rapid.SampledFrom(made), 0, 2).Draw(rt, "owners") {
			if rapid.Bool().Draw(rt, "blocking") {
				r = blocking(r)
			}
			if !slices.ContainsFunc(refs, func(o metav1.OwnerReference) bool { return o.UID == r.UID }) {
				refs = append(refs, r)
			}
		}
		return refs
	}
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	rt.Repeat(map[string]func(*rapid.T){
		"create": func(*rapid.T) {
			if k := anyKey(); !c.has(k) {
				made = append(made, c.create(k, nil, owners()...))
			}
		},
		"ghost": func(*rapid.T) {
			if k := anyKey(); !c.has(k) {
				made = append(made, c.create(k, nil, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: types.UID("ghost")}))
			}
		},
		"adopt": func(*rapid.T) {
			refs := owners()
			c.edit(anyKey(), func(obj *metav1.PartialObjectMetadata) { obj.OwnerReferences = refs })
		},
		"touch": func(*rapid.T) {
			c.edit(anyKey(), func(obj *metav1.PartialObjectMetadata) { obj.Generation++ })
		},
		"unblock": func(*rapid.T) {
			c.edit(anyKey(), func(obj *metav1.PartialObjectMetadata) {
				for i := range obj.OwnerReferences {
					obj.OwnerReferences[i].BlockOwnerDeletion = ptr.To(false)
				}
			})
		},
		"delete": func(*rapid.T) { c.delete(anyKey(), rapid.SampledFrom(policies).Draw(rt, "policy")) },
		"deliver": func(*rapid.T) {
			if dirty := c.dirtyKeys(); len(dirty) > 0 {
				c.deliver(rapid.SampledFrom(dirty).Draw(rt, "dirty"))
			}
		},
		"work": func(*rapid.T) { synctest.Wait() },
		"wait": func(*rapid.T) { time.Sleep(time.Second); synctest.Wait() },
		"restart": func(*rapid.T) {
			c.stop()
			c.restart(t.Context(), pods, sets, nodes, widgets)
		},
	})
	for range 3 {
		c.settle()
		time.Sleep(20 * time.Minute) // longer than any back-off or look-up interval
	}
	c.settle()
	h.checkEnd()
}
