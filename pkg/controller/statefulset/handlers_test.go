// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestHandlersEnqueue(t *testing.T) {
	set := newSet(3)
	owned := func() *v1.Pod { return podIn(t, set, 0, "R") }
	orphan := func() *v1.Pod {
		pod := owned()
		pod.OwnerReferences = nil
		return pod
	}
	of := func(pod *v1.Pod, name, kind, apiVersion string) *v1.Pod {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "other", Controller: new(true)}}
		return pod
	}
	named := func(pod *v1.Pod, name string) *v1.Pod { pod.Name = name; return pod }
	going := func(pod *v1.Pod) *v1.Pod { pod.DeletionTimestamp = new(metav1.NewTime(testNow)); return pod }
	labelled := func(pod *v1.Pod) *v1.Pod { pod.Labels = map[string]string{"app": "x"}; return pod }
	for _, test := range []struct {
		name string
		do   func(f *fixture)
		want string
	}{
		{"set added", func(f *fixture) { f.setAdded(set, false) }, "ns/web"},
		{"set in the first list", func(f *fixture) { f.setAdded(set, true) }, "ns/web"},
		{"set updated", func(f *fixture) { f.setUpdated(set, set) }, "ns/web"},
		{"set deleted", func(f *fixture) { f.setDeleted(set) }, "ns/web"},
		{"pod added", func(f *fixture) { f.podEvents.Added(owned(), false) }, "ns/web"},
		{"pod added that goes", func(f *fixture) { f.podEvents.Added(going(owned()), false) }, "ns/web"},
		{"pod of another kind", func(f *fixture) { f.podEvents.Added(of(owned(), "web", "ReplicaSet", "apps/v1"), false) }, ""},
		{"pod of another group", func(f *fixture) { f.podEvents.Added(of(owned(), "web", "StatefulSet", "example.com/v1"), false) }, ""},
		{"pod of another version", func(f *fixture) { f.podEvents.Added(of(owned(), "web", "StatefulSet", "apps/v1beta2"), false) }, "ns/web"},
		{"orphan added", func(f *fixture) { f.podEvents.Added(orphan(), false) }, "ns/web"},
		{"orphan added that goes", func(f *fixture) { f.podEvents.Added(going(orphan()), false) }, ""},
		{"orphan of no set's name", func(f *fixture) { f.podEvents.Added(named(orphan(), "web"), false) }, ""},
		{"pod updated", func(f *fixture) { f.podEvents.Updated(owned(), owned()) }, "ns/web"},
		{"pod given to another set", func(f *fixture) { f.podEvents.Updated(owned(), of(owned(), "db", "StatefulSet", "apps/v1")) }, "ns/db ns/web"},
		{"pod released", func(f *fixture) { f.podEvents.Updated(owned(), orphan()) }, "ns/web"},
		{"orphan relabelled", func(f *fixture) { f.podEvents.Updated(labelled(orphan()), orphan()) }, "ns/web"},
		{"orphan otherwise updated", func(f *fixture) { f.podEvents.Updated(orphan(), orphan()) }, ""},
		{"orphan relabelled that goes", func(f *fixture) { f.podEvents.Updated(labelled(orphan()), going(orphan())) }, ""},
		{"pod deleted", func(f *fixture) { f.podEvents.Deleted(owned()) }, "ns/web"},
		{"orphan deleted", func(f *fixture) { f.podEvents.Deleted(orphan()) }, ""},
		{"claim without owner deleted", func(f *fixture) { f.claimDeleted(&v1.PersistentVolumeClaim{}) }, ""},
		{"claim of a set deleted", func(f *fixture) {
			claim := newClaim(newSet(1, withClaim, retaining(drop, keep)), claimsOf(newSet(1, withClaim), 0, noClaims)[0])
			f.claimDeleted(claim)
		}, "ns/web"},
	} {
		f := newFixture(t)
		test.do(f)
		if got := f.queued(); got != test.want {
			t.Errorf("%s: queued %q, want %q", test.name, got, test.want)
		}
	}
}

// A resync says nothing new, and a deletion that was missed is one all the same.
func TestHandlersOfEvents(t *testing.T) {
	f := newFixture(t)
	handler := f.podEvents.Handler(controllerName)
	pod := podIn(t, newSet(1), 0, "R")
	handler.OnUpdate(pod, pod)
	if got := f.queued(); got != "" {
		t.Errorf("queued %q for the same version", got)
	}
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/web-0", Obj: pod})
	if got := f.queued(); got != "ns/web" {
		t.Errorf("queued %q for a tombstone", got)
	}
}

func TestMemoryGoesWithTheSet(t *testing.T) {
	f := newFixture(t)
	name := types.NamespacedName{Namespace: "ns", Name: "web"}
	set, other := newSet(1), newSet(1)
	other.UID = "other"
	f.memories.of(name, set.UID).blocked = "x"
	f.setDeleted(other)
	if f.memories.of(name, set.UID).blocked != "x" {
		t.Error("another set's deletion forgets this one")
	}
	f.setUpdated(set, other) // made anew
	if len(f.memories.sets) != 0 {
		t.Error("the set is remembered")
	}
	f.memories.of(name, set.UID).blocked = "x"
	if f.memories.of(name, other.UID).blocked != "" {
		t.Error("a set has the memory of its predecessor")
	}
}
