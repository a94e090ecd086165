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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
)

// testWorld is a world with Pods beside the Jobs, which ends with the test.
func testWorld(t *testing.T, job *batch.Job, pods ...*v1.Pod) *world {
	t.Helper()
	w := newWorld(t, job)
	t.Cleanup(w.stop)
	for _, pod := range pods {
		w.putPod(pod.DeepCopy())
	}
	w.showAll()
	return w
}

func (w *world) mustSync() {
	w.Helper()
	w.showAll()
	if err := w.syncJob("work"); err != nil && !strings.HasPrefix(err.Error(), "sync again") {
		w.Fatalf("sync: %v", err)
	}
}

func (w *world) status() batch.JobStatus { return w.jobs["work"].Status }

func TestSyncKey(t *testing.T) {
	w := testWorld(t, newJob(1, 1))
	for _, key := range []cache.ObjectName{{Name: "work"}, {Namespace: "ns"}} {
		if err := w.sync(t.Context(), key); err == nil || !strings.Contains(err.Error(), "either namespace or name is missing") {
			t.Errorf("%v: %v", key, err)
		}
	}
	if err := w.syncJob("other"); err != nil {
		t.Errorf("a Job that is gone: %v", err)
	}
}

func TestSkippedJobs(t *testing.T) {
	for _, tc := range []struct {
		name   string
		job    *batch.Job
		writes int
		event  string
	}{
		{"managed by another", newJob(1, 1, func(job *batch.Job) { job.Spec.ManagedBy = new("example.com/other") }), 0, ""},
		{"managed by this one", newJob(1, 1, func(job *batch.Job) { job.Spec.ManagedBy = new(batch.JobControllerName) }), 2, "Normal SuccessfulCreate Created pod: work-001"},
		{"finished", newJob(1, 1, withCondition(batch.JobFailed, v1.ConditionTrue, "", "")), 0, ""},
		{"unknown completion mode", newJob(1, 1, func(job *batch.Job) { job.Spec.CompletionMode = new(batch.CompletionMode("Other")) }), 0,
			"Warning UnknownCompletionMode Skipped Job sync because completion mode is unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := testWorld(t, tc.job)
			w.mustSync()
			if len(w.writes) != tc.writes {
				t.Errorf("writes %v", w.writes)
			}
			if events := strings.Join(w.events(), "\n"); events != tc.event {
				t.Errorf("events %q, want %q", events, tc.event)
			}
		})
	}
}

// A Job whose Pods end together takes these writes, and no more.
func TestWritesOfALife(t *testing.T) {
	w := testWorld(t, newJob(3, 3))
	w.mustSync()
	for _, name := range w.podNames(alive) {
		w.setPhase(name, v1.PodSucceeded)
	}
	w.mustSync()
	want := "create pods, create pods, create pods, update jobs/status, update jobs/status, patch pods, patch pods, patch pods, update jobs/status"
	if got := strings.Join(w.writes, ", "); got != want {
		t.Errorf("writes %s\nwant   %s", got, want)
	}
	if !jobutil.IsJobSucceeded(w.jobs["work"]) {
		t.Errorf("status %+v", w.status())
	}
	if events := w.events(); !slices.Contains(events, "Normal Completed Job completed") || len(events) != 4 {
		t.Errorf("events %q", events)
	}
	w.mustSync()
	w.mustBeRight()
	if got := strings.Join(w.writes, ", "); got != want {
		t.Errorf("writes after the end: %s", got)
	}
}

// A Job that has just ended is left alone while the cache shows it as it was before: its Pods have
// lost the finalizer, and it would look as if they were missing.
func TestLateCacheOfAnEndedJob(t *testing.T) {
	w := testWorld(t, newJob(1, 1), newPod("a", v1.PodSucceeded))
	w.mustSync()
	w.show(ofPods, len(w.log))
	if !jobutil.IsJobSucceeded(w.jobs["work"]) {
		t.Fatalf("status %+v", w.status())
	}
	w.client.ClearActions()
	_ = w.syncJob("work")
	if actions := w.client.Actions(); len(actions) != 0 {
		t.Errorf("requests %v", actions)
	}
	if ends := slices.DeleteFunc(w.events(), func(e string) bool { return e != "Normal Completed Job completed" }); len(ends) != 1 {
		t.Errorf("ended %d times", len(ends))
	}
}

