// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newStatus returns the status that tells of the state. collisionCount is the one that
// the update revision was named with.
func newStatus(s *state, change *apps.StatefulSetCondition, collisionCount int32) apps.StatefulSetStatus {
	status := apps.StatefulSetStatus{
		ObservedGeneration: s.set.Generation,
		CurrentRevision:    s.current,
		UpdateRevision:     s.update,
		CollisionCount:     &collisionCount,
		Conditions:         s.set.Status.Conditions,
	}
	for r := range s.all() {
		if r.pod == nil || !isCreated(r.pod) {
			continue
		}
		status.Replicas++
		if isRunningAndReady(r.pod) {
			status.ReadyReplicas++
		}
		if s.isAvailable(r) {
			status.AvailableReplicas++
		}
		if r.going {
			continue
		}
		if revisionOf(r.pod) == s.current {
			status.CurrentReplicas++
		}
		if revisionOf(r.pod) == s.update {
			status.UpdatedReplicas++
		}
	}
	if change != nil {
		setCondition(&status, *change, metav1.NewTime(s.now))
	}
	completeUpdate(s.set, &status)
	return status
}

// completeUpdate makes the update revision the current one when every replica has it
// and is ready.
func completeUpdate(set *apps.StatefulSet, status *apps.StatefulSetStatus) {
	wanted := int32(replicaCount(set))
	if status.UpdatedReplicas != wanted || status.ReadyReplicas != wanted || status.Replicas != wanted {
		return
	}
	status.CurrentReplicas = status.UpdatedReplicas
	status.CurrentRevision = status.UpdateRevision
}

// statusDiffers says whether the set's status has to be written.
func statusDiffers(set *apps.StatefulSet, status *apps.StatefulSetStatus) bool {
	was := set.Status
	if was.ObservedGeneration < status.ObservedGeneration {
		return true
	}
	was.ObservedGeneration = status.ObservedGeneration
	if was.CollisionCount == nil {
		was.CollisionCount = new(int32)
	}
	return !equality.Semantic.DeepEqual(was, *status)
}

func condition(status *apps.StatefulSetStatus, kind apps.StatefulSetConditionType) *apps.StatefulSetCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// setCondition puts a condition in place of the one of its type. The list that the
// status came with stays as it is.
func setCondition(status *apps.StatefulSetStatus, change apps.StatefulSetCondition, now metav1.Time) {
	change.LastTransitionTime = now
	status.Conditions = slices.Clone(status.Conditions)
	was := condition(status, change.Type)
	if was == nil {
		status.Conditions = append(status.Conditions, change)
		return
	}
	if was.Status == change.Status {
		change.LastTransitionTime = was.LastTransitionTime
	}
	*was = change
}
