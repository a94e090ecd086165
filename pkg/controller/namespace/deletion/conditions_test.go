// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMergeConditions(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	now := metav1.NewTime(before.Add(time.Minute))
	cond := func(kind v1.NamespaceConditionType, status v1.ConditionStatus, reason, message string, since metav1.Time) v1.NamespaceCondition {
		return v1.NamespaceCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: since}
	}
	content, discovery := v1.NamespaceDeletionContentFailure, v1.NamespaceDeletionDiscoveryFailure
	ok := func(kind v1.NamespaceConditionType, since metav1.Time) v1.NamespaceCondition {
		return cond(kind, v1.ConditionFalse, "Fine", "all is well", since)
	}
	bad := func(kind v1.NamespaceConditionType, message string, since metav1.Time) v1.NamespaceCondition {
		return cond(kind, v1.ConditionTrue, "Broken", message, since)
	}
	unknown := cond("Custom", v1.ConditionTrue, "R", "m", before)
	none := metav1.Time{}

	tests := map[string]struct {
		current, wanted, want []v1.NamespaceCondition
		changed               bool
	}{
		"leave unknown": {
			current: []v1.NamespaceCondition{unknown},
			wanted:  []v1.NamespaceCondition{ok(content, none)},
			want:    []v1.NamespaceCondition{unknown, ok(content, now)},
			changed: true,
		},
		"replace with success": {
			current: []v1.NamespaceCondition{bad(content, "x", before)},
			wanted:  []v1.NamespaceCondition{ok(content, none)},
			want:    []v1.NamespaceCondition{ok(content, now)},
			changed: true,
		},
		"leave different order": {
			current: []v1.NamespaceCondition{ok(content, before), ok(discovery, before)},
			wanted:  []v1.NamespaceCondition{ok(discovery, none), ok(content, none)},
			want:    []v1.NamespaceCondition{ok(content, before), ok(discovery, before)},
		},
		"overwrite with failure": {
			current: []v1.NamespaceCondition{ok(discovery, before), ok(content, before)},
			wanted:  []v1.NamespaceCondition{ok(discovery, none), bad(content, "x", none)},
			want:    []v1.NamespaceCondition{ok(discovery, before), bad(content, "x", now)},
			changed: true,
		},
		"write new failure": {
			wanted:  []v1.NamespaceCondition{bad(content, "x", none)},
			want:    []v1.NamespaceCondition{bad(content, "x", now)},
			changed: true,
		},
		"another message keeps the transition time": {
			current: []v1.NamespaceCondition{bad(content, "x", before)},
			wanted:  []v1.NamespaceCondition{bad(content, "y", none)},
			want:    []v1.NamespaceCondition{bad(content, "y", before)},
			changed: true,
		},
		"another reason is a change": {
			current: []v1.NamespaceCondition{cond(content, v1.ConditionTrue, "Old", "x", before)},
			wanted:  []v1.NamespaceCondition{bad(content, "x", none)},
			want:    []v1.NamespaceCondition{bad(content, "x", before)},
			changed: true,
		},
		"nothing new": {
			current: []v1.NamespaceCondition{bad(content, "x", before)},
			wanted:  []v1.NamespaceCondition{bad(content, "x", none)},
			want:    []v1.NamespaceCondition{bad(content, "x", before)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			original := slices.Clone(tc.current)
			got, changed := mergeConditions(tc.current, tc.wanted, now.Time)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if changed != tc.changed {
				t.Errorf("changed is %t, want %t", changed, tc.changed)
			}
			if diff := cmp.Diff(original, tc.current); diff != "" {
				t.Errorf("the current conditions were changed:\n%s", diff)
			}
		})
	}
}

func TestConditionsForContentTotals(t *testing.T) {
	remaining := map[schema.GroupVersionResource]int{podsResource: 2, deployments: 1}
	finalizers := map[string]int{"z.io/a": 1, "a.io/z": 3}
	tests := map[string]struct {
		outcome                             outcome
		remaining, finalizers               v1.ConditionStatus
		remainingMessage, finalizersMessage string
		remainingReason, finalizersReason   string
	}{
		"nothing": {
			remaining: v1.ConditionFalse, remainingReason: "ContentRemoved", remainingMessage: "All content successfully removed",
			finalizers: v1.ConditionFalse, finalizersReason: "ContentHasNoFinalizers", finalizersMessage: "All content-preserving finalizers finished",
		},
		"just remaining": {
			outcome:   outcome{remaining: remaining},
			remaining: v1.ConditionTrue, remainingReason: "SomeResourcesRemain",
			remainingMessage: "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances",
			finalizers:       v1.ConditionFalse, finalizersReason: "ContentHasNoFinalizers", finalizersMessage: "All content-preserving finalizers finished",
		},
		"just finalizers": {
			outcome:   outcome{finalizers: finalizers},
			remaining: v1.ConditionFalse, remainingReason: "ContentRemoved", remainingMessage: "All content successfully removed",
			finalizers: v1.ConditionTrue, finalizersReason: "SomeFinalizersRemain",
			finalizersMessage: "Some content in the namespace has finalizers remaining: a.io/z in 3 resource instances, z.io/a in 1 resource instances",
		},
		"both": {
			outcome:   outcome{remaining: remaining, finalizers: finalizers},
			remaining: v1.ConditionTrue, remainingReason: "SomeResourcesRemain",
			remainingMessage: "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances",
			finalizers:       v1.ConditionTrue, finalizersReason: "SomeFinalizersRemain",
			finalizersMessage: "Some content in the namespace has finalizers remaining: a.io/z in 3 resource instances, z.io/a in 1 resource instances",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := conditionsFor(&tc.outcome)[3:]
			want := []v1.NamespaceCondition{
				{Type: v1.NamespaceContentRemaining, Status: tc.remaining, Reason: tc.remainingReason, Message: tc.remainingMessage},
				{Type: v1.NamespaceFinalizersRemaining, Status: tc.finalizers, Reason: tc.finalizersReason, Message: tc.finalizersMessage},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsForFailures(t *testing.T) {
	ok := conditionsFor(&outcome{})
	wantOK := []v1.NamespaceCondition{
		{Type: "NamespaceDeletionDiscoveryFailure", Status: "False", Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: "NamespaceDeletionGroupVersionParsingFailure", Status: "False", Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: "NamespaceDeletionContentFailure", Status: "False", Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: "NamespaceContentRemaining", Status: "False", Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: "NamespaceFinalizersRemaining", Status: "False", Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	if diff := cmp.Diff(wantOK, ok); diff != "" {
		t.Errorf("conditions when all is well (-want +got):\n%s", diff)
	}

	failed := conditionsFor(&outcome{
		discoveryErr: errors.New("no answer"),
		parseErr:     errors.New("a/b/c"),
		contentErrs:  []error{errors.New("z"), errors.New("a")},
	})[:3]
	wantFailed := []v1.NamespaceCondition{
		{Type: "NamespaceDeletionDiscoveryFailure", Status: "True", Reason: "DiscoveryFailed", Message: "no answer"},
		{Type: "NamespaceDeletionGroupVersionParsingFailure", Status: "True", Reason: "GroupVersionParsingFailed", Message: "a/b/c"},
		{Type: "NamespaceDeletionContentFailure", Status: "True", Reason: "ContentDeletionFailed", Message: "Failed to delete all resource types, 2 remaining: a, z"},
	}
	if diff := cmp.Diff(wantFailed, failed); diff != "" {
		t.Errorf("conditions after failures (-want +got):\n%s", diff)
	}
}
