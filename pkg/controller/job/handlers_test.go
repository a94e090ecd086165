// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
)

// queues says how many keys wait, at once and after the batch period. The delayed ones reach
// the queue by a goroutine.
func (w *world) queues(t *testing.T, now, batched, orphans int) {
	t.Helper()
	if got := w.worker.Len(); got != now {
		t.Errorf("%d Jobs wait, want %d", got, now)
	}
	if got := w.orphans.Len(); got != orphans {
		t.Errorf("%d orphans wait, want %d", got, orphans)
	}
	if batched == 0 {
		return
	}
	for until := time.Now().Add(30 * time.Second); w.worker.Len() != now+batched; time.Sleep(time.Millisecond) {
		w.clock.Step(SyncJobBatchPeriod)
		if time.Now().After(until) {
			t.Fatalf("%d Jobs wait after the batch period, want %d", w.worker.Len(), now+batched)
		}
	}
}

func TestJobHandlers(t *testing.T) {
	finished := newJob(1, 1, withCondition(batch.JobComplete, v1.ConditionTrue, "", ""))
	changed := newJob(1, 1, func(job *batch.Job) { job.Generation = 2 })
	external := newJob(1, 1, func(job *batch.Job) { job.Spec.ManagedBy = new("example.com/other") })
	byExternal := func() float64 {
		value, err := testutil.GetCounterMetricValue(metrics.JobByExternalControllerTotal.WithLabelValues("example.com/other"))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	before := byExternal()
	for _, tc := range []struct {
		name                  string
		event                 func(*world)
		now, batched, orphans int
	}{
		{"added", func(w *world) { w.jobAdded(newJob(1, 1), false) }, 1, 0, 0},
		{"in the initial list", func(w *world) { w.jobAdded(newJob(1, 1), true) }, 1, 0, 0},
		{"spec changed", func(w *world) { w.jobUpdated(newJob(1, 1), changed) }, 1, 0, 0},
		{"status changed", func(w *world) { w.jobUpdated(newJob(1, 1), newJob(1, 1)) }, 0, 1, 0},
		{"finished", func(w *world) { w.jobUpdated(newJob(1, 1), finished) }, 0, 0, 1},
		{"deleted", func(w *world) { w.jobDeleted(newJob(1, 1)) }, 0, 0, 1},
		{"deleted and made anew in one event", func(w *world) {
			w.jobUpdated(newJob(1, 1), newJob(1, 1, func(job *batch.Job) { job.UID = "another" }))
		}, 1, 0, 1},
		{"managed by another", func(w *world) { w.jobAdded(external, false) }, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := testWorld(t, newJob(1, 1))
			tc.event(w)
			w.queues(t, tc.now, tc.batched, tc.orphans)
		})
	}
	if got := byExternal() - before; got != 1 {
		t.Errorf("jobs_by_external_controller_total has grown by %v, want 1", got)
	}
}

