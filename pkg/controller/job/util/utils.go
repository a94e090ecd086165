// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package util tells what state a Job is in.
package util

import (
	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// FinishedCondition says whether a Job has finished, and with which condition: Complete or
// Failed. The type is empty when it has not.
func FinishedCondition(j *batch.Job) (bool, batch.JobConditionType) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batch.JobComplete || c.Type == batch.JobFailed) && c.Status == v1.ConditionTrue {
			return true, c.Type
		}
	}
	return false, ""
}

// IsJobFinished says whether a Job is Complete or Failed.
func IsJobFinished(j *batch.Job) bool {
	finished, _ := FinishedCondition(j)
	return finished
}

// IsJobSucceeded says whether a Job is Complete.
func IsJobSucceeded(j *batch.Job) bool {
	_, condition := FinishedCondition(j)
	return condition == batch.JobComplete
}
