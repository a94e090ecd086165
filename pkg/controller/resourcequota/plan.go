// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// unknownNames returns the names of a quota that cannot be counted now, each with the reason.
// notReady says why a resource cannot be listed, empty if it can. A name that several resources
// count under is known only if all of them can be listed.
func unknownNames(hard v1.ResourceList, evaluators []quota.Evaluator, notReady func(schema.GroupResource) string) map[v1.ResourceName]string {
	names := quota.ResourceNames(hard)
	unknown := map[v1.ResourceName]string{}
	for _, e := range evaluators {
		matching := e.MatchingResources(names)
		if len(matching) == 0 {
			continue
		}
		if why := notReady(e.GroupResource()); why != "" {
			for _, name := range matching {
				unknown[name] = why
			}
		}
	}
	return unknown
}

// without returns the list less some names.
func without(list v1.ResourceList, names map[v1.ResourceName]string) v1.ResourceList {
	left := maps.Clone(list)
	maps.DeleteFunc(left, func(name v1.ResourceName, _ resource.Quantity) bool { _, gone := names[name]; return gone })
	return left
}

// newStatus returns the status of a quota after a count. Names that were not counted keep the value
// that they had.
func newStatus(q *v1.ResourceQuota, counted v1.ResourceList) v1.ResourceQuotaStatus {
	used := v1.ResourceList{}
	maps.Copy(used, q.Status.Used)
	maps.Copy(used, counted)
	return v1.ResourceQuotaStatus{
		Hard: q.Spec.Hard.DeepCopy(),
		Used: quota.Mask(used, quota.ResourceNames(q.Spec.Hard)),
	}
}

// isUpToDate says whether a quota shows a status already.
func isUpToDate(q *v1.ResourceQuota, status v1.ResourceQuotaStatus) bool {
	return q.Status.Hard != nil && q.Status.Used != nil &&
		equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) && quota.Equals(q.Status.Used, status.Used)
}

// isUrgent says whether a quota has never been counted as it is now: admission refuses what a quota
// limits until then.
func isUrgent(q *v1.ResourceQuota, evaluators []quota.Evaluator) bool {
	if !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
		return true
	}
	names := quota.ResourceNames(q.Spec.Hard)
	for _, e := range evaluators {
		for _, name := range e.MatchingResources(names) {
			if _, counted := q.Status.Used[name]; !counted {
				return true
			}
		}
	}
	return false
}

// counts says whether a quota has a name that the evaluator counts.
func counts(q *v1.ResourceQuota, e quota.Evaluator) bool {
	return len(e.MatchingResources(quota.ResourceNames(q.Spec.Hard))) > 0 ||
		len(e.MatchingResources(quota.ResourceNames(q.Status.Hard))) > 0
}

// difference is what a count has found.
type difference struct {
	// changed are the names with another value than before, sorted; names without one before do not
	// count.
	changed []v1.ResourceName
	// lowered and raised say that one of them is less, or more.
	lowered, raised bool
}

func compare(before, after v1.ResourceList) difference {
	var d difference
	for name, old := range before {
		now, ok := after[name]
		if !ok || old.Cmp(now) == 0 {
			continue
		}
		d.changed = append(d.changed, name)
		d.lowered = d.lowered || now.Cmp(old) < 0
		d.raised = d.raised || now.Cmp(old) > 0
	}
	slices.Sort(d.changed)
	return d
}