func TestPodHandlers(t *testing.T) {
	plain := func() *v1.Pod { return newPod("a", v1.PodRunning) }
	unowned := newPod("a", v1.PodRunning, orphan, untracked)
	otherOwner := func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Job", Name: "work", UID: "job-uid", Controller: new(true)}}
	}
	ofGone := func(pod *v1.Pod) { pod.OwnerReferences[0].UID = "gone" }
	for _, tc := range []struct {
		name                  string
		event                 func(*world)
		now, batched, orphans int
	}{
		{"added", func(w *world) { w.podAdded(plain(), false) }, 0, 1, 0},
		{"in the initial list, with a Job", func(w *world) { w.podAdded(plain(), true) }, 0, 0, 0},
		{"in the initial list, without a Job", func(w *world) { w.podAdded(newPod("a", v1.PodFailed, ofGone), true) }, 0, 0, 1},
		{"added without owner", func(w *world) { w.podAdded(unowned, false) }, 0, 0, 1},
		{"added, with finalizer and without owner", func(w *world) { w.podAdded(newPod("a", v1.PodRunning, orphan), false) }, 0, 0, 1},
		{"added, of a Job that is gone", func(w *world) { w.podAdded(newPod("a", v1.PodRunning, ofGone), false) }, 0, 1, 1},
		{"added, of another kind", func(w *world) { w.podAdded(newPod("a", v1.PodRunning, otherOwner, untracked), false) }, 0, 0, 0},
		{"ends", func(w *world) { w.podUpdated(plain(), newPod("a", v1.PodSucceeded)) }, 0, 1, 0},
		{"becomes ready", func(w *world) { w.podUpdated(plain(), newPod("a", v1.PodRunning, ready)) }, 0, 1, 0},
		{"is to be deleted", func(w *world) { w.podUpdated(plain(), newPod("a", v1.PodRunning, leaving)) }, 0, 1, 0},
		{"restarts a container", func(w *world) { w.podUpdated(plain(), newPod("a", v1.PodRunning, restarts(1))) }, 0, 1, 0},
		{"loses the finalizer", func(w *world) { w.podUpdated(newPod("a", v1.PodFailed), newPod("a", v1.PodFailed, untracked)) }, 0, 1, 0},
		{"is another one of its name", func(w *world) {
			w.podUpdated(plain(), newPod("a", v1.PodRunning, func(pod *v1.Pod) { pod.UID = "another" }))
		}, 0, 1, 0},
		{"something else", func(w *world) {
			w.podUpdated(plain(), newPod("a", v1.PodRunning, podCondition(v1.PodScheduled, v1.ConditionTrue)))
		}, 0, 0, 0},
		{"orphan with the same labels", func(w *world) { w.podUpdated(unowned, unowned) }, 0, 0, 0},
		{"orphan with new labels", func(w *world) {
			w.podUpdated(unowned, newPod("a", v1.PodRunning, orphan, untracked, func(pod *v1.Pod) { pod.Labels = map[string]string{"a": "b"} }))
		}, 0, 0, 1},
		{"released", func(w *world) { w.podUpdated(plain(), unowned) }, 0, 1, 1},
		{"to another owner", func(w *world) { w.podUpdated(plain(), newPod("a", v1.PodRunning, otherOwner)) }, 0, 1, 1},
		{"deleted", func(w *world) { w.podDeleted(plain()) }, 0, 1, 0},
		{"ends after its Job", func(w *world) {
			defer func(old time.Duration) { SyncJobBatchPeriod = old }(SyncJobBatchPeriod)
			SyncJobBatchPeriod = 0
			w.updateJob("work", withCondition(batch.JobComplete, v1.ConditionTrue, "", ""))
			w.showAll()
			w.podUpdated(plain(), newPod("a", v1.PodSucceeded))
			w.podUpdated(newPod("b", v1.PodSucceeded), newPod("b", v1.PodSucceeded, untracked))
			w.podDeleted(plain())
		}, 0, 0, 1},
		{"deleted, without owner", func(w *world) { w.podDeleted(unowned) }, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := testWorld(t, newJob(1, 1))
			tc.event(w)
			w.queues(t, tc.now, tc.batched, tc.orphans)
		})
	}
}

