// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func noneLeaving(types.UID) bool { return false }

// pods returns n Pods of a phase, named after it.
func pods(n int, phase v1.PodPhase, changes ...func(*v1.Pod)) []*v1.Pod {
	var all []*v1.Pod
	for i := range n {
		all = append(all, newPod(fmt.Sprintf("%s-%d-%d", strings.ToLower(string(phase)), len(changes), i), phase, changes...))
	}
	return all
}

func join(groups ...[]*v1.Pod) []*v1.Pod { return slices.Concat(groups...) }

// indexedPods makes Pods from "0 Running, 2 Failed".
func indexedPods(text string) []*v1.Pod {
	var all []*v1.Pod
	for part := range strings.SplitSeq(text, ",") {
		var i int
		var phase string
		if _, err := fmt.Sscan(part, &i, &phase); err != nil {
			panic(err)
		}
		all = append(all, newPod(fmt.Sprintf("p-%d-%s-%d", i, strings.ToLower(phase), len(all)), v1.PodPhase(phase), index(i)))
	}
	return all
}

// syncRow is one sync on paper.
type syncRow struct {
	name   string
	job    *batch.Job
	pods   []*v1.Pod
	change func(*state)
	// fails makes every write of the plan fail.
	fails bool

	creates int
	indexes string // of the created Pods
	removes int
	keeps   bool // the removed Pods are not released
	wait    time.Duration

	active, ready, terminating int32
	succeeded, failed          int // counted or listed
	completed                  string
	failedIndexes              string
	target                     string // "type reason" of a new verdict
	ends                       bool   // once the finalizers are gone
	suspended                  string
}

func (r syncRow) run(t *testing.T) {
	s := &state{settings: testSettings(), job: r.job, pods: r.pods, leaving: noneLeaving, now: testNow}
	if r.change != nil {
		r.change(s)
	}
	before := r.job.DeepCopy()
	c := takeCensus(s)
	p := makePlan(s, c)
	var created []string
	for _, next := range p.create {
		created = append(created, fmt.Sprint(next.index))
	}
	if len(p.create) != r.creates || len(p.remove) != r.removes {
		t.Errorf("%d created, %d removed; want %d, %d", len(p.create), len(p.remove), r.creates, r.removes)
	}
	if got := strings.Join(created, ","); r.indexes != "" && got != r.indexes {
		t.Errorf("created for the indexes %s, want %s", got, r.indexes)
	}
	if len(p.remove) > 0 && p.release == r.keeps {
		t.Errorf("removed Pods are released: %v", p.release)
	}
	if p.wait != r.wait {
		t.Errorf("waits %v, want %v", p.wait, r.wait)
	}
	out := outcome{deleted: p.remove, created: len(p.create)}
	if r.fails {
		out = outcome{err: errors.New("no")}
	}
	tr := makeTracking(s, c, p, out)
	r.checkTracking(t, s, c, tr)
	if fmt.Sprint(before.Status) != fmt.Sprint(r.job.Status) {
		t.Error("the Job of the cache was changed")
	}
}

func (r syncRow) checkTracking(t *testing.T, s *state, c *census, tr *tracking) {
	t.Helper()
	got := tr.status
	if got.Active != r.active || *got.Ready != r.ready || *got.Terminating != r.terminating {
		t.Errorf("%d active, %d ready, %d terminating; want %d, %d, %d", got.Active, *got.Ready, *got.Terminating, r.active, r.ready, r.terminating)
	}
	if succeeded, failed := countedPods(&got); succeeded != r.succeeded || failed != r.failed {
		t.Errorf("%d succeeded, %d failed; want %d, %d", succeeded, failed, r.succeeded, r.failed)
	}
	if got.CompletedIndexes != r.completed {
		t.Errorf("completed indexes %q, want %q", got.CompletedIndexes, r.completed)
	}
	if got.FailedIndexes != nil && *got.FailedIndexes != r.failedIndexes || got.FailedIndexes == nil && r.failedIndexes != "" {
		t.Errorf("failed indexes %v, want %q", got.FailedIndexes, r.failedIndexes)
	}
	target := ""
	if tr.verdict != nil {
		target = string(tr.verdict.target) + " " + tr.verdict.reason
		if cond := findCondition(got.Conditions, tr.verdict.target); cond == nil || cond.Status != v1.ConditionTrue {
			t.Errorf("the verdict %s is not among the conditions %v", target, got.Conditions)
		}
	}
	if target != r.target {
		t.Errorf("verdict %q, want %q", target, r.target)
	}
	suspended := ""
	if cond := findCondition(got.Conditions, batch.JobSuspended); cond != nil {
		suspended = string(cond.Status) + " " + cond.Reason
	}
	if suspended != r.suspended {
		t.Errorf("condition Suspended is %q, want %q", suspended, r.suspended)
	}
	gone := map[types.UID]bool{}
	for _, pod := range tr.untrack {
		gone[pod.UID] = true
	}
	final, ends := tr.conclude(s, c, gone)
	if ends != r.ends {
		t.Errorf("ends: %v, want %v", ends, r.ends)
	}
	if ends && (findCondition(final.Conditions, tr.verdict.final()) == nil || (final.CompletionTime != nil) == tr.verdict.failed()) {
		t.Errorf("ended with %+v", final)
	}
	if len(final.UncountedTerminatedPods.Succeeded)+len(final.UncountedTerminatedPods.Failed) > 0 && len(gone) == len(tr.untrack) {
		t.Errorf("uncounted %v when all finalizers are gone", final.UncountedTerminatedPods)
	}
}

