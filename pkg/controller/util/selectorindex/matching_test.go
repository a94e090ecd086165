// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

func drawSelector(t *rapid.T) labels.Selector {
	selector := &metav1.LabelSelector{MatchLabels: drawLabels().Draw(t, "matchLabels")}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		e := metav1.LabelSelectorRequirement{
			Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}).Draw(t, "operator"),
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 2, rapid.ID).Draw(t, "values")
		}
		selector.MatchExpressions = append(selector.MatchExpressions, e)
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Whatever the selector, what it matches is what a walk over the namespace would find.
func TestMatchingIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, indexer := newPods(t)
		selector := drawSelector(t)
		var want, got []string
		for i := range rapid.IntRange(0, 40).Draw(t, "pods") {
			p := pod(rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace"), fmt.Sprint(i), drawLabels().Draw(t, "labels"))
			_ = indexer.Add(p)
			if p.Namespace == "ns" && selector.Matches(labels.Set(p.Labels)) {
				want = append(want, p.Name)
			}
		}
		owner := cache.ObjectName{Namespace: "ns", Name: "owner"}
		for range 2 { // the second time the choice of the pair is remembered
			found, err := pods.Matching(owner, selector)
			if err != nil {
				t.Fatal(err)
			}
			got = got[:0]
			for _, p := range found {
				got = append(got, p.Name)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s matches %v, want %v", selector, got, want)
			}
		}
	})
}

func TestMatchingNothing(t *testing.T) {
	pods, indexer := newPods(t)
	_ = indexer.Add(pod("ns", "p", map[string]string{"a": "1"}))
	found, err := pods.Matching(cache.ObjectName{Namespace: "ns", Name: "owner"}, labels.Nothing())
	if err != nil || len(found) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestDemandedPairs(t *testing.T) {
	for text, want := range map[string]labelSet{
		"":                    "",
		"a":                   "",
		"!a,b!=1,c notin (2)": "",
		"a in (1,2)":          "",
		"b=2,a in (1)":        "a=1,b=2",
		"a==1,a in (1),b":     "a=1",
	} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		requirements, _ := selector.Requirements()
		if got := demandedPairs(requirements); got != want {
			t.Errorf("%q demands %q, want %q", text, got, want)
		}
	}
}