func TestSyncOrphan(t *testing.T) {
	custom := func(kind, version string, controller bool) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "work", UID: "job-uid", Controller: &controller}}
		}
	}
	finished := withCondition(batch.JobComplete, v1.ConditionTrue, "", "")
	external := func(job *batch.Job) { job.Spec.ManagedBy = new("example.com/other") }
	another := func(job *batch.Job) { job.UID = "other-uid" }
	for _, tc := range []struct {
		name  string
		job   *batch.Job
		pod   *v1.Pod
		keeps bool
	}{
		{"of a running Job", newJob(1, 1), newPod("a", v1.PodFailed), true},
		{"of a finished Job", newJob(1, 1, finished), newPod("a", v1.PodFailed), false},
		{"of a Job that does not exist", newJob(1, 1, another), newPod("a", v1.PodFailed), false},
		{"of a CronJob", newJob(1, 1), newPod("a", v1.PodFailed, custom("CronJob", "batch/v1", true)), true},
		{"of a Job of another API", newJob(1, 1), newPod("a", v1.PodFailed, custom("Job", "example.com/v1", true)), true},
		{"not controlled", newJob(1, 1), newPod("a", v1.PodFailed, orphan), false},
		{"owned by a running Job, but not controlled", newJob(1, 1), newPod("a", v1.PodFailed, custom("Job", "batch/v1", false)), false},
		{"owned by something else, but not controlled", newJob(1, 1), newPod("a", v1.PodFailed, custom("Thing", "example.com/v1", false)), false},
		{"of a finished Job of another controller", newJob(1, 1, finished, external), newPod("a", v1.PodFailed), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := testWorld(t, tc.job, tc.pod)
			if err := w.syncOrphan(t.Context(), onePod(tc.pod)); err != nil {
				t.Fatal(err)
			}
			if got := isTracked(w.pods["a"]); got != tc.keeps {
				t.Errorf("has the finalizer: %v, want %v", got, tc.keeps)
			}
		})
	}
}

// The cache of Jobs may be behind that of Pods: a Pod of a Job that it does not show yet is
// not let go.
func TestOrphanOfLateJob(t *testing.T) {
	w := testWorld(t, newJob(1, 1), newPod("a", v1.PodSucceeded))
	_ = w.jobIndexer.Delete(w.jobs["work"])
	if err := w.syncOrphan(t.Context(), onePod(newPod("a", v1.PodSucceeded))); err != nil {
		t.Fatal(err)
	}
	if !isTracked(w.pods["a"]) {
		t.Error("a Pod that was not counted has lost the finalizer")
	}
	// A Job that was seen to be deleted is not asked for.
	w.jobDeleted(w.jobs["work"])
	w.client.ClearActions()
	if err := w.syncOrphan(t.Context(), onePod(newPod("a", v1.PodSucceeded))); err != nil {
		t.Fatal(err)
	}
	if isTracked(w.pods["a"]) || len(w.client.Actions()) != 1 {
		t.Errorf("finalizers %v after %v", w.pods["a"].Finalizers, w.client.Actions())
	}
}

// A Job that has just ended has taken the finalizer off its Pods, whatever the cache shows.
func TestNoSecondPatchAfterTheEnd(t *testing.T) {
	w := testWorld(t, newJob(1, 1), newPod("a", v1.PodSucceeded))
	shown := len(w.log)
	w.mustSync()
	w.show(ofJobs, len(w.log))
	if !jobutil.IsJobFinished(w.jobs["work"]) || w.shown[ofPods] != shown {
		t.Fatalf("status %+v", w.status())
	}
	w.client.ClearActions()
	_ = w.syncOrphan(t.Context(), onePod(newPod("a", v1.PodSucceeded)))
	if actions := w.client.Actions(); len(actions) != 0 {
		t.Errorf("requests %v", actions)
	}
}

// The Pods of a Job that goes on, or that another controller has finished, are not let go.
func TestPodsThatMayBeCounted(t *testing.T) {
	for _, job := range []*batch.Job{newJob(1, 1), newJob(1, 1, withCondition(batch.JobComplete, v1.ConditionTrue, "", ""), func(job *batch.Job) { job.Spec.ManagedBy = new("example.com/other") })} {
		w := testWorld(t, job, newPod("a", v1.PodSucceeded))
		if err := w.syncOrphan(t.Context(), podsOfJob(w.jobs["work"])); err != nil || !isTracked(w.pods["a"]) {
			t.Errorf("conditions %v: finalizers %v (%v)", job.Status.Conditions, w.pods["a"].Finalizers, err)
		}
	}
}

