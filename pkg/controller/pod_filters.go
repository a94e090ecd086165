// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// IsPodActive says whether a Pod counts towards what its owner wants: it has neither
// finished nor is it being deleted.
func IsPodActive(pod *v1.Pod) bool {
	return !podutil.IsPodTerminal(pod) && pod.DeletionTimestamp == nil
}

// IsPodTerminating says whether a Pod is being deleted and has not finished yet.
func IsPodTerminating(pod *v1.Pod) bool {
	return !podutil.IsPodTerminal(pod) && pod.DeletionTimestamp != nil
}

// FilterPods returns the Pods that keep approves of, in the same order.
func FilterPods(pods []*v1.Pod, keep func(*v1.Pod) bool) []*v1.Pod {
	var kept []*v1.Pod
	for _, pod := range pods {
		if keep(pod) {
			kept = append(kept, pod)
		}
	}
	return kept
}

// FilterActivePods returns the Pods for which IsPodActive is true.
func FilterActivePods(pods []*v1.Pod) []*v1.Pod {
	return FilterPods(pods, IsPodActive)
}

// FilterTerminatingPods returns the Pods for which IsPodTerminating is true.
func FilterTerminatingPods(pods []*v1.Pod) []*v1.Pod {
	return FilterPods(pods, IsPodTerminating)
}

// CountTerminatingPods counts the Pods for which IsPodTerminating is true.
func CountTerminatingPods(pods []*v1.Pod) int32 {
	var n int32
	for _, pod := range pods {
		if IsPodTerminating(pod) {
			n++
		}
	}
	return n
}

// FilterClaimedPods returns the Pods that controller owns and selector matches.
func FilterClaimedPods(controller metav1.Object, selector labels.Selector, pods []*v1.Pod) []*v1.Pod {
	return FilterPods(pods, func(pod *v1.Pod) bool {
		return metav1.IsControlledBy(pod, controller) && selector.Matches(labels.Set(pod.Labels))
	})
}

// FindMinNextPodAvailabilityCheck returns how long it takes from the clock's now until
// the next of the Pods that were ready, but not yet available, at lastEvaluation becomes
// available: zero if that is already past, nil if there is no such Pod.
//
// lastEvaluation is the time with which the status was computed. Looking from there
// rather than from now finds the Pods that became available in between.
func FindMinNextPodAvailabilityCheck(pods []*v1.Pod, minReadySeconds int32, lastEvaluation time.Time, c clock.PassiveClock) *time.Duration {
	var next *time.Time
	for _, pod := range pods {
		at := podAvailableAt(pod, minReadySeconds)
		if at == nil || !at.After(lastEvaluation) {
			continue
		}
		if next == nil || at.Before(*next) {
			next = at
		}
	}
	if next == nil {
		return nil
	}
	return new(max(next.Sub(c.Now()), 0))
}

// podAvailableAt returns when a ready Pod has been ready for minReadySeconds; nil when
// there is no such moment to wait for.
func podAvailableAt(pod *v1.Pod, minReadySeconds int32) *time.Time {
	if minReadySeconds <= 0 || !podutil.IsPodReady(pod) {
		return nil
	}
	ready := podutil.GetPodReadyCondition(pod.Status)
	if ready == nil || ready.LastTransitionTime.IsZero() {
		return nil
	}
	return new(ready.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second))
}
