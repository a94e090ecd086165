// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"testing"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

func TestFinishedCondition(t *testing.T) {
	condition := func(kind batch.JobConditionType, status v1.ConditionStatus) batch.JobCondition {
		return batch.JobCondition{Type: kind, Status: status}
	}
	for _, tc := range []struct {
		name       string
		conditions []batch.JobCondition
		want       batch.JobConditionType
	}{
		{name: "no conditions"},
		{"complete", []batch.JobCondition{condition(batch.JobComplete, v1.ConditionTrue)}, batch.JobComplete},
		{"complete is false", []batch.JobCondition{condition(batch.JobComplete, v1.ConditionFalse)}, ""},
		{"complete is unknown", []batch.JobCondition{condition(batch.JobComplete, v1.ConditionUnknown)}, ""},
		{"complete among others", []batch.JobCondition{
			condition(batch.JobSuspended, v1.ConditionFalse), condition(batch.JobSuccessCriteriaMet, v1.ConditionTrue), condition(batch.JobComplete, v1.ConditionTrue),
		}, batch.JobComplete},
		{"failed", []batch.JobCondition{condition(batch.JobFailed, v1.ConditionTrue)}, batch.JobFailed},
		{"failed is false", []batch.JobCondition{condition(batch.JobFailed, v1.ConditionFalse)}, ""},
		{"failed is unknown", []batch.JobCondition{condition(batch.JobFailed, v1.ConditionUnknown)}, ""},
		{"several, none of them final and true", []batch.JobCondition{
			condition(batch.JobSuspended, v1.ConditionTrue), condition(batch.JobFailureTarget, v1.ConditionTrue), condition(batch.JobFailed, v1.ConditionFalse),
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			job := &batch.Job{Status: batch.JobStatus{Conditions: tc.conditions}}
			finished, got := FinishedCondition(job)
			if got != tc.want || finished != (tc.want != "") {
				t.Errorf("FinishedCondition: %v, %q; want %q", finished, got, tc.want)
			}
			if IsJobFinished(job) != (tc.want != "") {
				t.Errorf("IsJobFinished: %v", IsJobFinished(job))
			}
			if IsJobSucceeded(job) != (tc.want == batch.JobComplete) {
				t.Errorf("IsJobSucceeded: %v", IsJobSucceeded(job))
			}
		})
	}
}
