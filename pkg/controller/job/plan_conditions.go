// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func findCondition(conditions []batch.JobCondition, kind batch.JobConditionType) *batch.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// ensureCondition returns the conditions with this one in it, and whether that is a change.
// A condition that would be False and is not there is not added.
func ensureCondition(conditions []batch.JobCondition, kind batch.JobConditionType, status v1.ConditionStatus, reason, message string, now time.Time) ([]batch.JobCondition, bool) {
	old := findCondition(conditions, kind)
	if old == nil && status == v1.ConditionFalse {
		return conditions, false
	}
	if old != nil && old.Status == status && old.Reason == reason && old.Message == message {
		return conditions, false
	}
	at := metav1.NewTime(now)
	next := batch.JobCondition{Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at}
	changed := slices.Clone(conditions)
	if old == nil {
		return append(changed, next), true
	}
	*findCondition(changed, kind) = next
	return changed, true
}