// The Pods of a Job that has ended are patched once, however often the Job is looked at.
func TestNoSecondPatchOfPodsLetGo(t *testing.T) {
	w := testWorld(t, newJob(1, 1, withCondition(batch.JobComplete, v1.ConditionTrue, "", "")), newPod("a", v1.PodSucceeded))
	key := podsOfJob(w.jobs["work"])
	// It comes back, for the guard to forget the patch.
	if err := w.syncOrphan(t.Context(), key); err == nil || isTracked(w.pods["a"]) {
		t.Fatalf("finalizers %v (%v)", w.pods["a"].Finalizers, err)
	}
	w.client.ClearActions()
	_ = w.syncOrphan(t.Context(), key)
	w.showAll()
	if err := w.syncOrphan(t.Context(), key); err != nil {
		t.Errorf("not done: %v", err)
	}
	if actions := w.client.Actions(); len(actions) != 0 {
		t.Errorf("requests %v", actions)
	}
}

func TestOrphansOfADeletedJob(t *testing.T) {
	w := testWorld(t, newJob(1, 1), newPod("a", v1.PodSucceeded), newPod("b", v1.PodRunning), newPod("c", v1.PodFailed, untracked))
	_ = w.jobIndexer.Delete(w.jobs["work"])
	delete(w.jobs, "work")
	w.jobDeleted(newJob(1, 1))
	w.fail = func(verb, _, name string) error {
		if verb == "patch" && name == "a" {
			return errDead
		}
		return nil
	}
	for w.orphans.Len() > 0 {
		w.orphans.ProcessNextItem(t.Context())
	}
	if got := w.podNames(isTracked); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v have the finalizer, want a", got)
	}
	// The one that failed is tried again after the back-off, alone.
	w.fail = nil
	w.showAll()
	for until := time.Now().Add(30 * time.Second); w.orphans.Len() == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		w.clock.Step(DefaultJobApiBackOff)
	}
	if w.orphans.Len() != 1 {
		t.Fatalf("%d Pods are tried again", w.orphans.Len())
	}
	w.orphans.ProcessNextItem(t.Context())
	if got := w.podNames(isTracked); len(got) != 0 {
		t.Errorf("%v have the finalizer", got)
	}
}

// An orphan that a Job's selector matches brings that Job to its sync.
func TestOrphanFindsItsJob(t *testing.T) {
	w := testWorld(t, newJob(1, 1), newPod("a", v1.PodRunning, orphan, untracked))
	if err := w.syncOrphan(t.Context(), onePod(newPod("a", v1.PodRunning))); err != nil {
		t.Fatal(err)
	}
	w.queues(t, 1, 0, 0)
}

func TestTrackedMetric(t *testing.T) {
	read := func(event string) float64 {
		v, err := testutil.GetCounterMetricValue(metrics.TerminatedPodsTrackingFinalizerTotal.WithLabelValues(event))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	metrics.Register()
	for _, tc := range []struct {
		name        string
		old, cur    *v1.Pod
		add, remove float64
	}{
		{"runs", nil, newPod("a", v1.PodRunning), 0, 0},
		{"fails", newPod("a", v1.PodRunning), newPod("a", v1.PodFailed), 1, 0},
		{"succeeds", newPod("a", v1.PodRunning), newPod("a", v1.PodSucceeded), 1, 0},
		{"is found ended", nil, newPod("a", v1.PodSucceeded), 1, 0},
		{"loses the finalizer", newPod("a", v1.PodSucceeded), newPod("a", v1.PodSucceeded, untracked), 0, 1},
		{"is gone, untracked", newPod("a", v1.PodSucceeded, untracked), nil, 0, 0},
	} {
		add, remove := read(metrics.Add), read(metrics.Delete)
		recordTracked(tc.old, tc.cur)
		if a, r := read(metrics.Add)-add, read(metrics.Delete)-remove; a != tc.add || r != tc.remove {
			t.Errorf("%s: add %v, delete %v", tc.name, a, r)
		}
	}
}
