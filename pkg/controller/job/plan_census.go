// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller"
)

// census is what the Job's Pods are, and what they make of its counts.
type census struct {
	active      []*v1.Pod
	terminating []*v1.Pod
	ready       int32

	// tracked are the Pods with the finalizer, by UID.
	tracked map[types.UID]*v1.Pod
	// uncounted are the UIDs that the status lists as ended and not yet counted.
	uncounted sets.Set[types.UID]

	// succeeded and failed count all Pods that have ended: those that the status counts or
	// lists, and those that are found only now.
	succeeded, failed int32
	// backoff is the record with the Pods that are found only now.
	backoff backoffRecord

	// Of Indexed Jobs. The ones before are those that the status has.
	succeededBefore, succeededIndexes indexes
	failedBefore, failedIndexes       indexes
	// kept is the last failed Pod of each index that waits for its replacement
	// (backoffLimitPerIndex): it holds the number of failures, and so keeps its finalizer.
	kept map[int]*v1.Pod
}

// takeCensus sorts the Job's Pods.
func takeCensus(s *state) *census {
	c := &census{tracked: map[types.UID]*v1.Pod{}, uncounted: sets.New[types.UID]()}
	for _, pod := range s.pods {
		switch {
		case podutil.IsPodTerminal(pod):
		case pod.DeletionTimestamp != nil || s.leaving(pod.UID):
			c.terminating = append(c.terminating, pod)
		default:
			c.active = append(c.active, pod)
			if podutil.IsPodReady(pod) {
				c.ready++
			}
		}
		if isTracked(pod) {
			c.tracked[pod.UID] = pod
		}
	}
	listed := s.job.Status.UncountedTerminatedPods
	if listed == nil {
		listed = &batch.UncountedTerminatedPods{}
	}
	c.uncounted.Insert(listed.Succeeded...)
	c.uncounted.Insert(listed.Failed...)

	c.countEnded(s, listed)
	if isIndexed(s.job) {
		c.countIndexes(s)
	}
	return c
}

// countEnded counts what the status says and the Pods that have ended since.
func (c *census) countEnded(s *state, listed *batch.UncountedTerminatedPods) {
	var succeeded, failed []*v1.Pod
	ignored := 0
	for _, pod := range s.pods {
		if !c.isNew(s.job, pod) {
			continue
		}
		switch {
		case pod.Status.Phase == v1.PodSucceeded:
			succeeded = append(succeeded, pod)
		case isFailed(s.job, pod):
			failed = append(failed, pod)
			if !matchFailurePolicy(s.job.Spec.PodFailurePolicy, pod).counts {
				ignored++
			}
		}
	}
	status := &s.job.Status
	c.succeeded = status.Succeeded + int32(len(listed.Succeeded)+len(succeeded))
	c.failed = status.Failed + int32(len(listed.Failed)+len(failed)-ignored)
	if s.backoff != nil {
		c.backoff = s.backoff.after(succeeded, failed)
		return
	}
	// Nothing is remembered, as after a restart: the Pods that are there tell the story.
	c.backoff = backoffRecord{}.after(
		controller.FilterPods(s.pods, func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded }),
		controller.FilterPods(s.pods, func(pod *v1.Pod) bool { return isFailed(s.job, pod) && !isReleased(pod) }))
}

// isReleased says of a Pod in deletion without finalizer that it was surplus: its end is no failure.
func isReleased(pod *v1.Pod) bool {
	return pod.Status.Phase != v1.PodFailed && pod.DeletionTimestamp != nil && !isTracked(pod)
}

// isNew says whether a Pod, should it have ended, is not in the counts yet.
func (c *census) isNew(job *batch.Job, pod *v1.Pod) bool {
	if c.tracked[pod.UID] == nil || c.uncounted.Has(pod.UID) {
		return false
	}
	return hasPlace(job, pod)
}

// hasPlace says whether the Job has a place for the Pod: an Indexed one has no place for a
// Pod without index, or with one that is too large.
func hasPlace(job *batch.Job, pod *v1.Pod) bool {
	if !isIndexed(job) {
		return true
	}
	index := completionIndex(pod)
	return index != noIndex && index < completions(job)
}

// countIndexes finds the indexes that have succeeded and failed.
func (c *census) countIndexes(s *state) {
	total := completions(s.job)
	c.succeededBefore = parseIndexes(s.job.Status.CompletedIndexes, total)
	var succeeded []int
	for _, pod := range c.tracked {
		index := completionIndex(pod)
		if pod.Status.Phase == v1.PodSucceeded && hasPlace(s.job, pod) && !c.succeededBefore.has(index) {
			succeeded = append(succeeded, index)
		}
	}
	c.succeededIndexes = c.succeededBefore.with(succeeded...)
	// The status counts indexes, not Pods: an index may have succeeded twice.
	c.succeeded = int32(c.succeededIndexes.total())
	if s.job.Spec.BackoffLimitPerIndex == nil {
		return
	}
	if s.job.Status.FailedIndexes != nil {
		c.failedBefore = parseIndexes(*s.job.Status.FailedIndexes, total)
	}
	var failed []int
	for _, pod := range c.tracked {
		if hasPlace(s.job, pod) && !c.failedBefore.has(completionIndex(pod)) && isIndexFailed(s.job, pod) {
			failed = append(failed, completionIndex(pod))
		}
	}
	c.failedIndexes = c.failedBefore.with(failed...)
	if !s.noReplacements {
		c.keepLastFailed(s)
	}
}

// keepLastFailed finds the failed Pods that wait for their replacement.
func (c *census) keepLastFailed(s *state) {
	c.kept = map[int]*v1.Pod{}
	active := indexesOf(c.active)
	for _, pod := range c.tracked {
		index := completionIndex(pod)
		if !hasPlace(s.job, pod) || !isFailed(s.job, pod) {
			continue
		}
		if active.has(index) || c.succeededIndexes.has(index) || c.failedIndexes.has(index) {
			continue
		}
		if last := c.kept[index]; last == nil || failedLater(pod, last) {
			c.kept[index] = pod
		}
	}
}

// failedLater says whether a is the later of two failed Pods of one index.
func failedLater(a, b *v1.Pod) bool {
	countA, countB := indexFailures(a)+ignoredIndexFailures(a), indexFailures(b)+ignoredIndexFailures(b)
	if countA != countB {
		return countA > countB
	}
	endA, endB := finishTime(a), finishTime(b)
	if !endA.Equal(endB) {
		return endA.After(endB)
	}
	return a.UID > b.UID
}

// isTracked says whether the Pod has the finalizer that keeps it until it is counted.
func isTracked(pod *v1.Pod) bool { return slices.Contains(pod.Finalizers, batch.JobTrackingFinalizer) }

// isFailed says whether the Pod counts as failed: it has failed, or, in a Job that replaces
// Pods in deletion at once, it is being deleted and has not succeeded.
func isFailed(job *batch.Job, pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodFailed {
		return true
	}
	return !replacesOnlyFailed(job) && pod.DeletionTimestamp != nil && pod.Status.Phase != v1.PodSucceeded
}

// isIndexFailed says whether the failure of this Pod is that of its whole index.
func isIndexFailed(job *batch.Job, pod *v1.Pod) bool {
	if !isFailed(job, pod) {
		return false
	}
	match := matchFailurePolicy(job.Spec.PodFailurePolicy, pod)
	if match.action == batch.PodFailurePolicyActionFailIndex {
		return true
	}
	return match.counts && indexFailures(pod) >= int(*job.Spec.BackoffLimitPerIndex)
}
