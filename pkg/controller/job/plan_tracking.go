// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"slices"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// outcome is what came of a plan.
type outcome struct {
	deleted []*v1.Pod // whose deletion was accepted, or that were gone
	created int
	err     error // the first one
}

// tracking is how the sync ends: a status, and the Pods that may lose their finalizer once
// that status is stored. The status lists those among them that it does not count yet; they
// are counted in the next status that is written after they have lost it. So a Pod is
// counted once, wherever in between the controller dies.
type tracking struct {
	status  batch.JobStatus
	untrack []*v1.Pod
	// verdict, when not nil, is how the Job ends now, if nothing is left to wait for.
	verdict *verdict
	// more says that not all Pods that have ended found a place in the list.
	more bool
	// resumed and suspended say that the Job has just been so.
	resumed, suspended bool
	// handled is how often each action of the pod failure policy was applied.
	handled map[batch.PodFailurePolicyAction]int
	// Indexes that ended just now.
	newSucceeded, newFailed int
}

// makeTracking makes the status, with what came of the plan in it.
func makeTracking(s *state, c *census, p *plan, out outcome) *tracking {
	t := &tracking{status: s.job.Status, handled: map[batch.PodFailurePolicyAction]int{}}
	t.status.StartTime = startTime(s)
	t.countLive(c, out)
	t.decideEnd(s, c, p, out)
	t.countEnded(s, c)
	if t.verdict != nil {
		t.status.Conditions, _ = ensureCondition(t.status.Conditions, t.verdict.target, v1.ConditionTrue, t.verdict.reason, t.verdict.message, s.now)
	}
	return t
}

// countLive counts the Pods that have not ended.
func (t *tracking) countLive(c *census, out outcome) {
	ready := c.ready
	for _, pod := range out.deleted {
		if podutil.IsPodReady(pod) {
			ready--
		}
	}
	t.status.Active = int32(len(c.active) - len(out.deleted) + out.created)
	t.status.Ready = &ready
	t.status.Terminating = new(int32(len(c.terminating) + len(out.deleted)))
}

// decideEnd finds the verdict that holds after the writes, and sets the condition Suspended.
func (t *tracking) decideEnd(s *state, c *census, p *plan, out outcome) {
	if p.verdict != nil {
		// While a Pod could not be deleted, the Job must not be declared as ending: that
		// Pod would go on and nobody would count it.
		if len(out.deleted) == len(c.active) {
			t.verdict = p.verdict
		}
		return
	}
	if t.verdict = completed(s.job, c.succeeded, t.status.Active); t.verdict != nil || !p.managed {
		return
	}
	if isSuspended(s.job) {
		t.status.Conditions, t.suspended = ensureCondition(t.status.Conditions, batch.JobSuspended, v1.ConditionTrue, reasonJobSuspended, messageJobSuspended, s.now)
		if s.resetStartTime {
			t.status.StartTime = nil
		}
		return
	}
	t.status.Conditions, t.resumed = ensureCondition(t.status.Conditions, batch.JobSuspended, v1.ConditionFalse, reasonJobResumed, messageJobResumed, s.now)
	if t.resumed {
		t.status.StartTime = &metav1.Time{Time: s.now}
	}
}

