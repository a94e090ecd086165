// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewReplicaSetCondition returns a condition whose status changed at now.
func NewReplicaSetCondition(condType apps.ReplicaSetConditionType, status v1.ConditionStatus, reason, msg string, now metav1.Time) apps.ReplicaSetCondition {
	return apps.ReplicaSetCondition{
		Type:               condType,
		Status:             status,
		LastTransitionTime: now,
		Reason:             reason,
		Message:            msg,
	}
}

// GetCondition returns a copy of the condition of this type, or nil.
func GetCondition(status apps.ReplicaSetStatus, condType apps.ReplicaSetConditionType) *apps.ReplicaSetCondition {
	for _, c := range status.Conditions {
		if c.Type == condType {
			return &c
		}
	}
	return nil
}

// SetCondition puts the condition in place of the one of its type. One with the same
// status and reason is left as it is: a new message alone is not worth a write. The
// list in status is replaced, not changed.
func SetCondition(status *apps.ReplicaSetStatus, condition apps.ReplicaSetCondition) {
	current := GetCondition(*status, condition.Type)
	if current != nil && current.Status == condition.Status && current.Reason == condition.Reason {
		return
	}
	status.Conditions = append(without(status.Conditions, condition.Type), condition)
}

// RemoveCondition removes the condition of this type. The list in status is replaced,
// not changed.
func RemoveCondition(status *apps.ReplicaSetStatus, condType apps.ReplicaSetConditionType) {
	status.Conditions = without(status.Conditions, condType)
}

func without(conditions []apps.ReplicaSetCondition, condType apps.ReplicaSetConditionType) []apps.ReplicaSetCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c apps.ReplicaSetCondition) bool { return c.Type == condType })
}
