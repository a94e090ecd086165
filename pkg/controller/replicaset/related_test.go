// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func podSets(sets []*apps.ReplicaSet) string {
	var all []string
	for _, set := range sets {
		all = append(all, set.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func ownedBy(set *apps.ReplicaSet, uid types.UID) *apps.ReplicaSet {
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d-" + string(uid), UID: uid, Controller: new(true)}}
	return set
}

func TestSiblings(t *testing.T) {
	a, b, other := ownedBy(newSet("a", 1), "d1"), ownedBy(newSet("b", 1), "d1"), ownedBy(newSet("other", 1), "d2")
	pendingDeletion := ownedBy(newSet("gone", 1), "d1")
	pendingDeletion.DeletionTimestamp = new(metav1.NewTime(testNow))
	lone := newSet("lone", 1)
	for _, tc := range []struct {
		name string
		all  []runtime.Object
		of   *apps.ReplicaSet
		want string
	}{
		{"those of the same controller", []runtime.Object{a, b, other, lone}, a, "a b"},
		{"in deletion too", []runtime.Object{pendingDeletion, a}, a, "a gone"},
		{"of one in deletion", []runtime.Object{pendingDeletion}, pendingDeletion, "gone"},
		{"none but itself", []runtime.Object{a, other}, a, "a"},
		{"without controller", []runtime.Object{a, lone, newSet("lone-too", 1)}, lone, "lone"},
	} {
		f := newFixture(t, 1, tc.all...)
		got, err := f.kind.Siblings(tc.of)
		if err != nil || podSets(got) != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, podSets(got), err, tc.want)
		}
	}
}

func TestRelatedPods(t *testing.T) {
	selecting := func(set *apps.ReplicaSet, value string) *apps.ReplicaSet {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"set": value}}
		return set
	}
	of := func(value string) podOption { return labelled(map[string]string{"set": value}) }
	a, b := selecting(ownedBy(newSet("a", 1), "d1"), "a"), selecting(ownedBy(newSet("b", 1), "d1"), "b")
	other := selecting(ownedBy(newSet("other", 1), "d2"), "other")
	deleted := selecting(ownedBy(newSet("deleted", 1), "d1"), "deleted")
	deleted.DeletionTimestamp = new(metav1.NewTime(testNow))
	f := newFixture(t, 1, a, b, other, deleted)
	f.add(newPod("1-a", a, of("a")), newPod("2-b", b, of("b")), newPod("3-other", other, of("other")), newPod("4-deleted", deleted, of("deleted")),
		newPod("5-failed", a, of("a"), inPhase(v1.PodFailed)), newPod("6-orphan", nil, of("b")))
	for set, want := range map[*apps.ReplicaSet]string{
		a:     "1-a 2-b 4-deleted 6-orphan",
		other: "3-other",
	} {
		pods, err := f.relatedPods(set)
		slices.SortFunc(pods, func(x, y *v1.Pod) int { return strings.Compare(x.Name, y.Name) })
		if err != nil || names(pods) != want {
			t.Errorf("of %s: %q, %v; want %q", set.Name, names(pods), err, want)
		}
	}
}

// A Deployment's ReplicaSets among very many: the index makes the look-up independent of
// how many there are.
func BenchmarkSiblings(b *testing.B) {
	f := newFixture(b, 1)
	target := ownedBy(newSet("target", 1), "d-target")
	f.add(target)
	for i := range 10000 {
		f.add(ownedBy(newSet(fmt.Sprintf("set-%d", i), 1), types.UID(fmt.Sprint(i))))
	}
	for b.Loop() {
		if sets, err := f.kind.Siblings(target); err != nil || len(sets) != 1 {
			b.Fatal(sets, err)
		}
	}
}