// While other Jobs wait, one that ends is stored as ended at once, with all its Pods counted. They
// lose the finalizer when nobody waits any more, and at the latest after maxUntrackDelay.
func TestEndWhileOthersWait(t *testing.T) {
	ended := func(t *testing.T) (*world, orphanKey) {
		w := testWorld(t, newJob(2, 2))
		w.mustSync()
		for _, name := range w.podNames(alive) {
			w.setPhase(name, v1.PodSucceeded)
		}
		w.worker.Add(cache.ObjectName{Namespace: "ns", Name: "other"})
		w.mustSync()
		w.mustBeRight()
		if got := strings.Join(w.writes, ", "); got != "create pods, create pods, update jobs/status, update jobs/status" {
			t.Errorf("writes %s", got)
		}
		if s := w.status(); !jobutil.IsJobSucceeded(w.jobs["work"]) || s.Succeeded != 2 || len(s.Conditions) != 2 {
			t.Errorf("status %+v", s)
		}
		w.showAll()
		return w, podsOfJob(w.jobs["work"])
	}
	letGo := func(t *testing.T, w *world, key orphanKey) {
		t.Helper()
		_ = w.syncOrphan(t.Context(), key)
		if tracked := w.podNames(isTracked); len(tracked) > 0 || w.status().Succeeded != 2 {
			t.Errorf("%v have the finalizer, %d succeeded", tracked, w.status().Succeeded)
		}
	}
	t.Run("others wait on", func(t *testing.T) {
		w, key := ended(t)
		w.clock.Step(maxUntrackDelay - time.Second)
		if err := w.syncOrphan(t.Context(), key); err == nil || len(w.podNames(isTracked)) != 2 {
			t.Errorf("only %v have the finalizer (%v)", w.podNames(isTracked), err)
		}
		w.clock.Step(time.Second)
		letGo(t, w, key)
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		w, key := ended(t)
		w.worker.ProcessNextItem(t.Context())
		if err := w.syncOrphan(t.Context(), key); err == nil || len(w.podNames(isTracked)) != 2 {
			t.Errorf("only %v have the finalizer (%v), and more Jobs may come", w.podNames(isTracked), err)
		}
		w.clock.Step(untrackRetry)
		letGo(t, w, key)
	})
	t.Run("others have just waited", func(t *testing.T) {
		w := testWorld(t, newJob(1, 1, withCondition(batch.JobComplete, v1.ConditionTrue, "", ""), status(func(s *batch.JobStatus) {
			s.Conditions[0].LastTransitionTime = metav1.NewTime(testNow)
		})), newPod("a", v1.PodSucceeded))
		w.worker.Add(cache.ObjectName{Namespace: "ns", Name: "other"})
		w.mustSync()
		w.worker.ProcessNextItem(t.Context())
		if err := w.syncOrphan(t.Context(), podsOfJob(w.jobs["work"])); err == nil || !isTracked(w.pods["a"]) {
			t.Errorf("finalizers %v (%v)", w.pods["a"].Finalizers, err)
		}
	})
	t.Run("the Job is deleted", func(t *testing.T) {
		w, key := ended(t)
		_ = w.jobIndexer.Delete(w.jobs["work"])
		w.jobDeleted(w.jobs["work"])
		letGo(t, w, key)
	})
	t.Run("a Pod is deleted", func(t *testing.T) {
		w, _ := ended(t)
		pod := w.pods[w.podNames(isTracked)[0]]
		going := pod.DeepCopy()
		leaving(going)
		w.podUpdated(pod, going)
		if w.orphans.Len() != 1 {
			t.Error("it waits with the others")
		}
	})
}

// What is counted in one sync is folded into the counts by the write that counts the next.
func TestFoldingTakesNoWrite(t *testing.T) {
	w := testWorld(t, newJob(3, 6))
	w.mustSync()
	for range 2 {
		w.setPhase(w.podNames(alive)[0], v1.PodSucceeded)
		w.mustSync()
	}
	if s := w.status(); s.Succeeded != 1 || len(s.UncountedTerminatedPods.Succeeded) != 1 {
		t.Errorf("status %+v", s)
	}
	updates := func() int { return strings.Count(strings.Join(w.writes, ","), "update jobs/status") }
	if updates() != 3 {
		t.Errorf("%d updates: %v", updates(), w.writes)
	}
	// Without news it is folded by itself, and then there is rest.
	for range 2 {
		w.mustSync()
	}
	if s := w.status(); s.Succeeded != 2 || len(s.UncountedTerminatedPods.Succeeded) != 0 || updates() != 4 {
		t.Errorf("status %+v after %v", s, w.writes)
	}
}