// countEnded counts the listed Pods that have lost the finalizer, and lists those that have
// ended since.
func (t *tracking) countEnded(s *state, c *census) {
	listed := foldUncounted(&t.status, func(uid types.UID) bool { return c.tracked[uid] == nil })
	candidates := t.untrackable(s, c)
	var succeeded []int
	for _, pod := range candidates {
		// Those in the list make room in it when they lose the finalizer.
		if len(succeeded)+len(listed.Succeeded)+len(listed.Failed) >= s.maxUncounted && !c.uncounted.Has(pod.UID) {
			t.more = true
			continue
		}
		t.untrack = append(t.untrack, pod)
		switch {
		case c.uncounted.Has(pod.UID) || !hasPlace(s.job, pod):
		case pod.Status.Phase != v1.PodSucceeded:
			if t.failureCounts(s, pod) {
				listed.Failed = append(listed.Failed, pod.UID)
			}
		case !isIndexed(s.job):
			listed.Succeeded = append(listed.Succeeded, pod.UID)
		case !c.succeededBefore.has(completionIndex(pod)):
			succeeded = append(succeeded, completionIndex(pod))
		}
	}
	t.status.UncountedTerminatedPods = listed
	if !isIndexed(s.job) {
		return
	}
	all := c.succeededBefore.with(succeeded...)
	t.status.CompletedIndexes, t.status.Succeeded = all.String(), int32(all.total())
	t.newSucceeded = all.total() - c.succeededBefore.total()
	if s.job.Spec.BackoffLimitPerIndex != nil {
		t.status.FailedIndexes = new(c.failedIndexes.String())
		t.newFailed = c.failedIndexes.total() - c.failedBefore.total()
	}
}

// untrackable returns the Pods that may lose the finalizer, in the order of their indexes.
func (t *tracking) untrackable(s *state, c *census) []*v1.Pod {
	ending := t.verdict != nil || s.job.DeletionTimestamp != nil
	var found []*v1.Pod
	for uid, pod := range c.tracked {
		switch {
		case ending, c.uncounted.Has(uid), pod.Status.Phase == v1.PodSucceeded:
		case isFailed(s.job, pod) && c.kept[completionIndex(pod)] != pod:
		default:
			continue
		}
		found = append(found, pod)
	}
	slices.SortFunc(found, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(completionIndex(a), completionIndex(b)), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// failureCounts says whether a Pod that has not succeeded counts as failed. When the Job
// fails, all do that are still there.
func (t *tracking) failureCounts(s *state, pod *v1.Pod) bool {
	if !isFailed(s.job, pod) {
		return t.verdict != nil && t.verdict.failed()
	}
	match := matchFailurePolicy(s.job.Spec.PodFailurePolicy, pod)
	if match.action != "" {
		t.handled[match.action]++
	}
	return match.counts
}

// conclude returns the status after the Pods in untracked have lost the finalizer, and
// whether the Job has ended with it. t stays as it is.
func (t *tracking) conclude(s *state, c *census, untracked map[types.UID]bool) (batch.JobStatus, bool) {
	status := t.status
	status.UncountedTerminatedPods = foldUncounted(&status, func(uid types.UID) bool { return c.tracked[uid] == nil || untracked[uid] })
	waits := len(status.UncountedTerminatedPods.Succeeded) > 0 || len(status.UncountedTerminatedPods.Failed) > 0 ||
		*status.Terminating > 0 || t.more || len(untracked) < len(t.untrack)
	if t.verdict == nil || waits {
		return status, false
	}
	status.Conditions, _ = ensureCondition(status.Conditions, t.verdict.final(), v1.ConditionTrue, t.verdict.reason, t.verdict.message, s.now)
	if !t.verdict.failed() {
		status.CompletionTime = &metav1.Time{Time: s.now}
	}
	return status, true
}

// foldUncounted adds the listed Pods that have lost the finalizer to the counts of status,
// and returns a new list of the others. (An Indexed Job lists no succeeded ones.)
func foldUncounted(status *batch.JobStatus, lost func(types.UID) bool) *batch.UncountedTerminatedPods {
	rest := &batch.UncountedTerminatedPods{}
	listed := status.UncountedTerminatedPods
	if listed == nil {
		return rest
	}
	for _, uid := range listed.Succeeded {
		if lost(uid) {
			status.Succeeded++
		} else {
			rest.Succeeded = append(rest.Succeeded, uid)
		}
	}
	for _, uid := range listed.Failed {
		if lost(uid) {
			status.Failed++
		} else {
			rest.Failed = append(rest.Failed, uid)
		}
	}
	return rest
}
