// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	pdbhelper "k8s.io/component-helpers/apps/poddisruptionbudget"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// DeletionTimeout is how long a Pod that the API server has let go counts as gone before its deletion
// is seen. It allows for the time from the eviction's write to the Pod's deletion, and for caches.
const DeletionTimeout = 2 * time.Minute

// scales are the replicas that the controllers of a budget's Pods are to have.
type scales struct {
	byController map[types.UID]int32
	// unmanaged are the names of the Pods without a controller.
	unmanaged []string
}

func (s scales) total() int32 {
	var total int32
	for _, scale := range s.byController {
		total += scale
	}
	return total
}

// needsScales says whether the budget is measured by what its Pods' controllers want: an integer
// minAvailable is not.
func needsScales(pdb *policy.PodDisruptionBudget) bool {
	if pdb.Spec.MaxUnavailable != nil {
		return true
	}
	return pdb.Spec.MinAvailable != nil && pdb.Spec.MinAvailable.Type == intstr.String
}

// plan is what is to be done about a budget.
type plan struct {
	// status is the one to write; write is false when the budget has it already.
	status policy.PodDisruptionBudgetStatus
	write  bool
	// overdue are the disrupted Pods that were not deleted in time.
	overdue []*v1.Pod
	// recheck is when the next of the disrupted Pods is overdue; 0: there is none.
	recheck time.Duration
}

// makePlan computes the budget's status from the Pods that it selects. wanted is used where
// needsScales says so.
func makePlan(pdb *policy.PodDisruptionBudget, pods []*v1.Pod, wanted scales, now time.Time) (plan, error) {
	expected, desired, err := expectation(pdb, int32(len(pods)), wanted)
	if err != nil {
		return plan{}, err
	}
	var p plan
	var disrupted map[string]metav1.Time
	disrupted, p.overdue, p.recheck = stillDisrupted(pdb.Status.DisruptedPods, pods, now)
	healthy := countHealthy(pods, disrupted, now)
	allowed := healthy - desired
	if expected <= 0 || allowed <= 0 {
		allowed = 0
	}

	updated := pdb.DeepCopy()
	updated.Status = policy.PodDisruptionBudgetStatus{
		CurrentHealthy:     healthy,
		DesiredHealthy:     desired,
		ExpectedPods:       expected,
		DisruptionsAllowed: allowed,
		DisruptedPods:      disrupted,
		ObservedGeneration: pdb.Generation,
		Conditions:         updated.Status.Conditions,
	}
	if !pdbhelper.ConditionsAreUpToDate(updated) {
		pdbhelper.UpdateDisruptionAllowedCondition(updated)
	}
	p.status = updated.Status
	p.write = !apiequality.Semantic.DeepEqual(pdb.Status, updated.Status)
	return p, nil
}

// expectation returns how many Pods there should be, and how many of them must stay healthy.
// Percentages are rounded up: of three Pods 50% unavailable are two, and 50% available are two.
func expectation(pdb *policy.PodDisruptionBudget, pods int32, wanted scales) (expected, desired int32, err error) {
	switch spec := pdb.Spec; {
	case spec.MaxUnavailable != nil:
		expected = wanted.total()
		unavailable, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, int(expected), true)
		if err != nil {
			return 0, 0, fmt.Errorf("spec.maxUnavailable: %w", err)
		}
		return expected, max(expected-int32(unavailable), 0), nil
	case spec.MinAvailable == nil:
		return 0, 0, nil
	case spec.MinAvailable.Type == intstr.Int:
		return pods, spec.MinAvailable.IntVal, nil
	default:
		expected = wanted.total()
		available, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, int(expected), true)
		if err != nil {
			return 0, 0, fmt.Errorf("spec.minAvailable: %w", err)
		}
		return expected, int32(available), nil
	}
}

// stillDisrupted returns the entries of status.disruptedPods that are still of use: those of Pods
// that are there, are not being deleted and have time left. nil: none.
func stillDisrupted(entries map[string]metav1.Time, pods []*v1.Pod, now time.Time) (left map[string]metav1.Time, overdue []*v1.Pod, recheck time.Duration) {
	if len(entries) == 0 {
		return nil, nil, 0
	}
	for _, pod := range pods {
		since, ok := entries[pod.Name]
		if !ok || pod.DeletionTimestamp != nil {
			continue
		}
		remaining := since.Add(DeletionTimeout).Sub(now)
		if remaining <= 0 {
			overdue = append(overdue, pod)
			continue
		}
		if left == nil {
			left = map[string]metav1.Time{}
		}
		left[pod.Name] = since
		if recheck == 0 || remaining < recheck {
			recheck = remaining
		}
	}
	return left, overdue, recheck
}

// countHealthy counts the ready Pods that are neither being deleted nor about to be.
func countHealthy(pods []*v1.Pod, disrupted map[string]metav1.Time, now time.Time) int32 {
	var healthy int32
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if since, ok := disrupted[pod.Name]; ok && since.Add(DeletionTimeout).After(now) {
			continue
		}
		if podutil.IsPodReady(pod) {
			healthy++
		}
	}
	return healthy
}

// failSafe returns the status of a budget whose numbers cannot be known: nothing may be disrupted.
// write is false when the budget has it already.
func failSafe(pdb *policy.PodDisruptionBudget, reason error, now time.Time) (status policy.PodDisruptionBudgetStatus, write bool) {
	updated := pdb.DeepCopy()
	updated.Status.DisruptionsAllowed = 0
	apimeta.SetStatusCondition(&updated.Status.Conditions, metav1.Condition{
		Type:               policy.DisruptionAllowedCondition,
		Status:             metav1.ConditionFalse,
		Reason:             policy.SyncFailedReason,
		Message:            reason.Error(),
		ObservedGeneration: updated.Status.ObservedGeneration,
		LastTransitionTime: metav1.NewTime(now),
	})
	return updated.Status, !apiequality.Semantic.DeepEqual(pdb.Status, updated.Status)
}

// staleness returns when the Pod's DisruptionTarget condition is stale, that is timeout after it was
// set; false when there is nothing to become stale: the Pod ends, or the kubelet ends it.
func staleness(pod *v1.Pod, timeout time.Duration) (time.Time, bool) {
	if pod.DeletionTimestamp != nil || podutil.IsPodTerminal(pod) {
		return time.Time{}, false
	}
	_, cond := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	if cond == nil || cond.Status != v1.ConditionTrue || cond.Reason == v1.PodReasonTerminationByKubelet {
		return time.Time{}, false
	}
	return cond.LastTransitionTime.Add(timeout), true
}
