// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// conditionsFor returns the five conditions that describe an outcome, without transition times.
// Types, reasons and messages are upstream's: tools match on them.
func conditionsFor(o *outcome) []v1.NamespaceCondition {
	return []v1.NamespaceCondition{
		discoveryCondition(o.discoveryErr),
		condition(v1.NamespaceDeletionGVParsingFailure,
			"ParsedGroupVersions", "All legacy kube types successfully parsed",
			"GroupVersionParsingFailed", errorText(o.parseErr)),
		condition(v1.NamespaceDeletionContentFailure,
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization",
			"ContentDeletionFailed", contentFailure(o.contentErrs)),
		condition(v1.NamespaceContentRemaining,
			"ContentRemoved", "All content successfully removed",
			"SomeResourcesRemain", remainingContent(o)),
		condition(v1.NamespaceFinalizersRemaining,
			"ContentHasNoFinalizers", "All content-preserving finalizers finished",
			"SomeFinalizersRemain", remainingFinalizers(o)),
	}
}

// condition is False with the first reason and message when there is no problem, else True.
func condition(kind v1.NamespaceConditionType, okReason, okMessage, badReason, problem string) v1.NamespaceCondition {
	if problem == "" {
		return v1.NamespaceCondition{Type: kind, Status: v1.ConditionFalse, Reason: okReason, Message: okMessage}
	}
	return v1.NamespaceCondition{Type: kind, Status: v1.ConditionTrue, Reason: badReason, Message: problem}
}

func discoveryCondition(err error) v1.NamespaceCondition {
	problem := errorText(err)
	var groups *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &groups) {
		problem = fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(groups.Groups), err)
	}
	return condition(v1.NamespaceDeletionDiscoveryFailure,
		"ResourcesDiscovered", "All resources successfully discovered",
		"DiscoveryFailed", problem)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func contentFailure(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", len(errs), strings.Join(texts, ", "))
}

func remainingContent(o *outcome) string {
	if len(o.remaining) == 0 {
		return ""
	}
	parts := make([]string, 0, len(o.remaining))
	for gvr, n := range o.remaining {
		parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", gvr.Resource, gvr.Group, n))
	}
	slices.Sort(parts)
	return "Some resources are remaining: " + strings.Join(parts, ", ")
}

func remainingFinalizers(o *outcome) string {
	if len(o.finalizers) == 0 {
		return ""
	}
	parts := make([]string, 0, len(o.finalizers))
	for finalizer, n := range o.finalizers {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", finalizer, n))
	}
	slices.Sort(parts)
	return "Some content in the namespace has finalizers remaining: " + strings.Join(parts, ", ")
}

// mergeConditions returns current with the wanted conditions in it, and whether that is a change.
// Conditions of other types and the order of the list stay; the transition time moves only when the
// status does. current is not changed.
func mergeConditions(current, wanted []v1.NamespaceCondition, now time.Time) ([]v1.NamespaceCondition, bool) {
	merged := slices.Clone(current)
	changed := false
	for _, want := range wanted {
		i := slices.IndexFunc(merged, func(c v1.NamespaceCondition) bool { return c.Type == want.Type })
		if i < 0 {
			want.LastTransitionTime = metav1.NewTime(now)
			merged = append(merged, want)
			changed = true
			continue
		}
		have := merged[i]
		if have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
			continue
		}
		want.LastTransitionTime = have.LastTransitionTime
		if have.Status != want.Status {
			want.LastTransitionTime = metav1.NewTime(now)
		}
		merged[i] = want
		changed = true
	}
	return merged, changed
}
