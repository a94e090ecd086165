// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// judge says how the Job is to end, as far as its Pods decide that without looking at how
// many are still active; nil when it goes on. A verdict that the status holds stays.
func judge(s *state, c *census) *verdict {
	if v := standingVerdict(s.job); v != nil {
		return v
	}
	for _, rule := range []func(*state, *census) *verdict{failedByPolicy, pastBackoffLimit, pastDeadline, failedIndexes, successPolicyMet} {
		if v := rule(s, c); v != nil {
			return v
		}
	}
	return nil
}

// standingVerdict is the one that the status holds.
func standingVerdict(job *batch.Job) *verdict {
	for _, target := range []batch.JobConditionType{batch.JobSuccessCriteriaMet, batch.JobFailureTarget} {
		if c := findCondition(job.Status.Conditions, target); c != nil && c.Status == v1.ConditionTrue {
			return &verdict{target: target, reason: c.Reason, message: c.Message}
		}
	}
	return nil
}

// failedByPolicy looks for a failed Pod with which the whole Job fails. Of several it takes
// the one that ended first, so that the message does not change from sync to sync.
func failedByPolicy(s *state, _ *census) *verdict {
	if s.job.Spec.PodFailurePolicy == nil {
		return nil
	}
	var first *v1.Pod
	message := ""
	for _, pod := range s.pods {
		if !isFailed(s.job, pod) {
			continue
		}
		match := matchFailurePolicy(s.job.Spec.PodFailurePolicy, pod)
		if match.action == batch.PodFailurePolicyActionFailJob && (first == nil || endedEarlier(pod, first)) {
			first, message = pod, match.message
		}
	}
	if first == nil {
		return nil
	}
	return failure(batch.JobReasonPodFailurePolicy, message)
}

func endedEarlier(a, b *v1.Pod) bool {
	endA, endB := finishTime(a), finishTime(b)
	if !endA.Equal(endB) {
		return endA.Before(endB)
	}
	return a.Name < b.Name
}

func pastBackoffLimit(s *state, c *census) *verdict {
	if c.failed > *s.job.Spec.BackoffLimit || pastRestartLimit(s.job, s.pods) {
		return failure(batch.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	return nil
}

func pastDeadline(s *state, _ *census) *verdict {
	if left, ok := untilDeadline(s); ok && left <= 0 {
		return failure(batch.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	return nil
}

// untilDeadline is how long the Job may still run; false when it has no deadline, or time
// does not run because it is suspended.
func untilDeadline(s *state) (time.Duration, bool) {
	if s.job.Spec.ActiveDeadlineSeconds == nil || isSuspended(s.job) {
		return 0, false
	}
	started := startTime(s)
	limit := time.Duration(*s.job.Spec.ActiveDeadlineSeconds) * time.Second
	return started.Add(limit).Sub(s.now), true
}

func failedIndexes(s *state, c *census) *verdict {
	if !isIndexed(s.job) || s.job.Spec.BackoffLimitPerIndex == nil {
		return nil
	}
	failed := c.failedIndexes.total()
	if most := s.job.Spec.MaxFailedIndexes; most != nil && failed > int(*most) {
		return failure(batch.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
	}
	if failed > 0 && failed+c.succeededIndexes.total() >= completions(s.job) {
		return failure(batch.JobReasonFailedIndexes, "Job has failed indexes")
	}
	return nil
}

func successPolicyMet(s *state, c *census) *verdict {
	if !isIndexed(s.job) {
		return nil
	}
	message, met := matchSuccessPolicy(s.job.Spec.SuccessPolicy, completions(s.job), c.succeededIndexes)
	if !met {
		return nil
	}
	return success(batch.JobReasonSuccessPolicy, message)
}

// completed says whether the Job has all its completions and no Pod is active any more.
func completed(job *batch.Job, succeeded, active int32) *verdict {
	done := active == 0
	if job.Spec.Completions == nil {
		done = done && succeeded > 0
	} else {
		done = done && succeeded >= *job.Spec.Completions
	}
	if !done {
		return nil
	}
	return success(batch.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
}
