// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/pkg/controller"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
)

var fakeCodec = scheme.Codecs.LegacyCodec(v1.SchemeGroupVersion)

// finishOne plays a kubelet: the first Pod that is alive fails if its number says so, and
// succeeds otherwise; Pods in deletion end.
func (w *world) finishOne(fails func(int) bool) func() {
	n := 0
	return func() {
		if names := w.podNames(alive); len(names) > 0 {
			phase := v1.PodSucceeded
			if fails(n) {
				phase = v1.PodFailed
			}
			n++
			w.setPhase(names[0], phase)
		}
		for _, name := range w.podNames(controller.IsPodTerminating) {
			w.setPhase(name, v1.PodFailed)
		}
	}
}

// TestCrashAfterEachWrite kills the controller after each single write of a Job's life. The
// one after it finds caches that know everything, or a cache of Pods or of Jobs that is older
// than the other, as a standby's may be. All of that where no other Job waits, and where others do.
func TestCrashAfterEachWrite(t *testing.T) {
	secondFails := func(n int) bool { return n == 1 }
	for _, tc := range []struct {
		name              string
		job               *batch.Job
		succeeded, failed int32
		end               batch.JobConditionType
	}{
		{"NonIndexed", newJob(2, 3), 3, 1, batch.JobComplete},
		{"Indexed", newJob(2, 3, indexed), 3, 1, batch.JobComplete},
		{"back-off per index", newJob(2, 3, indexed, perIndex(1), backoffLimit(100)), 3, 1, batch.JobComplete},
		{"fails", newJob(2, 3, backoffLimit(0)), 1, 2, batch.JobFailed},
	} {
		for _, stale := range []string{"nothing", "pods", "jobs"} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/stale=%s/busy=%v", tc.name, stale, busy), func(t *testing.T) {
					w := newWorld(t)
					defer func() { w.stop() }()
					w.start(tc.job, busy)
					w.settle("work", 60, w.finishOne(secondFails))
					all := len(w.writes)
					t.Logf("%d writes: %v", all, w.writes)
					for k := 1; k <= all; k++ {
						w := newWorld(t)
						w.start(tc.job, busy)
						w.runCrash(k, stale, secondFails)
						w.checkEnd(t, fmt.Sprintf("killed after write %d", k), tc.succeeded, tc.failed, tc.end)
						w.stop()
					}
				})
			}
		}
	}
}

// start gives a world its Job.
func (w *world) start(job *batch.Job, busy bool) {
	w.Helper()
	w.busy = busy
	w.putJob(job.DeepCopy())
	w.restart()
}

// runCrash runs the Job with a controller that dies after k writes, and then with another.
func (w *world) runCrash(k int, stale string, fails func(int) bool) {
	w.Helper()
	w.dieAfter = k
	kubelet := w.finishOne(fails)
	for i := 0; len(w.writes) < k; i++ {
		if i > 100 {
			w.Fatalf("only %d writes", len(w.writes))
		}
		w.showAll()
		_ = w.syncJob("work")
		w.drainOrphans()
		if len(w.writes) < k {
			kubelet()
			w.clock.Step(20 * time.Second)
		}
	}
	behind := map[string]int{stale: max(len(w.log)-4, 0)}
	for _, cache := range []string{"pods", "jobs"} {
		if cache != stale {
			behind[cache] = len(w.log)
		}
	}
	w.restartBehind(behind["jobs"], behind["pods"])
	_ = w.syncJob("work")
	w.mustBeRight()
	w.settle("work", 60, kubelet)
}

func (w *world) checkEnd(t *testing.T, what string, succeeded, failed int32, end batch.JobConditionType) {
	t.Helper()
	s := w.jobs["work"].Status
	if _, got := jobutil.FinishedCondition(w.jobs["work"]); got != end {
		t.Errorf("%s: ended %q, want %q", what, got, end)
	}
	if s.Succeeded != succeeded || s.Failed != failed {
		t.Errorf("%s: %d succeeded, %d failed; want %d, %d; writes %v", what, s.Succeeded, s.Failed, succeeded, failed, w.writes)
	}
	if tracked := w.podNames(isTracked); len(tracked) != 0 {
		t.Errorf("%s: pods %v have the finalizer", what, tracked)
	}
}