func TestEndEvents(t *testing.T) {
	for _, tc := range []struct {
		name string
		job  *batch.Job
		pods []*v1.Pod
		want []string
	}{
		{"too many succeeded", newJob(1, 1), pods(2, v1.PodSucceeded),
			[]string{"Warning TooManySucceededPods Too many succeeded pods running after completion count reached", "Normal Completed Job completed"}},
		{"failed", newJob(1, 1, backoffLimit(0)), pods(1, v1.PodFailed), []string{"Warning BackoffLimitExceeded Job has reached the specified backoff limit"}},
		{"suspended", newJob(1, 1, suspend), nil, []string{"Normal Suspended Job suspended"}},
		{"resumed", newJob(0, 1, withCondition(batch.JobSuspended, v1.ConditionTrue, reasonJobSuspended, messageJobSuspended)), nil, []string{"Normal Resumed Job resumed"}},
	} {
		w := testWorld(t, tc.job, tc.pods...)
		w.mustSync()
		if got := w.events(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		w.mustSync()
		if got := w.events(); len(got) != 0 {
			t.Errorf("%s: told again: %q", tc.name, got)
		}
	}
}

func TestFailingWrites(t *testing.T) {
	refuse := func(verb, resource, of string) func(string, string, string) error {
		return func(v, r, name string) error {
			if v == verb && r == resource && (of == "" || of == name) {
				return apierrors.NewForbidden(v1.Resource(r), name, errors.New("no"))
			}
			return nil
		}
	}
	t.Run("one finalizer of two", func(t *testing.T) {
		w := testWorld(t, newJob(1, 2), newPod("a", v1.PodSucceeded), newPod("b", v1.PodSucceeded))
		w.fail = refuse("patch", "pods", "b")
		if err := w.syncJob("work"); err == nil {
			t.Error("no error")
		}
		if s := w.status(); jobutil.IsJobFinished(w.jobs["work"]) || len(s.UncountedTerminatedPods.Succeeded) != 2 {
			t.Errorf("status %+v", s)
		}
		w.fail = nil
		w.mustSync()
		if s := w.status(); s.Succeeded != 2 || !jobutil.IsJobSucceeded(w.jobs["work"]) {
			t.Errorf("status %+v", s)
		}
		w.mustBeRight()
	})
	t.Run("status", func(t *testing.T) {
		w := testWorld(t, newJob(1, 2), newPod("a", v1.PodSucceeded))
		w.fail = refuse("update", "jobs/status", "")
		err := w.syncJob("work")
		if err == nil || !strings.Contains(err.Error(), "tracking status: adding uncounted pods to status:") {
			t.Errorf("error %v", err)
		}
		if tracked := w.podNames(isTracked); !slices.Contains(tracked, "a") {
			t.Error("the finalizer is gone, and the Pod is in no status")
		}
	})
	t.Run("creation", func(t *testing.T) {
		w := testWorld(t, newJob(9, 9))
		tries := 0
		w.fail = func(verb, resource, _ string) error {
			if verb == "create" {
				tries++
				return apierrors.NewForbidden(v1.Resource(resource), "", errors.New("quota"))
			}
			return nil
		}
		if err := w.syncJob("work"); err == nil || !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		if s := w.status(); tries != 1 || s.Active != 0 || s.StartTime == nil {
			t.Errorf("%d tries, status %+v", tries, s)
		}
	})
	t.Run("deletion", func(t *testing.T) {
		w := testWorld(t, newJob(1, 1, backoffLimit(0)), newPod("a", v1.PodFailed), newPod("b", v1.PodRunning))
		w.fail = refuse("delete", "pods", "")
		if err := w.syncJob("work"); err == nil {
			t.Error("no error")
		}
		if s := w.status(); len(s.Conditions) != 0 || s.Active != 1 {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("namespace in deletion", func(t *testing.T) {
		job := newJob(1, 1, indexed, perIndex(3))
		w := testWorld(t, job, newPod("a", v1.PodFailed, index(0), exited(1, time.Hour)))
		w.fail = func(verb, resource, _ string) error {
			if verb != "create" {
				return nil
			}
			err := apierrors.NewForbidden(v1.Resource(resource), "", errors.New("gone"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
			return err
		}
		w.mustSync()
		w.mustSync()
		if tracked := w.podNames(isTracked); len(tracked) != 0 {
			t.Errorf("%v wait for replacements that cannot come", tracked)
		}
	})
}

// A creation without an answer is looked up before the next one.
func TestCreationOfUnknownOutcome(t *testing.T) {
	w := testWorld(t, newJob(1, 1))
	w.fail = func(verb, _, _ string) error {
		if verb == "create" {
			return errors.New("connection reset by peer")
		}
		return nil
	}
	if err := w.syncJob("work"); err == nil {
		t.Fatal("no error")
	}
	w.fail = nil
	// It had been carried out, and the cache does not show it.
	late := newPod("late", v1.PodPending)
	shown := len(w.log)
	w.putPod(late)
	w.show(ofJobs, len(w.log))
	w.show(ofPods, shown)
	created := func() bool { return slices.Contains(w.writes, "create pods") }
	if err := w.syncJob("work"); err == nil || created() {
		t.Errorf("acts while the request may be on its way: %v", err)
	}
	w.clock.Step(settleDelay)
	for range 2 {
		if _ = w.syncJob("work"); created() {
			t.Fatal("created a second time")
		}
	}
	if s := w.status(); s.Active != 1 {
		t.Errorf("status %+v", s)
	}
}

func TestClaim(t *testing.T) {
	t.Run("adopts", func(t *testing.T) {
		w := testWorld(t, newJob(1, 5), newPod("a", v1.PodRunning, orphan, untracked), newPod("done", v1.PodSucceeded, orphan, untracked),
			newPod("b", v1.PodRunning, orphan, untracked, func(pod *v1.Pod) { pod.Labels = map[string]string{"other": "x"} }))
		w.mustSync()
		for _, name := range []string{"a", "done"} {
			if pod := w.pods[name]; !metav1.IsControlledBy(pod, w.jobs["work"]) {
				t.Errorf("%s was not adopted", name)
			}
		}
		if !isTracked(w.pods["a"]) || metav1.GetControllerOf(w.pods["b"]) != nil {
			t.Errorf("a %v, b %v", w.pods["a"].Finalizers, w.pods["b"].OwnerReferences)
		}
		if s := w.status(); s.Active != 1 || len(s.UncountedTerminatedPods.Succeeded) != 1 {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("releases, without the finalizer", func(t *testing.T) {
		w := testWorld(t, newJob(0, 5), newPod("a", v1.PodRunning, func(pod *v1.Pod) { pod.Labels = nil }))
		w.mustSync()
		if pod := w.pods["a"]; len(pod.OwnerReferences) != 0 || isTracked(pod) {
			t.Errorf("%v, %v", pod.OwnerReferences, pod.Finalizers)
		}
	})
	t.Run("adopts nothing for a Job in deletion", func(t *testing.T) {
		for _, known := range []bool{true, false} {
			w := testWorld(t, newJob(1, 5), newPod("a", v1.PodRunning, orphan, untracked))
			w.updateJob("work", deleted)
			if known {
				w.showAll()
			}
			err := w.syncJob("work")
			if (err == nil) != known || len(w.pods["a"].OwnerReferences) != 0 {
				t.Errorf("known %v: error %v, owners %v", known, err, w.pods["a"].OwnerReferences)
			}
		}
	})
}

func TestSurplusLosesFinalizerFirst(t *testing.T) {
	w := testWorld(t, newJob(0, 5), newPod("a", v1.PodRunning))
	w.mustSync()
	if got := strings.Join(w.writes, ", "); got != "patch pods, delete pods, update jobs/status" {
		t.Errorf("writes %s", got)
	}
	w.mustSync()
	if s := w.status(); s.Failed != 0 || s.Active != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestPodTemplate(t *testing.T) {
	job := newJob(1, 2, indexed, perIndex(3), func(job *batch.Job) {
		job.Spec.Template.Finalizers = []string{"example.com/own"}
		job.Spec.Template.Spec.InitContainers = []v1.Container{{Name: "init"}}
		job.Spec.Template.Spec.Containers = append(job.Spec.Template.Spec.Containers, v1.Container{Name: "own", Env: []v1.EnvVar{{Name: completionIndexEnv, Value: "7"}}})
	})
	before := job.DeepCopy()
	common := podTemplate(job)
	first, second := indexTemplate(common, job, creation{index: 0}), indexTemplate(common, job, creation{index: 1, failures: 2, ignored: 1})
	if fmt.Sprint(before) != fmt.Sprint(job) {
		t.Error("the Job was changed")
	}
	if !slices.Equal(first.Finalizers, []string{"example.com/own", batch.JobTrackingFinalizer}) {
		t.Errorf("finalizers %v", first.Finalizers)
	}
	if first.Spec.Hostname != "work-0" || second.Spec.Hostname != "work-1" {
		t.Errorf("host names %s, %s", first.Spec.Hostname, second.Spec.Hostname)
	}
	if a := second.Annotations; a[batch.JobCompletionIndexAnnotation] != "1" || a[batch.JobIndexFailureCountAnnotation] != "2" || a[batch.JobIndexIgnoredFailureCountAnnotation] != "1" || second.Labels[batch.JobCompletionIndexAnnotation] != "1" {
		t.Errorf("annotations %v, labels %v", a, second.Labels)
	}
	if a := first.Annotations; a[batch.JobIndexFailureCountAnnotation] != "0" || len(a) != 2 {
		t.Errorf("annotations %v", a)
	}
	for _, c := range append(slices.Clone(first.Spec.InitContainers), first.Spec.Containers[0]) {
		if len(c.Env) != 1 || c.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.labels['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("variables of %s: %v", c.Name, c.Env)
		}
	}
	if env := first.Spec.Containers[1].Env; len(env) != 1 || env[0].Value != "7" {
		t.Errorf("variables %v", env)
	}
	plain := indexTemplate(podTemplate(newJob(1, 1)), newJob(1, 1), creation{index: noIndex})
	if plain.Spec.Hostname != "" || len(plain.Spec.Containers[0].Env) != 0 || len(plain.Finalizers) != 1 {
		t.Errorf("template of a NonIndexed Job %+v", plain)
	}
}

func TestBackoffForgottenWithTheJob(t *testing.T) {
	w := testWorld(t, newJob(1, 5), newPod("a", v1.PodFailed, exited(1, 0)))
	w.mustSync()
	if w.memory.of(nameOf(w.jobs["work"]), "job-uid").backoff.failures != 1 {
		t.Fatal("the failure is not remembered")
	}
	w.jobDeleted(w.jobs["work"])
	if len(w.memory.jobs) != 0 {
		t.Error("still remembered")
	}
	w.mustSync()
	again := *w.jobs["work"]
	again.UID = "another"
	if m := w.memory.of(nameOf(&again), again.UID); m.backoff != nil {
		t.Error("another Job of the name inherits the back-off")
	}
}

func TestMetrics(t *testing.T) {
	value := func(counter *k8smetrics.CounterVec, labels ...string) float64 {
		t.Helper()
		metrics.Register()
		v, err := testutil.GetCounterMetricValue(counter.WithLabelValues(labels...))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	w := testWorld(t, newJob(2, 2, indexed, perIndex(0), backoffLimit(100), failurePolicy(onExit(count, 1))))
	type reading struct {
		counter *k8smetrics.CounterVec
		labels  []string
		want    float64
	}
	readings := []reading{
		{metrics.JobPodsFinished, []string{"Indexed", "succeeded"}, 1},
		{metrics.JobPodsFinished, []string{"Indexed", "failed"}, 1},
		{metrics.JobFinishedNum, []string{"Indexed", "failed", "FailedIndexes"}, 1},
		{metrics.JobFinishedIndexesTotal, []string{"succeeded", "perIndex"}, 1},
		{metrics.JobFinishedIndexesTotal, []string{"failed", "perIndex"}, 1},
		{metrics.JobPodsCreationTotal, []string{"new", "succeeded"}, 2},
		{metrics.PodFailuresHandledByFailurePolicy, []string{"Count"}, 1},
		{metrics.JobSyncNum, []string{"Indexed", "success", "pods_created"}, 1},
		{metrics.JobSyncNum, []string{"Indexed", "success", "tracking"}, 1},
	}
	before := make([]float64, len(readings))
	for i, r := range readings {
		before[i] = value(r.counter, r.labels...)
	}
	w.mustSync()
	names := w.podNames(alive)
	w.setPhase(names[0], v1.PodSucceeded)
	w.setPhase(names[1], v1.PodFailed)
	w.mustSync()
	for i, r := range readings {
		if got := value(r.counter, r.labels...) - before[i]; got != r.want {
			t.Errorf("%s%v rose by %v, want %v", r.counter.Name, r.labels, got, r.want)
		}
	}
	w.mustBeRight()
}
