// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A sync decides twice. makePlan says which Pods to delete and to create; with what came of
// that, makeTracking (plan_tracking.go) says what the status is and which Pods are counted.
// Both are pure.

// settings are the numbers that plans depend on.
type settings struct {
	podBackoff, maxPodBackoff time.Duration
	maxUncounted              int
	maxCreateDelete           int
	// resetStartTime: the start time of a Job that is suspended is taken away
	// (MutableSchedulingDirectivesForSuspendedJobs).
	resetStartTime bool
}

// state is what a sync has found.
type state struct {
	settings
	job  *batch.Job
	pods []*v1.Pod // the Job's own, whatever their phase
	// leaving says of a Pod that this controller has requested its deletion, whatever the
	// cache still shows.
	leaving func(types.UID) bool
	// backoff is the record as of the Job's last sync; nil when nothing is remembered.
	backoff *backoffRecord
	// noReplacements: the namespace is being deleted and takes no Pods any more.
	noReplacements bool
	now            time.Time
}

// verdict is how a Job is to end.
type verdict struct {
	// target is the condition that says so before the Job has ended: SuccessCriteriaMet or
	// FailureTarget.
	target          batch.JobConditionType
	reason, message string
}

func failure(reason, message string) *verdict {
	return &verdict{target: batch.JobFailureTarget, reason: reason, message: message}
}

func success(reason, message string) *verdict {
	return &verdict{target: batch.JobSuccessCriteriaMet, reason: reason, message: message}
}

func (v *verdict) failed() bool { return v.target == batch.JobFailureTarget }

// final is the condition of the ended Job.
func (v *verdict) final() batch.JobConditionType {
	if v.failed() {
		return batch.JobFailed
	}
	return batch.JobComplete
}

// creation is a Pod to create.
type creation struct {
	index int // noIndex in a NonIndexed Job
	// failures and ignored are what the Pod's annotations are to say of its index.
	failures, ignored int
}

// plan is what to do to a Job's Pods.
type plan struct {
	// verdict, when not nil, is how the Job ends.
	verdict *verdict
	// remove are Pods to delete. release says that their ends do not count: they lose the
	// finalizer first.
	remove  []*v1.Pod
	release bool
	create  []creation
	// managed says that the number of Pods was looked at.
	managed bool
	// wait, when not 0, is when time alone will have changed something.
	wait time.Duration
}

// waitFor asks to come back after d, or earlier.
func (p *plan) waitFor(d time.Duration) {
	if d > 0 && (p.wait == 0 || d < p.wait) {
		p.wait = d
	}
}

// makePlan decides what to do to the Job's Pods.
func makePlan(s *state, c *census) *plan {
	p := &plan{verdict: judge(s, c)}
	if left, ok := untilDeadline(s); ok && p.verdict == nil {
		p.waitFor(left)
	}
	switch {
	case p.verdict != nil:
		p.remove = c.active
	case s.job.DeletionTimestamp == nil:
		p.managed = true
		p.manage(s, c)
	}
	return p
}

// startTime is when the Job started, as far as that is decided before its Pods are looked at.
func startTime(s *state) *metav1.Time {
	if s.job.Status.StartTime == nil && !isSuspended(s.job) {
		return &metav1.Time{Time: s.now}
	}
	return s.job.Status.StartTime
}

func isSuspended(job *batch.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func isIndexed(job *batch.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batch.IndexedCompletion
}

func completionMode(job *batch.Job) string {
	if isIndexed(job) {
		return string(batch.IndexedCompletion)
	}
	return string(batch.NonIndexedCompletion)
}

// completions of an Indexed Job; without them it has none.
func completions(job *batch.Job) int {
	if job.Spec.Completions == nil {
		return 0
	}
	return int(*job.Spec.Completions)
}

// replacesOnlyFailed says whether a Pod that is being deleted is replaced only once it has ended.
func replacesOnlyFailed(job *batch.Job) bool {
	if policy := job.Spec.PodReplacementPolicy; policy != nil {
		return *policy == batch.Failed
	}
	return job.Spec.PodFailurePolicy != nil
}