const (
	reached   = "SuccessCriteriaMet CompletionsReached"
	pastLimit = "FailureTarget BackoffLimitExceeded"
	pastTime  = "FailureTarget DeadlineExceeded"
	byPolicy  = "FailureTarget PodFailurePolicy"
	bySuccess = "SuccessCriteriaMet SuccessPolicy"
	byIndexes = "FailureTarget FailedIndexes"
)

func runRows(t *testing.T, rows []syncRow) {
	for _, row := range rows {
		t.Run(row.name, row.run)
	}
}

func TestSyncNonIndexed(t *testing.T) {
	running, pending := v1.PodRunning, v1.PodPending
	runRows(t, []syncRow{
		{name: "start", job: newJob(2, 5), creates: 2, active: 2},
		{name: "work queue starts", job: newJob(2, 0, workQueue), creates: 2, active: 2},
		{name: "pending Pods", job: newJob(2, 5), pods: pods(2, pending), active: 2},
		{name: "right number", job: newJob(2, 5), pods: pods(2, running, ready), active: 2, ready: 2},
		{name: "work queue, right number", job: newJob(2, 0, workQueue), pods: pods(2, running), active: 2},
		{name: "too few", job: newJob(2, 5), pods: join(pods(1, running), pods(1, v1.PodSucceeded)), creates: 1, active: 2, succeeded: 1},
		{name: "work queue: failed ones are replaced", job: newJob(2, 0, workQueue), pods: join(pods(1, running), pods(1, v1.PodFailed)), creates: 1, active: 2, failed: 1},
		{name: "work queue: terminating ones are replaced", job: newJob(2, 0, workQueue), pods: join(pods(1, running), pods(1, running, leaving)), creates: 1, active: 2, terminating: 1, failed: 1},
		{name: "work queue: only failed ones are replaced", job: newJob(2, 0, workQueue, replacement(batch.Failed)), pods: join(pods(1, running), pods(1, running, leaving)), active: 1, terminating: 1},
		{name: "more terminating than parallelism", job: newJob(1, 1, replacement(batch.Failed)), pods: pods(2, running, leaving), terminating: 2},
		{name: "more terminating than parallelism, with failure policy", job: newJob(1, 1, failurePolicy()), pods: pods(2, running, leaving), terminating: 2},
		{name: "back-off", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", v1.PodFailed, exited(1, 5*time.Second))}, wait: 5 * time.Second, failed: 1},
		{name: "back-off with a running Pod", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", v1.PodFailed, exited(1, 0)), newPod("b", running)}, wait: 10 * time.Second, active: 1, failed: 1},
		{name: "almost out of back-off", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", v1.PodFailed, exited(1, 9900*time.Millisecond))}, wait: time.Second, failed: 1},
		{name: "out of back-off", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", v1.PodFailed, exited(1, 10*time.Second))}, creates: 2, active: 2, failed: 1},
		{name: "no back-off remembered", job: newJob(2, 5, counted(0, 1)), creates: 2, active: 2, failed: 1},
		{name: "back-off remembered", job: newJob(2, 5, counted(0, 2)), change: func(s *state) { s.backoff = &backoffRecord{2, testNow.Add(-5 * time.Second)} }, wait: 15 * time.Second, failed: 2},
		{name: "failed and succeeded: no back-off", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", v1.PodFailed, exited(1, 2)), newPod("b", v1.PodSucceeded, exited(0, 1))}, creates: 2, active: 2, succeeded: 1, failed: 1},
		{name: "creation fails", job: newJob(2, 5), pods: join(pods(1, running), pods(1, v1.PodSucceeded)), fails: true, creates: 1, active: 1, succeeded: 1},
		{name: "too many", job: newJob(2, 5), pods: join(pods(1, running, ready), pods(2, pending)), removes: 1, active: 2, ready: 1, terminating: 1},
		{name: "ready ones are removed last", job: newJob(1, 5), pods: pods(2, running, ready), removes: 1, active: 1, ready: 1, terminating: 1},
		{name: "deletion fails", job: newJob(2, 5), pods: pods(3, running), fails: true, removes: 1, active: 3},
		{name: "none wanted", job: newJob(0, 5), pods: pods(2, running), removes: 2, terminating: 2},
		{name: "more active than completions left", job: newJob(4, 5), pods: join(pods(4, v1.PodSucceeded), pods(4, running)), removes: 3, active: 1, succeeded: 4, terminating: 3},
		{name: "completions reached", job: newJob(2, 5), pods: pods(5, v1.PodSucceeded), succeeded: 5, target: reached, ends: true},
		{name: "completions exceeded", job: newJob(2, 2), pods: pods(3, v1.PodSucceeded), succeeded: 3, target: reached, ends: true},
		{name: "completions reached, some terminating", job: newJob(2, 2, replacement(batch.Failed)), pods: join(pods(2, v1.PodSucceeded), pods(1, running, leaving)), succeeded: 2, terminating: 1, target: reached},
		{name: "work queue finishing", job: newJob(2, 0, workQueue), pods: join(pods(1, running), pods(1, v1.PodSucceeded)), active: 1, succeeded: 1},
		{name: "work queue finished", job: newJob(2, 0, workQueue), pods: pods(2, v1.PodSucceeded), succeeded: 2, target: reached, ends: true},
		{name: "work queue finished despite a failure", job: newJob(2, 0, workQueue), pods: join(pods(1, v1.PodSucceeded), pods(1, v1.PodFailed)), succeeded: 1, failed: 1, target: reached, ends: true},
		{name: "work queue without parallelism waits", job: newJob(0, 0, workQueue)},
		{name: "no completions asked for", job: newJob(1, 0), target: reached, ends: true},
		{name: "deleted Job creates none", job: newJob(2, 5, deleted), pods: pods(1, running), active: 1},
		{name: "at most so many a time", job: newJob(10, 10), change: func(s *state) { s.maxCreateDelete = 3 }, creates: 3, active: 3},
		{name: "at most so many deleted a time", job: newJob(0, 10), pods: pods(5, running), change: func(s *state) { s.maxCreateDelete = 3 }, removes: 3, active: 2, terminating: 3},
		{name: "too many failures", job: newJob(2, 5, backoffLimit(0)), pods: join(pods(1, running, ready), pods(1, v1.PodFailed)), removes: 1, keeps: true, terminating: 1, failed: 2, target: pastLimit},
		{name: "too many failures, nothing runs", job: newJob(2, 5, backoffLimit(0)), pods: pods(1, v1.PodFailed), failed: 1, target: pastLimit, ends: true},
		{name: "too many failures, deletion fails", job: newJob(2, 5, backoffLimit(0)), pods: join(pods(1, running), pods(1, v1.PodFailed)), fails: true, removes: 1, keeps: true, active: 1, failed: 1},
		{name: "what is listed and counted adds up to the limit", job: newJob(2, 5, backoffLimit(2), counted(0, 1), uncounted(nil, []types.UID{"x"})), pods: pods(1, v1.PodFailed), failed: 3, target: pastLimit, ends: true},
		{name: "not more failures than the limit", job: newJob(1, 5, backoffLimit(6), counted(0, 5)), pods: pods(1, v1.PodFailed), creates: 1, active: 1, failed: 6},
		{name: "FailureTarget of the status stands", job: newJob(2, 5, withCondition(batch.JobFailureTarget, v1.ConditionTrue, "BackoffLimitExceeded", "m")), pods: pods(1, running), removes: 1, keeps: true, terminating: 1, failed: 1, target: pastLimit},
		{name: "FailureTarget False is nothing", job: newJob(1, 1, withCondition(batch.JobFailureTarget, v1.ConditionFalse, "ByHand", "m")), pods: pods(1, v1.PodSucceeded), succeeded: 1, target: reached, ends: true},
		{name: "SuccessCriteriaMet False is nothing", job: newJob(1, 1, withCondition(batch.JobSuccessCriteriaMet, v1.ConditionFalse, "ByHand", "m")), pods: pods(1, v1.PodSucceeded), succeeded: 1, target: reached, ends: true},
		{name: "a Pod whose deletion was requested is not active", job: newJob(2, 5), pods: []*v1.Pod{newPod("a", running), newPod("b", running)},
			change: func(s *state) { s.leaving = func(uid types.UID) bool { return uid == "a" } }, creates: 1, active: 2, terminating: 1},
	})
}

func TestSyncSuspended(t *testing.T) {
	running := v1.PodRunning
	wasSuspended := withCondition(batch.JobSuspended, v1.ConditionTrue, reasonJobSuspended, messageJobSuspended)
	runRows(t, []syncRow{
		{name: "suspend", job: newJob(2, 5, suspend, started(time.Minute)), pods: pods(2, running, ready), removes: 2, terminating: 2, suspended: "True JobSuspended"},
		{name: "suspend, deletion fails", job: newJob(2, 5, suspend), pods: pods(2, running, ready), fails: true, removes: 2, active: 2, ready: 2, suspended: "True JobSuspended"},
		{name: "created suspended", job: newJob(2, 5, suspend), suspended: "True JobSuspended"},
		{name: "resume", job: newJob(2, 5, wasSuspended), creates: 2, active: 2, suspended: "False JobResumed"},
		{name: "suspend a Job in deletion", job: newJob(2, 5, suspend, deleted), pods: pods(2, running), active: 2},
		{name: "no completions asked for", job: newJob(1, 0, suspend), target: reached, ends: true},
		{name: "the deadline does not run", job: newJob(2, 5, suspend, started(time.Hour), deadline(10)), suspended: "True JobSuspended"},
		{name: "restarts of Pods do not matter", job: newJob(1, 5, suspend, restartOnFailure, backoffLimit(3)), pods: pods(1, running, restarts(1)), removes: 1, terminating: 1, suspended: "True JobSuspended"},
	})
	t.Run("start time", func(t *testing.T) {
		for _, tc := range []struct {
			name  string
			job   *batch.Job
			reset bool
			want  *time.Time
		}{
			{"started", newJob(1, 1), true, &testNow},
			{"stays", newJob(1, 1, started(time.Hour)), true, new(testNow.Add(-time.Hour))},
			{"reset on suspension", newJob(1, 1, suspend, started(time.Hour)), true, nil},
			{"kept on suspension without the gate", newJob(1, 1, suspend, started(time.Hour)), false, new(testNow.Add(-time.Hour))},
			{"created suspended without the gate", newJob(1, 1, suspend), false, nil},
			{"set on resumption", newJob(1, 1, started(time.Hour), wasSuspended), true, &testNow},
		} {
			s := &state{settings: testSettings(), job: tc.job, leaving: noneLeaving, now: testNow}
			s.resetStartTime = tc.reset
			c := takeCensus(s)
			got := makeTracking(s, c, makePlan(s, c), outcome{}).status.StartTime
			if (got == nil) != (tc.want == nil) || got != nil && !got.Time.Equal(*tc.want) {
				t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
			}
		}
	})
}

func TestSyncDeadline(t *testing.T) {
	running := v1.PodRunning
	runRows(t, []syncRow{
		{name: "starts to run", job: newJob(1, 1, deadline(10)), creates: 1, active: 1, wait: 10 * time.Second},
		{name: "runs", job: newJob(1, 1, deadline(10), started(4*time.Second)), pods: pods(1, running), active: 1, wait: 6 * time.Second},
		{name: "past, while a Pod runs", job: newJob(1, 2, deadline(10), started(15*time.Second)), pods: join(pods(1, running), pods(1, v1.PodSucceeded)), removes: 1, keeps: true, terminating: 1, succeeded: 1, failed: 1, target: pastTime},
		{name: "past before any Pod", job: newJob(1, 2, deadline(10), started(15*time.Second)), target: pastTime, ends: true},
		{name: "past, and too many failures", job: newJob(1, 1, deadline(1), started(10*time.Second), backoffLimit(0)), pods: pods(1, v1.PodFailed), failed: 1, target: pastLimit, ends: true},
		{name: "zero", job: newJob(1, 1, deadline(0)), target: pastTime, ends: true},
	})
}

func TestSyncRestarts(t *testing.T) {
	job := func(limit int32) *batch.Job { return newJob(2, 5, restartOnFailure, backoffLimit(limit)) }
	running, pending := v1.PodRunning, v1.PodPending
	failed := func(n int) syncRow {
		return syncRow{removes: n, keeps: true, terminating: int32(n), failed: n, target: pastLimit}
	}
	row := func(name string, limit int32, pods []*v1.Pod, want syncRow) syncRow {
		want.name, want.job, want.pods = name, job(limit), pods
		return want
	}
	runRows(t, []syncRow{
		row("limit 0, no restart", 0, pods(2, running, restarts(0)), syncRow{active: 2}),
		row("limit 0, a restart", 0, pods(2, running, restarts(1)), failed(2)),
		row("limit 1, no restart", 1, pods(2, running, restarts(0)), syncRow{active: 2}),
		row("limit 1, a restart", 1, []*v1.Pod{newPod("a", running, restarts(1)), newPod("b", running)}, failed(2)),
		row("limit 1, a restart of a pending one", 1, []*v1.Pod{newPod("a", pending, restarts(1)), newPod("b", running)}, failed(2)),
		row("several together", 5, pods(2, running, restarts(3)), failed(2)),
		row("not enough", 5, pods(2, running, restarts(2)), syncRow{active: 2}),
		row("those of ended Pods do not count", 5, join(pods(1, v1.PodSucceeded, restarts(9)), pods(2, running, restarts(1))), syncRow{active: 2, succeeded: 1}),
	})
	if !pastRestartLimit(job(3), pods(1, running, restarts(2), func(pod *v1.Pod) {
		pod.Status.InitContainerStatuses = []v1.ContainerStatus{{RestartCount: 1}}
	})) {
		t.Error("restarts of init containers do not count")
	}
}

func TestSyncIndexed(t *testing.T) {
	deletedPod := func(i int) []*v1.Pod {
		return []*v1.Pod{newPod(fmt.Sprint("gone-", i), v1.PodRunning, index(i), leaving)}
	}
	completedBefore := func(text string, n int32) func(*batch.Job) {
		return status(func(s *batch.JobStatus) { s.CompletedIndexes, s.Succeeded = text, n })
	}
	runRows(t, []syncRow{
		{name: "start", job: newJob(2, 5, indexed), creates: 2, indexes: "0,1", active: 2},
		{name: "more wanted than there are indexes", job: newJob(7, 3, indexed), creates: 3, indexes: "0,1,2", active: 3},
		{name: "first ones run", job: newJob(4, 5, indexed), pods: indexedPods("0 Running,1 Running"), creates: 2, indexes: "2,3", active: 4},
		{name: "last ones run or have succeeded", job: newJob(4, 6, indexed), pods: indexedPods("3 Running,5 Succeeded"), creates: 3, indexes: "0,1,2", active: 4, succeeded: 1, completed: "5"},
		{name: "some deleted, only failed are replaced", job: newJob(2, 5, indexed, replacement(batch.Failed)), pods: join(indexedPods("0 Running"), deletedPod(1)), active: 1, terminating: 1},
		{name: "index of a terminating one is taken", job: newJob(3, 5, indexed, replacement(batch.Failed)), pods: deletedPod(0), creates: 2, indexes: "1,2", active: 2, terminating: 1},
		{name: "some deleted, replaced at once", job: newJob(2, 5, indexed), pods: join(indexedPods("0 Running"), deletedPod(1)), creates: 1, indexes: "1", active: 2, terminating: 1, failed: 1},
		{name: "completed", job: newJob(2, 3, indexed), pods: indexedPods("0 Succeeded,1 Failed,1 Succeeded,2 Succeeded"), succeeded: 3, failed: 1, completed: "0-2", target: reached, ends: true},
		{name: "failed", job: newJob(2, 3, indexed, backoffLimit(0)), pods: indexedPods("0 Succeeded,1 Failed,2 Running"), removes: 1, keeps: true, terminating: 1, succeeded: 1, failed: 2, completed: "0", target: pastLimit},
		{name: "an index succeeded twice", job: newJob(2, 3, indexed), pods: indexedPods("0 Succeeded,1 Succeeded,1 Succeeded"), creates: 1, indexes: "2", active: 1, succeeded: 2, completed: "0,1"},
		{name: "some run, some have completed", job: newJob(8, 20, indexed), pods: indexedPods("0 Running,2 Succeeded,3 Running,4 Succeeded,5 Running,7 Succeeded,8 Succeeded,9 Succeeded"), creates: 5, indexes: "1,6,10,11,12", active: 8, succeeded: 5, completed: "2,4,7-9"},
		{name: "Pods without index", job: newJob(3, 4, indexed), pods: join(indexedPods("0 Running,1 Succeeded"), pods(1, v1.PodRunning), pods(1, v1.PodSucceeded), pods(1, v1.PodFailed)), removes: 1, active: 1, terminating: 1, succeeded: 1, completed: "1"},
		{name: "indexes twice", job: newJob(5, 5, indexed), pods: indexedPods("0 Running,0 Running,1 Pending,1 Running,2 Running"), removes: 2, active: 3, terminating: 2},
		{name: "indexes out of range", job: newJob(5, 3, indexed), pods: indexedPods("0 Running,1 Running,4 Pending,5 Succeeded,6 Failed"), removes: 1, active: 2, terminating: 1},
		{name: "made smaller than what has completed", job: newJob(3, 3, indexed, completedBefore("3,4", 2)), creates: 3, indexes: "0,1,2", active: 3},
		{name: "made smaller, new ones in range", job: newJob(3, 3, indexed, completedBefore("3,4", 2)), pods: indexedPods("0 Succeeded,1 Running,2 Running"), active: 2, succeeded: 1, completed: "0"},
		{name: "before and new", job: newJob(2, 20, indexed, completedBefore("0,2-4", 4)), pods: indexedPods("5 Succeeded,7 Succeeded,8 Running,9 Running"), active: 2, succeeded: 6, completed: "0,2-5,7"},
	})
}

func TestSyncPerIndex(t *testing.T) {
	failedAt := func(i, failures int, d time.Duration) *v1.Pod {
		return newPod(fmt.Sprintf("f-%d-%d", i, failures), v1.PodFailed, index(i), indexFailure(failures), exited(3, d))
	}
	running := func(i, failures int) *v1.Pod {
		return newPod(fmt.Sprintf("r-%d-%d", i, failures), v1.PodRunning, index(i), indexFailure(failures))
	}
	succeeded := func(i int) *v1.Pod { return newPod(fmt.Sprint("s-", i), v1.PodSucceeded, index(i)) }
	most := func(n int32) func(*batch.Job) { return func(job *batch.Job) { job.Spec.MaxFailedIndexes = &n } }
	base := func(changes ...func(*batch.Job)) *batch.Job {
		return newJob(2, 2, append([]func(*batch.Job){indexed, perIndex(1), backoffLimit(1 << 30)}, changes...)...)
	}
	runRows(t, []syncRow{
		{name: "succeeds after a failure in an index", job: base(), pods: []*v1.Pod{failedAt(0, 0, time.Minute), newPod("a", v1.PodSucceeded, index(0), indexFailure(1)), succeeded(1)}, succeeded: 2, failed: 1, completed: "0,1", target: reached, ends: true},
		{name: "a failure is counted when the Pod is replaced, and not before", job: base(), pods: []*v1.Pod{failedAt(0, 0, 0), running(1, 0)}, wait: 10 * time.Second, active: 1},
		{name: "replaced", job: base(), pods: []*v1.Pod{failedAt(0, 0, time.Minute), running(0, 1), running(1, 0)}, active: 2, failed: 1},
		{name: "replaced once out of back-off", job: base(), pods: []*v1.Pod{failedAt(0, 0, time.Minute), running(1, 0)}, creates: 1, indexes: "0", active: 2},
		{name: "another index fails for good", job: base(), pods: []*v1.Pod{failedAt(0, 1, 0), running(1, 0)}, active: 1, failed: 1, failedIndexes: "0"},
		{name: "FailIndex", job: base(failurePolicy(onExit(failIndex, 3))), pods: []*v1.Pod{failedAt(0, 0, 0), running(1, 0)}, active: 1, failed: 1, failedIndexes: "0"},
		{name: "FailJob", job: base(failurePolicy(onExit(failJob, 3))), pods: []*v1.Pod{failedAt(0, 0, 0), running(1, 0)}, removes: 1, keeps: true, terminating: 1, failed: 2, target: byPolicy},
		{name: "ignored", job: base(failurePolicy(onExit(ignore, 3))), pods: []*v1.Pod{failedAt(0, 0, 0), running(1, 0)}, wait: 10 * time.Second, active: 1},
		{name: "the Job's limit comes first", job: base(backoffLimit(1)), pods: []*v1.Pod{failedAt(0, 0, 0), failedAt(1, 0, 0)}, failed: 2, target: pastLimit, ends: true},
		{name: "all indexes have ended", job: base(), pods: []*v1.Pod{failedAt(0, 1, 0), succeeded(1)}, succeeded: 1, failed: 1, completed: "1", failedIndexes: "0", target: byIndexes, ends: true},
		{name: "too many failed indexes", job: base(most(0)), pods: []*v1.Pod{failedAt(0, 1, 0), running(1, 0)}, removes: 1, keeps: true, terminating: 1, failed: 2, failedIndexes: "0", target: "FailureTarget MaxFailedIndexesExceeded"},
		{name: "as many failed indexes as may be", job: base(most(1)), pods: []*v1.Pod{failedAt(0, 1, 0), running(1, 0)}, active: 1, failed: 1, failedIndexes: "0"},
		{name: "nothing is kept when the namespace goes", job: base(), pods: []*v1.Pod{failedAt(0, 0, time.Minute), running(1, 0)}, change: func(s *state) { s.noReplacements = true }, creates: 1, active: 2, failed: 1},
	})
	t.Run("annotations of the replacement", func(t *testing.T) {
		job := base(perIndex(5), failurePolicy(onExit(ignore, 9)))
		ignoredOne := newPod("b", v1.PodFailed, index(1), indexFailure(2), annotation(batch.JobIndexIgnoredFailureCountAnnotation, "1"), exited(9, time.Hour))
		s := &state{settings: testSettings(), job: job, pods: []*v1.Pod{failedAt(0, 2, time.Hour), ignoredOne}, leaving: noneLeaving, now: testNow}
		got := makePlan(s, takeCensus(s)).create
		want := []creation{{index: 0, failures: 3}, {index: 1, failures: 2, ignored: 2}}
		if !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestSyncFailurePolicy(t *testing.T) {
	running := v1.PodRunning
	failed := func(name string, code int32) *v1.Pod { return newPod(name, v1.PodFailed, exited(code, 0)) }
	base := func(rules ...batch.PodFailurePolicyRule) *batch.Job {
		return newJob(2, 2, failurePolicy(rules...), replacement(batch.Failed))
	}
	target := withCondition(batch.JobFailureTarget, v1.ConditionTrue, "PodFailurePolicy", "of a Pod that is gone")
	runRows(t, []syncRow{
		{name: "FailJob", job: base(onExit(failJob, 5)), pods: []*v1.Pod{failed("a", 5)}, failed: 1, target: byPolicy, ends: true},
		{name: "FailJob, another runs", job: base(onExit(failJob, 5)), pods: []*v1.Pod{failed("a", 5), newPod("b", running)}, removes: 1, keeps: true, terminating: 1, failed: 2, target: byPolicy},
		{name: "a running Pod does not match", job: base(onExit(failJob, 5)), pods: pods(2, running, exited(5, 0)), active: 2},
		{name: "marked already", job: newJob(2, 2, failurePolicy(), target), pods: []*v1.Pod{failed("a", 5)}, failed: 1, target: byPolicy, ends: true},
		{name: "ignored", job: base(onExit(ignore, 5)), pods: []*v1.Pod{failed("a", 5), newPod("b", running)}, wait: 10 * time.Second, active: 1},
		{name: "ignored beyond the limit", job: newJob(1, 1, backoffLimit(0), failurePolicy(onExit(ignore, 5))), pods: []*v1.Pod{failed("a", 5)}, wait: 10 * time.Second},
		{name: "counted", job: base(onExit(count, 5), onExit(ignore, 5)), pods: []*v1.Pod{failed("a", 5), newPod("b", running)}, wait: 10 * time.Second, active: 1, failed: 1},
		{name: "counted beyond the limit", job: newJob(1, 1, backoffLimit(0), failurePolicy(onExit(count, 5))), pods: []*v1.Pod{failed("a", 5)}, failed: 1, target: pastLimit, ends: true},
		{name: "by condition", job: base(onCondition(failJob, v1.DisruptionTarget, v1.ConditionTrue)), pods: []*v1.Pod{newPod("a", v1.PodFailed, podCondition(v1.DisruptionTarget, v1.ConditionTrue))}, failed: 1, target: byPolicy, ends: true},
		{name: "terminating is not failed", job: newJob(2, 2, failurePolicy(onCondition(failJob, v1.DisruptionTarget, v1.ConditionTrue))), pods: []*v1.Pod{newPod("a", running, leaving, podCondition(v1.DisruptionTarget, v1.ConditionTrue)), newPod("b", running)}, active: 1, terminating: 1},
	})
	t.Run("message of the first to end", func(t *testing.T) {
		early := newPod("z", v1.PodFailed, exited(5, time.Minute))
		s := &state{settings: testSettings(), job: base(onExit(failJob, 5)), pods: []*v1.Pod{failed("a", 5), early, failed("b", 5)}, leaving: noneLeaving, now: testNow}
		want := "Container main for pod ns/z failed with exit code 5 matching FailJob rule at index 0"
		if v := judge(s, takeCensus(s)); v == nil || v.message != want {
			t.Errorf("verdict %+v, want %q", v, want)
		}
	})
	t.Run("actions are counted", func(t *testing.T) {
		s := &state{settings: testSettings(), job: base(onExit(ignore, 5), onExit(count, 6)), pods: []*v1.Pod{failed("a", 5), failed("b", 6), failed("c", 6), failed("d", 7)}, leaving: noneLeaving, now: testNow}
		c := takeCensus(s)
		tr := makeTracking(s, c, makePlan(s, c), outcome{})
		if len(tr.handled) != 2 || tr.handled[ignore] != 1 || tr.handled[count] != 2 {
			t.Errorf("actions %v", tr.handled)
		}
		if len(tr.untrack) != 4 || len(tr.status.UncountedTerminatedPods.Failed) != 3 {
			t.Errorf("%d lose the finalizer, %v are listed", len(tr.untrack), tr.status.UncountedTerminatedPods.Failed)
		}
	})
}

func TestSyncSuccessPolicy(t *testing.T) {
	zeroAndOne := successPolicy(batch.SuccessPolicyRule{SucceededIndexes: new("0,1"), SucceededCount: new(int32(1))})
	base := func(changes ...func(*batch.Job)) *batch.Job {
		return newJob(3, 3, append([]func(*batch.Job){indexed, zeroAndOne}, changes...)...)
	}
	standing := withCondition(batch.JobSuccessCriteriaMet, v1.ConditionTrue, batch.JobReasonSuccessPolicy, "Matched rules at index 0")
	failing := withCondition(batch.JobFailureTarget, v1.ConditionTrue, batch.JobReasonBackoffLimitExceeded, "m")
	failed := func(i, failures int) *v1.Pod {
		return newPod(fmt.Sprint("f-", i), v1.PodFailed, index(i), indexFailure(failures), exited(5, time.Hour))
	}
	runRows(t, []syncRow{
		{name: "met while others run", job: base(), pods: indexedPods("0 Succeeded,1 Running,2 Running"), removes: 2, keeps: true, terminating: 2, succeeded: 1, completed: "0", target: bySuccess},
		{name: "met, others have failed", job: base(), pods: indexedPods("0 Succeeded,1 Failed,2 Failed"), succeeded: 1, failed: 2, completed: "0", target: bySuccess, ends: true},
		{name: "met, Pods are gone", job: base(standing, status(func(s *batch.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })), succeeded: 1, completed: "0", target: bySuccess, ends: true},
		{name: "met, and not FailJob", job: base(failurePolicy(onExit(failJob, 7))), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", target: bySuccess, ends: true},
		{name: "met, and FailJob", job: base(failurePolicy(onExit(failJob, 5))), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", target: byPolicy, ends: true},
		{name: "met, and not the limit per index", job: base(perIndex(1)), pods: append(indexedPods("0 Succeeded"), failed(1, 1)), succeeded: 1, failed: 1, completed: "0", failedIndexes: "1", target: bySuccess, ends: true},
		{name: "met, and all indexes have ended", job: base(perIndex(1)), pods: append(indexedPods("0 Succeeded"), failed(1, 1), failed(2, 1)), succeeded: 1, failed: 2, completed: "0", failedIndexes: "1,2", target: byIndexes, ends: true},
		{name: "met, and the limit exceeded", job: base(backoffLimit(0)), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", target: pastLimit, ends: true},
		{name: "stands against FailJob", job: base(standing, failurePolicy(onExit(failJob, 5))), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", target: bySuccess, ends: true},
		{name: "stands against the limit", job: base(standing, backoffLimit(0)), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", target: bySuccess, ends: true},
		{name: "stands against the limit per index", job: base(standing, perIndex(0)), pods: append(indexedPods("0 Succeeded"), failed(1, 0)), succeeded: 1, failed: 1, completed: "0", failedIndexes: "1", target: bySuccess, ends: true},
		{name: "does not stand against FailureTarget", job: base(failing), pods: indexedPods("0 Succeeded"), succeeded: 1, completed: "0", target: pastLimit, ends: true},
		{name: "not met", job: base(), pods: indexedPods("2 Succeeded,0 Running,1 Running"), active: 2, succeeded: 1, completed: "2"},
	})
}

func TestEnsureCondition(t *testing.T) {
	const kind = batch.JobSuspended
	is := func(status v1.ConditionStatus, reason string) []batch.JobCondition {
		return []batch.JobCondition{{Type: kind, Status: status, Reason: reason, Message: "m"}}
	}
	for _, tc := range []struct {
		name    string
		before  []batch.JobCondition
		status  v1.ConditionStatus
		reason  string
		changes bool
		want    int
	}{
		{"append True", nil, v1.ConditionTrue, "r", true, 1},
		{"append False", nil, v1.ConditionFalse, "r", false, 0},
		{"another reason", is(v1.ConditionTrue, "old"), v1.ConditionTrue, "r", true, 1},
		{"from True to False", is(v1.ConditionTrue, "r"), v1.ConditionFalse, "r", true, 1},
		{"from False to True", is(v1.ConditionFalse, "r"), v1.ConditionTrue, "r", true, 1},
		{"there already", is(v1.ConditionTrue, "r"), v1.ConditionTrue, "r", false, 1},
	} {
		old := slices.Clone(tc.before)
		got, changed := ensureCondition(tc.before, kind, tc.status, tc.reason, "m", testNow)
		if changed != tc.changes || len(got) != tc.want {
			t.Errorf("%s: changed %v, %v", tc.name, changed, got)
		}
		if changed && (got[0].Status != tc.status || got[0].Reason != tc.reason || !got[0].LastTransitionTime.Time.Equal(testNow)) {
			t.Errorf("%s: %+v", tc.name, got[0])
		}
		if !slices.Equal(old, tc.before) {
			t.Errorf("%s: the old conditions were changed", tc.name)
		}
	}
}
