// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"math"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the conditions of a Deployment.
const (
	// ReplicaSetUpdatedReason: Progressing, the rollout has moved on.
	ReplicaSetUpdatedReason = "ReplicaSetUpdated"
	// FailedRSCreateReason: not Progressing, the new ReplicaSet could not be created. Also the
	// reason of the event.
	FailedRSCreateReason = "ReplicaSetCreateError"
	// NewReplicaSetReason: Progressing, the new ReplicaSet was created.
	NewReplicaSetReason = "NewReplicaSetCreated"
	// FoundNewRSReason: Progressing, a ReplicaSet of the wanted template exists already.
	FoundNewRSReason = "FoundNewReplicaSet"
	// NewRSAvailableReason: Progressing, the rollout is complete.
	NewRSAvailableReason = "NewReplicaSetAvailable"
	// TimedOutReason: not Progressing, nothing moved for spec.progressDeadlineSeconds.
	TimedOutReason = "ProgressDeadlineExceeded"
	// PausedDeployReason: Progressing unknown, and the deadline does not run.
	PausedDeployReason = "DeploymentPaused"
	// ResumedDeployReason: Progressing unknown, and the deadline runs from here.
	ResumedDeployReason = "DeploymentResumed"
	// MinimumReplicasAvailable: Available.
	MinimumReplicasAvailable = "MinimumReplicasAvailable"
	// MinimumReplicasUnavailable: not Available.
	MinimumReplicasUnavailable = "MinimumReplicasUnavailable"
)

// NewDeploymentCondition returns a condition whose times are this moment.
func NewDeploymentCondition(condType apps.DeploymentConditionType, status v1.ConditionStatus, reason, message string) *apps.DeploymentCondition {
	now := metav1.Now()
	return &apps.DeploymentCondition{
		Type: condType, Status: status, Reason: reason, Message: message,
		LastUpdateTime: now, LastTransitionTime: now,
	}
}

// GetDeploymentCondition returns a copy of the condition of that type, or nil.
func GetDeploymentCondition(status apps.DeploymentStatus, condType apps.DeploymentConditionType) *apps.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == condType {
			c := status.Conditions[i]
			return &c
		}
	}
	return nil
}

// SetDeploymentCondition puts the condition into the status. One with the same status and reason
// changes nothing; one with the same status keeps the time of the last transition. The condition
// that was set last stands last.
func SetDeploymentCondition(status *apps.DeploymentStatus, condition apps.DeploymentCondition) {
	current := GetDeploymentCondition(*status, condition.Type)
	if current != nil && current.Status == condition.Status {
		if current.Reason == condition.Reason {
			return
		}
		condition.LastTransitionTime = current.LastTransitionTime
	}
	RemoveDeploymentCondition(status, condition.Type)
	status.Conditions = append(status.Conditions, condition)
}

// RemoveDeploymentCondition takes the condition of that type out of the status.
func RemoveDeploymentCondition(status *apps.DeploymentStatus, condType apps.DeploymentConditionType) {
	kept := slices.Clone(status.Conditions)
	status.Conditions = slices.DeleteFunc(kept, func(c apps.DeploymentCondition) bool { return c.Type == condType })
}

// ReplicaSetToDeploymentCondition translates a condition of a ReplicaSet into the Deployment's.
func ReplicaSetToDeploymentCondition(cond apps.ReplicaSetCondition) apps.DeploymentCondition {
	return apps.DeploymentCondition{
		Type:               apps.DeploymentConditionType(cond.Type),
		Status:             cond.Status,
		LastTransitionTime: cond.LastTransitionTime,
		LastUpdateTime:     cond.LastTransitionTime,
		Reason:             cond.Reason,
		Message:            cond.Message,
	}
}

// DeploymentComplete says whether all wanted pods are of the new template and available, no old
// ones run, and the status speaks of the current generation.
func DeploymentComplete(deployment *apps.Deployment, newStatus *apps.DeploymentStatus) bool {
	want := DesiredReplicas(deployment)
	return newStatus.UpdatedReplicas == want &&
		newStatus.Replicas == want &&
		newStatus.AvailableReplicas == want &&
		newStatus.ObservedGeneration >= deployment.Generation
}

// DeploymentProgressing says whether newStatus is a step ahead of the Deployment's: more updated,
// fewer old, more ready or more available pods.
func DeploymentProgressing(deployment *apps.Deployment, newStatus *apps.DeploymentStatus) bool {
	old := &deployment.Status
	return newStatus.UpdatedReplicas > old.UpdatedReplicas ||
		newStatus.Replicas-newStatus.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		newStatus.ReadyReplicas > old.ReadyReplicas ||
		newStatus.AvailableReplicas > old.AvailableReplicas
}

// DeploymentTimedOut says whether the rollout that newStatus describes has not moved for longer
// than the progress deadline. A rollout that was complete does not time out when its pods fail
// later, and one that has timed out stays so until it moves.
func DeploymentTimedOut(deployment *apps.Deployment, newStatus *apps.DeploymentStatus, now time.Time) bool {
	if !HasProgressDeadline(deployment) {
		return false
	}
	cond := GetDeploymentCondition(*newStatus, apps.DeploymentProgressing)
	switch {
	case cond == nil, cond.Reason == NewRSAvailableReason:
		return false
	case cond.Reason == TimedOutReason:
		return true
	}
	return Deadline(deployment, cond).Before(now)
}

// Deadline returns when the rollout times out unless it moves: the progress deadline after the
// last update of the Progressing condition. The Deployment must have a deadline.
func Deadline(deployment *apps.Deployment, progressing *apps.DeploymentCondition) time.Time {
	return progressing.LastUpdateTime.Add(time.Duration(*deployment.Spec.ProgressDeadlineSeconds) * time.Second)
}

// HasProgressDeadline says whether progress is watched: spec.progressDeadlineSeconds is set, and
// not to the largest int32, which stands for no deadline.
func HasProgressDeadline(deployment *apps.Deployment) bool {
	p := deployment.Spec.ProgressDeadlineSeconds
	return p != nil && *p != math.MaxInt32
}

// HasRevisionHistoryLimit says whether old ReplicaSets are cleaned up: spec.revisionHistoryLimit
// is set, and not to the largest int32.
func HasRevisionHistoryLimit(deployment *apps.Deployment) bool {
	l := deployment.Spec.RevisionHistoryLimit
	return l != nil && *l != math.MaxInt32
}
