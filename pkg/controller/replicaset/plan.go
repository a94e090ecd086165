// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"slices"
	"sort"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller"
)

// Features are the parts of the behaviour that a kind or a feature gate turns off.
type Features struct {
	// TerminatingReplicas counts the Pods in deletion in status.terminatingReplicas
	// (gate DeploymentReplicaSetTerminatingReplicas).
	TerminatingReplicas bool
	// DeletionCost heeds the annotation controller.kubernetes.io/pod-deletion-cost
	// (gate PodDeletionCost).
	DeletionCost bool
}

// state is all that a plan is made from. Nothing in it is changed.
type state struct {
	set *apps.ReplicaSet
	// claimed are the active Pods of the set, without those whose deletion was requested.
	claimed []*v1.Pod
	// terminating counts the set's Pods in deletion.
	terminating int32
	// owned are all Pods of the set, whatever their phase.
	owned []*v1.Pod
	// related are the Pods of all sets with the same controller. Read on excess alone.
	related []*v1.Pod
	// burst bounds the creations, and the deletions, of one sync.
	burst    int
	features Features
	now      time.Time
}

// plan is what is to be done about a set now.
type plan struct {
	// create is the number of Pods to create.
	create int
	// remove are the Pods to delete.
	remove []*v1.Pod
	// backoff is set when Pods are created with delay, or not at all yet, because the
	// ones before failed at once.
	backoff *backoff
}

// excess is how many claimed Pods are above spec.replicas; negative when some are missing.
func (s *state) excess() int {
	return len(s.claimed) - int(replicas(s.set))
}

// replicas reads spec.replicas. The API server defaults it to 1; an object made by
// hand that has none wants none.
func replicas(set *apps.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 0
	}
	return *set.Spec.Replicas
}

// makePlan decides how many Pods to create or which to delete. A set in deletion wants
// neither: its Pods are the garbage collector's.
func makePlan(s *state) plan {
	if s.set.DeletionTimestamp != nil {
		return plan{}
	}
	switch excess := s.excess(); {
	case excess < 0:
		p := plan{create: min(-excess, s.burst), backoff: creationBackoff(s.owned, -excess, s.now)}
		if p.backoff != nil && p.backoff.wait > 0 {
			p.create = 0
		}
		return p
	case excess > 0:
		return plan{remove: podsToDelete(s, min(excess, s.burst))}
	default:
		return plan{}
	}
}

// podsToDelete chooses count of the claimed Pods. The order matters only when some stay.
func podsToDelete(s *state, count int) []*v1.Pod {
	pods := slices.Clone(s.claimed)
	if count < len(pods) {
		sort.Sort(controller.ActivePodsWithRanks{
			Pods:               pods,
			Rank:               ranks(pods, s.related),
			Now:                metav1.NewTime(s.now),
			IgnoreDeletionCost: !s.features.DeletionCost,
		})
	}
	return pods[:count]
}

// ranks counts for each of pods the active related Pods on its node.
func ranks(pods, related []*v1.Pod) []int {
	onNode := map[string]int{}
	for _, pod := range related {
		if controller.IsPodActive(pod) {
			onNode[pod.Spec.NodeName]++
		}
	}
	rank := make([]int, len(pods))
	for i, pod := range pods {
		rank[i] = onNode[pod.Spec.NodeName]
	}
	return rank
}

// deletionAgeRatios returns, for each ready Pod among remove, its age as a multiple of
// the age of the youngest ready Pod of the set; whole numbers, as upstream's.
func deletionAgeRatios(claimed, remove []*v1.Pod, now time.Time) []float64 {
	var youngest time.Time
	for _, pod := range claimed {
		if podutil.IsPodReady(pod) && pod.CreationTimestamp.After(youngest) {
			youngest = pod.CreationTimestamp.Time
		}
	}
	var ratios []float64
	for _, pod := range remove {
		if !podutil.IsPodReady(pod) {
			continue
		}
		// A Pod made in this very millisecond must not divide by zero.
		age := max(now.Sub(youngest).Milliseconds(), 1)
		ratios = append(ratios, float64(now.Sub(pod.CreationTimestamp.Time).Milliseconds()/age))
	}
	return ratios
}

// newStatus returns the status that the set should have, given what was seen and what
// became of the plan. The set's own status is the base, for the conditions of others.
func newStatus(s *state, p plan, manageErr error) apps.ReplicaSetStatus {
	status := s.set.Status
	status.ObservedGeneration = s.set.Generation
	status.Replicas = int32(len(s.claimed))
	status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	now := metav1.NewTime(s.now)
	template := labels.SelectorFromSet(s.set.Spec.Template.Labels)
	for _, pod := range s.claimed {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if !podutil.IsPodReady(pod) {
			continue
		}
		status.ReadyReplicas++
		if podutil.IsPodAvailable(pod, s.set.Spec.MinReadySeconds, now) {
			status.AvailableReplicas++
		}
	}
	status.TerminatingReplicas = nil
	if s.features.TerminatingReplicas {
		status.TerminatingReplicas = new(s.terminating)
	}
	setFailureCondition(&status, s, p, manageErr)
	return status
}

// setFailureCondition says in the condition ReplicaFailure why the wanted number of Pods
// is not reached, and takes it away when there is no such reason any more.
func setFailureCondition(status *apps.ReplicaSetStatus, s *state, p plan, manageErr error) {
	current := GetCondition(*status, apps.ReplicaSetReplicaFailure)
	reason, message := "", ""
	switch {
	case manageErr != nil && s.excess() < 0:
		reason, message = controller.FailedCreatePodReason, manageErr.Error()
	case manageErr != nil && s.excess() > 0:
		reason, message = controller.FailedDeletePodReason, manageErr.Error()
	case p.backoff != nil:
		reason, message = podsFailingReason, p.backoff.String()
	}
	switch {
	case reason == "" && manageErr == nil:
		RemoveCondition(status, apps.ReplicaSetReplicaFailure)
	case reason != "" && current == nil:
		// One that stands is not replaced: the first failure of a row is the telling one,
		// and a message per try would be a write per try.
		SetCondition(status, NewReplicaSetCondition(apps.ReplicaSetReplicaFailure, v1.ConditionTrue, reason, message, metav1.NewTime(s.now)))
	}
}

// statusDiffers says whether writing status to the set would change it.
func statusDiffers(set *apps.ReplicaSet, status apps.ReplicaSetStatus) bool {
	old := set.Status
	return old.ObservedGeneration != status.ObservedGeneration ||
		old.Replicas != status.Replicas ||
		old.FullyLabeledReplicas != status.FullyLabeledReplicas ||
		old.ReadyReplicas != status.ReadyReplicas ||
		old.AvailableReplicas != status.AvailableReplicas ||
		!equalPtr(old.TerminatingReplicas, status.TerminatingReplicas) ||
		!slices.Equal(old.Conditions, status.Conditions)
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