// TestCountingProperty: whatever the order of what kubelets, users, watches and crashes do,
// every Pod that was created is counted once, and never are more active than the spec asks for.
func TestCountingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := []func(*batch.Job){backoffLimit(1000)}
		isIndexedJob := rapid.Bool().Draw(t, "indexed")
		if isIndexedJob {
			changes = append(changes, indexed)
			if rapid.Bool().Draw(t, "perIndex") {
				changes = append(changes, perIndex(1000))
			}
		}
		if rapid.Bool().Draw(t, "onlyFailedReplaced") {
			changes = append(changes, replacement(batch.Failed))
		}
		completions := rapid.Int32Range(1, 6).Draw(t, "completions")
		w := newWorld(rapidTester{t}, newJob(rapid.Int32Range(1, 4).Draw(t, "parallelism"), completions, changes...))
		defer func() { w.stop() }()
		drawUncounted := rapid.IntRange(1, 500).Draw(t, "maxUncounted")
		defer func(old int) { MaxUncountedPods = old }(MaxUncountedPods)
		MaxUncountedPods = drawUncounted
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.randomStep(t)
			w.mustBeRight()
		}
		// In the end everything is seen, and all that runs succeeds.
		w.dieAfter, w.fail = 0, nil
		w.restart()
		w.settle("work", 100, w.finishOne(func(int) bool { return false }))
		status := w.jobs["work"].Status
		if got := int(status.Succeeded + status.Failed); got != w.created && !isIndexedJob {
			t.Fatalf("%d pods were created, %d succeeded and %d failed\nwrites %v", w.created, status.Succeeded, status.Failed, w.writes)
		}
		if status.Succeeded < completions || isIndexedJob && status.Succeeded != completions {
			t.Fatalf("complete with %d of %d", status.Succeeded, completions)
		}
		if !slices.ContainsFunc(w.events(), func(e string) bool { return e == "Normal Completed Job completed" }) && w.jobs["work"].Status.CompletionTime == nil {
			t.Fatal("not complete")
		}
	})
}

// rapidTester gives a world the context that rapid's T has not.
type rapidTester struct{ *rapid.T }

func (w *world) randomStep(t *rapid.T) {
	pick := func(names []string) string { return rapid.SampledFrom(names).Draw(t, "pod") }
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2:
		_ = w.syncJob("work")
	case 3:
		w.show(ofPods, rapid.IntRange(w.shown[ofPods], len(w.log)).Draw(t, "podsShown"))
	case 4:
		w.show(ofJobs, rapid.IntRange(w.shown[ofJobs], len(w.log)).Draw(t, "jobsShown"))
	case 5, 6:
		if names := w.podNames(alive); len(names) > 0 {
			w.setPhase(pick(names), rapid.SampledFrom([]v1.PodPhase{v1.PodRunning, v1.PodSucceeded, v1.PodFailed}).Draw(t, "phase"))
		}
	case 7:
		if names := w.podNames(alive); len(names) > 0 {
			w.deletePod(pick(names))
		}
	case 8:
		// Dies somewhere in the next sync, and another starts, maybe with caches that are behind.
		w.dieAfter = len(w.writes) + rapid.IntRange(1, 6).Draw(t, "dieAfter")
		w.showAll()
		_ = w.syncJob("work")
		w.busy = rapid.Bool().Draw(t, "busy")
		w.restartBehind(rapid.IntRange(0, len(w.log)).Draw(t, "jobsBehind"), rapid.IntRange(0, len(w.log)).Draw(t, "podsBehind"))
	case 9:
		w.showAll() // no cache is that late: the guard does not wait for ever
		w.clock.Step(time.Duration(rapid.IntRange(1, 700).Draw(t, "seconds")) * time.Second)
	}
}
