// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlanItem(t *testing.T) {
	a, b, c := podRef("a"), podRef("b"), podRef("c")
	refs := func(states ...refState) (facts []refFact) {
		for i, s := range states {
			facts = append(facts, refFact{ref: []*metav1.OwnerReference{&a, &b, &c}[i], state: s})
		}
		return facts
	}
	const (
		background = metav1.DeletePropagationBackground
		foreground = metav1.DeletePropagationForeground
		orphan     = metav1.DeletePropagationOrphan
	)
	held := []string{"example.com/x", metav1.FinalizerDeleteDependents}
	for _, tc := range []struct {
		name  string
		facts itemFacts
		want  itemPlan
	}{
		{"no owners", itemFacts{}, itemPlan{}},
		{"solid", itemFacts{refs: refs(refSolid)}, itemPlan{}},
		{"dangling", itemFacts{refs: refs(refDangling)}, itemPlan{delete: background}},
		{"all dangling", itemFacts{refs: refs(refDangling, refDangling)}, itemPlan{delete: background}},
		{"dangling, finalizer orphan", itemFacts{refs: refs(refDangling), finalizers: []string{metav1.FinalizerOrphanDependents}}, itemPlan{delete: orphan}},
		{"dangling, finalizer foregroundDeletion", itemFacts{refs: refs(refDangling), finalizers: held}, itemPlan{delete: foreground}},
		{"dangling and unknown", itemFacts{refs: refs(refDangling, refUnknown)}, itemPlan{}},
		{"dangling and invalid", itemFacts{refs: refs(refDangling, refInvalid)}, itemPlan{}},
		{"solid, dangling, waiting", itemFacts{refs: refs(refSolid, refDangling, refWaiting)}, itemPlan{drop: []*metav1.OwnerReference{&b, &c}}},
		{"solid and unknown", itemFacts{refs: refs(refSolid, refUnknown, refDangling)}, itemPlan{}},
		{"waiting, no dependents", itemFacts{refs: refs(refWaiting)}, itemPlan{delete: background}},
		{"waiting, no dependents, finalizer orphan", itemFacts{refs: refs(refWaiting), finalizers: []string{metav1.FinalizerOrphanDependents}}, itemPlan{delete: orphan}},
		{"waiting with dependents", itemFacts{refs: refs(refWaiting, refDangling), hasDependents: true}, itemPlan{delete: foreground}},
		{"waiting in a cycle", itemFacts{refs: refs(refWaiting), hasDependents: true, cycle: true}, itemPlan{delete: foreground, unblock: true}},
		{"dangling with dependents", itemFacts{refs: refs(refDangling), hasDependents: true}, itemPlan{delete: background}},
		{"being deleted", itemFacts{deleting: true, refs: refs(refDangling)}, itemPlan{}},
		{"foreground, blocked", itemFacts{deleting: true, finalizers: held, blocked: true}, itemPlan{}},
		{"foreground, free", itemFacts{deleting: true, finalizers: held, hasDependents: true}, itemPlan{finish: true}},
	} {
		if got := planItem(tc.facts); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestWithoutRefs(t *testing.T) {
	good, bad, other := podRef("u"), ref("v1", "Pod", "wrong", "u"), podRef("other")
	rest, ambiguous := withoutRefs([]metav1.OwnerReference{good, bad, other}, []*metav1.OwnerReference{&bad})
	if !ambiguous || !sameRefs(rest, []metav1.OwnerReference{good, other}) {
		t.Errorf("rest %v, ambiguous %t", rest, ambiguous)
	}
	rest, ambiguous = withoutRefs([]metav1.OwnerReference{good, other}, []*metav1.OwnerReference{&good})
	if ambiguous || !sameRefs(rest, []metav1.OwnerReference{other}) {
		t.Errorf("rest %v, ambiguous %t", rest, ambiguous)
	}
}

func TestPatches(t *testing.T) {
	refs, none := []metav1.OwnerReference{podRef("a")}, []metav1.OwnerReference{}
	noFinalizers := []string{}
	for want, got := range map[string][]byte{
		`{"metadata":{"uid":"x","ownerReferences":[{"$patch":"delete","uid":"a"}]}}`:                                               deleteRefsBody{UID: "x", Refs: []deleteRef{{"delete", "a"}}}.json(),
		`{"metadata":{"finalizers":null,"resourceVersion":"7","uid":"x"}}`:                                                         mergeBody{UID: "x", RV: "7", Finalizers: &noFinalizers}.json(),
		`{"metadata":{"ownerReferences":null,"resourceVersion":"7","uid":"x"}}`:                                                    mergeBody{UID: "x", RV: "7", Refs: &none}.json(),
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a"}],"resourceVersion":"7","uid":"x"}}`: mergeBody{UID: "x", RV: "7", Refs: &refs}.json(),
	} {
		if string(got) != want {
			t.Errorf("patch %s, want %s", got, want)
		}
	}
}
