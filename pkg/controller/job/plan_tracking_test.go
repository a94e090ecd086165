// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"testing"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTracking(t *testing.T) {
	type uids = []types.UID
	running, succeeded, failed := v1.PodRunning, v1.PodSucceeded, v1.PodFailed
	for _, tc := range []struct {
		name    string
		job     *batch.Job
		pods    []*v1.Pod
		change  func(*state)
		verdict *verdict

		untrack           []string
		succeeded, failed int32 // of the first status
		listedS, listedF  uids
		more              bool
		completed         string
	}{
		{name: "nothing new", job: newJob(1, 5)},
		{name: "active ones stay", job: newJob(1, 5), pods: pods(1, running)},
		{name: "finished ones", job: newJob(1, 5),
			pods:    []*v1.Pod{newPod("a", succeeded), newPod("b", failed), newPod("c", succeeded, untracked), newPod("d", failed, untracked), newPod("e", running)},
			untrack: []string{"a", "b"}, listedS: uids{"a"}, listedF: uids{"b"}},
		{name: "before and now", job: newJob(1, 9, counted(2, 3), uncounted(uids{"a", "gone"}, uids{"b", "late"})),
			pods:    []*v1.Pod{newPod("a", succeeded), newPod("b", failed, untracked), newPod("c", succeeded), newPod("d", failed)},
			untrack: []string{"a", "c", "d"}, succeeded: 3, failed: 5, listedS: uids{"a", "c"}, listedF: uids{"d"}},
		{name: "failing: those that run count as failed", job: newJob(2, 9), verdict: failure("r", "m"),
			pods: []*v1.Pod{newPod("a", succeeded), newPod("b", running)}, untrack: []string{"a", "b"}, listedS: uids{"a"}, listedF: uids{"b"}},
		{name: "ending well: those that run do not count", job: newJob(2, 9), verdict: success("r", "m"),
			pods: []*v1.Pod{newPod("a", succeeded), newPod("b", running)}, untrack: []string{"a", "b"}, listedS: uids{"a"}},
		{name: "deleted Job", job: newJob(2, 9, deleted),
			pods: []*v1.Pod{newPod("a", succeeded), newPod("b", running), newPod("c", failed)}, untrack: []string{"a", "b", "c"}, listedS: uids{"a"}, listedF: uids{"c"}},
		{name: "flips from failed to succeeded", job: newJob(2, 9, uncounted(nil, uids{"a"})),
			pods: []*v1.Pod{newPod("a", succeeded)}, untrack: []string{"a"}, listedF: uids{"a"}},
		{name: "terminating counts as failed", job: newJob(2, 9), pods: []*v1.Pod{newPod("a", running, leaving)}, untrack: []string{"a"}, listedF: uids{"a"}},
		{name: "terminating does not count where only failed ones are replaced", job: newJob(2, 9, replacement(batch.Failed)), pods: []*v1.Pod{newPod("a", running, leaving)}},
		{name: "too many", job: newJob(2, 9, uncounted(uids{"a"}, nil)), change: func(s *state) { s.maxUncounted = 2 },
			pods: []*v1.Pod{newPod("a", succeeded), newPod("b", failed), newPod("c", succeeded)}, untrack: []string{"a", "b"}, listedS: uids{"a"}, listedF: uids{"b"}, more: true},
		{name: "too many indexes", job: newJob(2, 9, indexed), change: func(s *state) { s.maxUncounted = 2 },
			pods: indexedPods("4 Succeeded,0 Succeeded,2 Succeeded"), untrack: []string{"p-0-succeeded-1", "p-2-succeeded-2"}, succeeded: 2, completed: "0,2", more: true},
		{name: "Indexed", job: newJob(2, 9, indexed),
			pods: indexedPods("0 Succeeded,1 Failed,2 Running,3 Succeeded,9 Succeeded"), untrack: []string{"p-0-succeeded-0", "p-1-failed-1", "p-3-succeeded-3", "p-9-succeeded-4"},
			succeeded: 2, completed: "0,3", listedF: uids{"p-1-failed-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &state{settings: testSettings(), job: tc.job, pods: tc.pods, leaving: noneLeaving, now: testNow}
			if tc.change != nil {
				tc.change(s)
			}
			c := takeCensus(s)
			tr := &tracking{status: s.job.Status, verdict: tc.verdict, handled: map[batch.PodFailurePolicyAction]int{}}
			tr.countEnded(s, c)
			var untrack []string
			for _, pod := range tr.untrack {
				untrack = append(untrack, pod.Name)
			}
			if !slices.Equal(untrack, tc.untrack) {
				t.Errorf("lose the finalizer: %v, want %v", untrack, tc.untrack)
			}
			got := tr.status
			if got.Succeeded != tc.succeeded || got.Failed != tc.failed || got.CompletedIndexes != tc.completed || tr.more != tc.more {
				t.Errorf("%d succeeded (%q), %d failed, more %v", got.Succeeded, got.CompletedIndexes, got.Failed, tr.more)
			}
			listed := got.UncountedTerminatedPods
			if !slices.Equal(listed.Succeeded, tc.listedS) || !slices.Equal(listed.Failed, tc.listedF) {
				t.Errorf("listed %v, %v; want %v, %v", listed.Succeeded, listed.Failed, tc.listedS, tc.listedF)
			}
		})
	}
}

// Only the Pods that have lost the finalizer are counted, and the Job ends only with all.
func TestConclude(t *testing.T) {
	s, c := censusOf(newJob(2, 2), newPod("a", v1.PodSucceeded), newPod("b", v1.PodSucceeded))
	tr := makeTracking(s, c, makePlan(s, c), outcome{})
	some, ends := tr.conclude(s, c, map[types.UID]bool{"a": true})
	if ends || some.Succeeded != 1 || len(some.UncountedTerminatedPods.Succeeded) != 1 {
		t.Errorf("one finalizer gone: ends %v, %+v", ends, some)
	}
	all, ends := tr.conclude(s, c, map[types.UID]bool{"a": true, "b": true})
	if !ends || all.Succeeded != 2 || len(all.UncountedTerminatedPods.Succeeded) != 0 || !all.CompletionTime.Time.Equal(testNow) {
		t.Errorf("all finalizers gone: ends %v, %+v", ends, all)
	}
	if len(tr.status.UncountedTerminatedPods.Succeeded) != 2 {
		t.Error("concluding has changed the status before")
	}
}
