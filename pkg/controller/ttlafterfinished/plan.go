// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"errors"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// errNoTimeOut means that a Job is not to be cleaned up, whatever the time is.
var errNoTimeOut = errors.New("not finished, without TTL or in deletion")

// needsCleanup says whether the Job is to be deleted some time.
func needsCleanup(job *batch.Job) bool {
	return job.DeletionTimestamp == nil && job.Spec.TTLSecondsAfterFinished != nil && finishedCondition(job) != nil
}

// finishedCondition returns the condition that says that the Job has finished, or nil.
func finishedCondition(job *batch.Job) *batch.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batch.JobComplete || c.Type == batch.JobFailed) && c.Status == v1.ConditionTrue {
			return c
		}
	}
	return nil
}

// lifetime is when a Job finished, and when it expires.
type lifetime struct {
	finished, expires time.Time
}

// lifetimeOf returns errNoTimeOut for a Job that is not to be cleaned up.
func lifetimeOf(job *batch.Job) (lifetime, error) {
	if !needsCleanup(job) {
		return lifetime{}, errNoTimeOut
	}
	finished := finishedCondition(job).LastTransitionTime
	if finished.IsZero() {
		return lifetime{}, fmt.Errorf("unable to find the time when the Job %s/%s finished", job.Namespace, job.Name)
	}
	return lifetime{
		finished: finished.Time,
		expires:  finished.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second),
	}, nil
}

// left is how long the Job may still live; 0 or less when it has expired.
func (l lifetime) left(now time.Time) time.Duration { return l.expires.Sub(now) }
