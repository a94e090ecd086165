// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod reads and changes the conditions of a Pod's status: what "ready",
// "available" and "finished" mean is said here once for all controllers.
package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsPodAvailable says whether the Pod has been ready for at least minReadySeconds at
// now. With minReadySeconds 0 that is the same as ready.
func IsPodAvailable(pod *v1.Pod, minReadySeconds int32, now metav1.Time) bool {
	if !IsPodReady(pod) {
		return false
	}
	if minReadySeconds == 0 {
		return true
	}
	since := GetPodReadyCondition(pod.Status).LastTransitionTime
	if since.IsZero() {
		return false
	}
	return !since.Add(time.Duration(minReadySeconds) * time.Second).After(now.Time)
}

// IsPodReady says whether the Pod's Ready condition is true.
func IsPodReady(pod *v1.Pod) bool {
	return IsPodReadyConditionTrue(pod.Status)
}

// IsPodReadyConditionTrue is IsPodReady for a status by itself.
func IsPodReadyConditionTrue(status v1.PodStatus) bool {
	condition := GetPodReadyCondition(status)
	return condition != nil && condition.Status == v1.ConditionTrue
}

// IsPodTerminal says whether the Pod has finished and will never run again.
func IsPodTerminal(pod *v1.Pod) bool {
	return IsPodPhaseTerminal(pod.Status.Phase)
}

// IsPodPhaseTerminal is IsPodTerminal for a phase by itself.
func IsPodPhaseTerminal(phase v1.PodPhase) bool {
	return phase == v1.PodFailed || phase == v1.PodSucceeded
}

// GetPodReadyCondition returns the Ready condition, or nil.
func GetPodReadyCondition(status v1.PodStatus) *v1.PodCondition {
	_, condition := GetPodCondition(&status, v1.PodReady)
	return condition
}

// GetPodCondition returns the condition of a type, a pointer into status, and its index;
// -1 and nil when there is none.
func GetPodCondition(status *v1.PodStatus, conditionType v1.PodConditionType) (int, *v1.PodCondition) {
	if status == nil {
		return -1, nil
	}
	return GetPodConditionFromList(status.Conditions, conditionType)
}

// GetPodConditionFromList is GetPodCondition for a list by itself.
func GetPodConditionFromList(conditions []v1.PodCondition, conditionType v1.PodConditionType) (int, *v1.PodCondition) {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return i, &conditions[i]
		}
	}
	return -1, nil
}

// UpdatePodCondition puts condition into status in place of the one of its type, and
// says whether that changed anything. Its LastTransitionTime is set: to now, or to what
// it was where the condition's status stays as it is.
func UpdatePodCondition(status *v1.PodStatus, condition *v1.PodCondition) bool {
	return UpdatePodConditionAt(status, condition, metav1.Now())
}

// UpdatePodConditionAt is UpdatePodCondition with the time given.
func UpdatePodConditionAt(status *v1.PodStatus, condition *v1.PodCondition, now metav1.Time) bool {
	condition.LastTransitionTime = now
	_, old := GetPodCondition(status, condition.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, *condition)
		return true
	}
	if condition.Status == old.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	changed := condition.Status != old.Status ||
		condition.Reason != old.Reason ||
		condition.Message != old.Message ||
		condition.ObservedGeneration != old.ObservedGeneration ||
		!condition.LastProbeTime.Equal(&old.LastProbeTime) ||
		!condition.LastTransitionTime.Equal(&old.LastTransitionTime)
	*old = *condition
	return changed
}
