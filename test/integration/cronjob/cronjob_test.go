// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package cronjob runs the cronjob-controller against a real API server. There is no Job
// controller: its part is played.
package cronjob

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/cronjob"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

const (
	serviceAccount = "cronjob-controller"
	// timeout is longer than a minute, which is the time between two runs.
	timeout = 150 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// start runs the controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	cronJobs, err := cronjob.NewControllerV2(c.Ctx, c.Informers.Batch().V1().Jobs(), c.Informers.Batch().V1().CronJobs(), c.Client(serviceAccount))
	if err != nil {
		t.Fatal(err)
	}
	c.Run("cronjob-controller", func(ctx context.Context) { cronJobs.Run(ctx, 5) })
	return c
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "example.com/job:1"}},
	}}
}

func create(t *testing.T, env *framework.Env, ns, name, schedule string, changes ...func(*batch.CronJob)) *batch.CronJob {
	t.Helper()
	cj := &batch.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batch.CronJobSpec{Schedule: schedule, JobTemplate: batch.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"made": "first"}, Annotations: map[string]string{"an": "1"}},
			Spec:       batch.JobSpec{Template: template()},
		}},
	}
	for _, change := range changes {
		change(cj)
	}
	cj, err := env.Client.BatchV1().CronJobs(ns).Create(t.Context(), cj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cj
}

func suspended(cj *batch.CronJob) { cj.Spec.Suspend = new(true) }

func policy(p batch.ConcurrencyPolicy) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Spec.ConcurrencyPolicy = p }
}

func get(t *testing.T, env *framework.Env, ns, name string) *batch.CronJob {
	t.Helper()
	cj, err := env.Client.BatchV1().CronJobs(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cj
}

func patch(t *testing.T, env *framework.Env, ns, name, body string, subresources ...string) {
	t.Helper()
	if _, err := env.Client.BatchV1().CronJobs(ns).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// setLast writes when a CronJob is supposed to have run last.
func setLast(t *testing.T, env *framework.Env, ns, name string, at time.Time) {
	t.Helper()
	patch(t, env, ns, name, fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, at.UTC().Format(time.RFC3339)), "status")
}

func jobs(ctx context.Context, env *framework.Env, ns string) ([]batch.Job, error) {
	list, err := env.Client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b batch.Job) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// waitJobs waits until the namespace has so many Jobs, and returns them in the order of their names.
func waitJobs(t *testing.T, env *framework.Env, ns string, n int) []batch.Job {
	t.Helper()
	var found []batch.Job
	env.WaitFor(t, fmt.Sprintf("%d jobs", n), timeout, func(ctx context.Context) (ok bool, err error) {
		found, err = jobs(ctx, env, ns)
		return len(found) == n, err
	})
	return found
}

// neverMore fails the test when there are more Jobs than that within the time.
func neverMore(t *testing.T, env *framework.Env, ns string, n int, d time.Duration) {
	t.Helper()
	env.Never(t, fmt.Sprintf("more than %d jobs", n), d, func(ctx context.Context) (bool, error) {
		found, err := jobs(ctx, env, ns)
		return len(found) > n, err
	})
}

func waitStatus(t *testing.T, env *framework.Env, ns, name, what string, condition func(*batch.CronJob) bool) {
	t.Helper()
	env.WaitFor(t, what, timeout, func(ctx context.Context) (bool, error) {
		cj, err := env.Client.BatchV1().CronJobs(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && condition(cj), err
	})
}

// active says that exactly these Jobs are active.
func active(all ...batch.Job) func(*batch.CronJob) bool {
	return func(cj *batch.CronJob) bool {
		return slices.EqualFunc(cj.Status.Active, all, func(ref corev1.ObjectReference, job batch.Job) bool {
			return ref.UID == job.UID && ref.Name == job.Name && ref.Namespace == job.Namespace && ref.Kind == "Job" && ref.APIVersion == "batch/v1"
		})
	}
}

// finish ends a Job as the Job controller would.
func finish(t *testing.T, env *framework.Env, job *batch.Job, as batch.JobConditionType) *batch.Job {
	t.Helper()
	now := metav1.Now()
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	job.Status.Conditions = []batch.JobCondition{
		{Type: batch.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: as, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	if as == batch.JobComplete {
		job.Status.CompletionTime = &now
		job.Status.Succeeded = 1
		job.Status.Conditions[0].Type = batch.JobSuccessCriteriaMet
	}
	job.Status.UncountedTerminatedPods = &batch.UncountedTerminatedPods{}
	written, err := env.Client.BatchV1().Jobs(job.Namespace).UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// ownJob creates a Job as the controller would for a time, or under another name.
func ownJob(t *testing.T, env *framework.Env, cj *batch.CronJob, name string, annotations map[string]string) *batch.Job {
	t.Helper()
	job, err := env.Client.BatchV1().Jobs(cj.Namespace).Create(t.Context(), &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(cj, batch.SchemeGroupVersion.WithKind("CronJob")),
		}},
		Spec: batch.JobSpec{Template: template()},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func nameAt(cj *batch.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", cj.Name, at.Unix()/60)
}

// reasons counts the events on a CronJob by reason.
func reasons(t *testing.T, env *framework.Env, ns, name string) map[string]int {
	t.Helper()
	list, err := env.Client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=CronJob,involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, event := range list.Items {
		count[event.Reason] += int(event.Count)
	}
	return count
}

func waitReason(t *testing.T, env *framework.Env, ns, name, reason string) {
	t.Helper()
	env.WaitFor(t, "event "+reason, timeout, func(context.Context) (bool, error) { return reasons(t, env, ns, name)[reason] > 0, nil })
}

// inMinute waits until there are seconds enough left in this minute, so that a test is not at two
// minutes at once.
func inMinute(t *testing.T, left time.Duration) time.Time {
	t.Helper()
	now := time.Now()
	if end := now.Truncate(time.Minute).Add(time.Minute); end.Sub(now) < left {
		timer := time.NewTimer(end.Sub(now) + 200*time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
	}
	return time.Now().Truncate(time.Minute)
}

// A CronJob's life over two minutes, seen in every object that is written.
func TestLife(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "life")
	mark := env.AuditMark(t)
	cj := create(t, env, ns, "tick", "* * * * *", func(cj *batch.CronJob) { cj.Spec.TimeZone = new("Asia/Kolkata") })
	first := waitJobs(t, env, ns, 1)[0]
	scheduled, err := time.Parse(time.RFC3339, first.Annotations[batch.CronJobScheduledTimestampAnnotation])
	if err != nil || !strings.HasSuffix(first.Annotations[batch.CronJobScheduledTimestampAnnotation], "+05:30") {
		t.Errorf("scheduled timestamp in annotations %v: %v", first.Annotations, err)
	}
	if scheduled.Second() != 0 || first.Name != nameAt(cj, scheduled) || first.CreationTimestamp.Time.Before(scheduled) {
		t.Errorf("job %s of %s, created %s", first.Name, scheduled, first.CreationTimestamp)
	}
	if first.Labels["made"] != "first" || first.Annotations["an"] != "1" || !metav1.IsControlledBy(&first, cj) {
		t.Errorf("metadata %+v", first.ObjectMeta)
	}
	waitStatus(t, env, ns, "tick", "active and lastScheduleTime", func(cj *batch.CronJob) bool {
		return active(first)(cj) && cj.Status.LastScheduleTime.Time.Equal(scheduled)
	})
	finished := finish(t, env, &first, batch.JobComplete)
	waitStatus(t, env, ns, "tick", "lastSuccessfulTime", func(cj *batch.CronJob) bool {
		return len(cj.Status.Active) == 0 && cj.Status.LastSuccessfulTime.Equal(finished.Status.CompletionTime)
	})
	second := waitJobs(t, env, ns, 2)[1]
	if second.Name != nameAt(cj, scheduled.Add(time.Minute)) {
		t.Errorf("second job %s", second.Name)
	}
	waitStatus(t, env, ns, "tick", "the second one to be active", active(second))
	waitReason(t, env, ns, "tick", "SawCompletedJob")
	env.WaitFor(t, "both events", timeout, func(context.Context) (bool, error) { return reasons(t, env, ns, "tick")["SuccessfulCreate"] == 2, nil })
	if got := reasons(t, env, ns, "tick"); len(got) != 2 {
		t.Errorf("events %v", got)
	}
	got := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns), audit.Not(audit.Resource("events"))).Count(func(e audit.Event) string {
		return e.Verb + " " + e.Resource()
	})
	if want := map[string]int{"create jobs.batch": 2, "update cronjobs.batch/status": 3}; !maps.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// BC044: resumed after many missed times. BC052: a Job made by hand.
func TestResumed(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "resumed")
	minute := inMinute(t, 20*time.Second)
	cj := create(t, env, ns, "tick", "*/1 * * * *", suspended)
	setLast(t, env, ns, "tick", minute.Add(-3*time.Hour))
	manual := ownJob(t, env, cj, "by-hand", map[string]string{"cronjob.kubernetes.io/instantiate": "manual"})
	waitReason(t, env, ns, "tick", "UnexpectedJob")
	manual = finish(t, env, manual, batch.JobComplete)
	waitStatus(t, env, ns, "tick", "the manual job's success", func(cj *batch.CronJob) bool {
		return cj.Status.LastSuccessfulTime.Equal(manual.Status.CompletionTime) && len(cj.Status.Active) == 0
	})
	neverMore(t, env, ns, 1, time.Second)
	patch(t, env, ns, "tick", `{"spec":{"suspend":false}}`)
	first := waitJobs(t, env, ns, 2)[1]
	if first.Name != nameAt(cj, minute) {
		t.Errorf("started %s, want the one of the last minute, %s", first.Name, nameAt(cj, minute))
	}
	waitReason(t, env, ns, "tick", "TooManyMissedTimes")
	neverMore(t, env, ns, 2, 2*time.Second)
	if next := waitJobs(t, env, ns, 3)[2]; next.Name != nameAt(cj, minute.Add(time.Minute)) {
		t.Errorf("then %s", next.Name)
	}
	if got := reasons(t, env, ns, "tick")["TooManyMissedTimes"]; got != 1 {
		t.Errorf("told %d times that many were missed", got)
	}
}

// BC045: the schedule is edited to a time that has passed today.
func TestScheduleIsEdited(t *testing.T) {
	env := framework.New(t)
	c := start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "edited")
	now := time.Now()
	// In zones, the one in which it was midnight six hours ago, more or less, does for any time of day.
	passed, coming := now.Add(-3*time.Hour).UTC(), now.Add(3*time.Hour).UTC()
	later := fmt.Sprintf("%d %d * * *", coming.Minute(), coming.Hour())
	earlier := fmt.Sprintf(`{"spec":{"schedule":"%d %d * * *"}}`, passed.Minute(), passed.Hour())
	utc := func(cj *batch.CronJob) { cj.Spec.TimeZone = new("UTC") }
	create(t, env, ns, "plain", later, utc)
	create(t, env, ns, "deadline", later, utc, func(cj *batch.CronJob) { cj.Spec.StartingDeadlineSeconds = new(int64(600)) })
	for _, name := range []string{"plain", "deadline"} {
		setLast(t, env, ns, name, coming.Add(-24*time.Hour))
		patch(t, env, ns, name, earlier)
		patch(t, env, ns, name, `{"metadata":{"labels":{"any":"event"}}}`)
	}
	neverMore(t, env, ns, 0, 5*time.Second)
	// Who has not seen the edit cannot know: one at most, and none past its deadline.
	c.Stop()
	start(t, env, framework.ControllersOptions{})
	if started := waitJobs(t, env, ns, 1)[0]; !strings.HasPrefix(started.Name, "plain-") {
		t.Errorf("started %s", started.Name)
	}
	neverMore(t, env, ns, 1, 3*time.Second)
}

// BC046: the times of @every, over restarts.
func TestEvery(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "every")
	cj := create(t, env, ns, "tick", "@every 90s", suspended)
	last := time.Now().Add(-85 * time.Second).Truncate(time.Second)
	setLast(t, env, ns, "tick", last)
	patch(t, env, ns, "tick", `{"spec":{"suspend":false}}`)
	for range 2 {
		start(t, env, framework.ControllersOptions{}).Stop()
	}
	start(t, env, framework.ControllersOptions{})
	job := waitJobs(t, env, ns, 1)[0]
	if got := job.Annotations[batch.CronJobScheduledTimestampAnnotation]; !strings.HasPrefix(got, last.Add(90*time.Second).Format("2006-01-02T15:04:05")) {
		t.Errorf("scheduled at %s, want 90 s after %s", got, last)
	}
	waitStatus(t, env, ns, "tick", "the time to be written", func(cj *batch.CronJob) bool {
		return cj.Status.LastScheduleTime.Time.Equal(last.Add(90 * time.Second))
	})
	_ = cj
}

// BC049: the manager ended between the creation of a Job and the write of the status.
func TestJobExistsAlready(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "exists")
	minute := inMinute(t, 25*time.Second)
	cj := create(t, env, ns, "tick", "* * * * *", policy(batch.ForbidConcurrent))
	setLast(t, env, ns, "tick", minute.Add(-time.Minute))
	job := ownJob(t, env, cj, nameAt(cj, minute), nil)
	mark := env.AuditMark(t)
	start(t, env, framework.ControllersOptions{})
	waitStatus(t, env, ns, "tick", "the job to be active", func(cj *batch.CronJob) bool {
		return active(*job)(cj) && cj.Status.LastScheduleTime.Time.Equal(minute)
	})
	waitReason(t, env, ns, "tick", "JobAlreadyActive") // in the next minute
	if created := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Verb("create"), audit.Resource("jobs.batch")); len(created) != 0 {
		t.Errorf("tried to create:\n%s", created)
	}
	finish(t, env, job, batch.JobComplete)
	if next := waitJobs(t, env, ns, 2)[1]; next.Name <= job.Name {
		t.Errorf("then %s", next.Name)
	}
}

// The status is not written although the Job is created: the controller finds it by itself.
func TestStatusIsLost(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	status := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"update"}, Path: regexp.MustCompile(`/cronjobs/tick/status`)}, Status: 503})
	c := start(t, env, framework.ControllersOptions{Via: proxy.Config})
	ns := env.Namespace(t, "lost")
	minute := inMinute(t, 25*time.Second)
	create(t, env, ns, "tick", "* * * * *", suspended)
	setLast(t, env, ns, "tick", minute.Add(-time.Minute))
	patch(t, env, ns, "tick", `{"spec":{"suspend":false}}`)
	job := waitJobs(t, env, ns, 1)[0]
	env.WaitFor(t, "two failed writes", timeout, func(context.Context) (bool, error) { return status.Hits() >= 2, nil })
	c.Stop()
	start(t, env, framework.ControllersOptions{})
	waitStatus(t, env, ns, "tick", "the status to be written", func(cj *batch.CronJob) bool {
		return active(job)(cj) && cj.Status.LastScheduleTime.Time.Equal(minute)
	})
	neverMore(t, env, ns, 1, time.Second)
}

// A Job of the run's name belongs to somebody else.
func TestNameIsTaken(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "taken")
	minute := inMinute(t, 20*time.Second)
	cj := create(t, env, ns, "tick", "* * * * *", suspended)
	setLast(t, env, ns, "tick", minute.Add(-time.Minute))
	if _, err := env.Client.BatchV1().Jobs(ns).Create(t.Context(), &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: nameAt(cj, minute)}, Spec: batch.JobSpec{Template: template()}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch(t, env, ns, "tick", `{"spec":{"suspend":false}}`)
	waitReason(t, env, ns, "tick", "FailedCreate")
	next := waitJobs(t, env, ns, 2)[1]
	waitStatus(t, env, ns, "tick", "the next one to be active", active(next))
}

// BC050: the template's labels change while a Job runs. BC051: the history is cleaned up although
// the quota of Jobs is full.
func TestHistory(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "history")
	minute := inMinute(t, 40*time.Second)
	cj := create(t, env, ns, "tick", "* * * * *", suspended, func(cj *batch.CronJob) {
		cj.Spec.SuccessfulJobsHistoryLimit, cj.Spec.FailedJobsHistoryLimit = new(int32(5)), new(int32(5))
	})
	setLast(t, env, ns, "tick", minute)
	var old []*batch.Job
	for i := range 3 {
		job := ownJob(t, env, cj, nameAt(cj, minute.Add(time.Duration(i-3)*time.Minute)), nil)
		job.Status.StartTime = new(metav1.NewTime(minute.Add(time.Duration(i-10) * time.Minute)))
		old = append(old, job)
	}
	waitStatus(t, env, ns, "tick", "three active", func(cj *batch.CronJob) bool { return len(cj.Status.Active) == 3 })
	patch(t, env, ns, "tick", `{"spec":{"jobTemplate":{"metadata":{"labels":{"made":"later"}}}}}`)
	env.Never(t, "a job left the status", 2*time.Second, func(ctx context.Context) (bool, error) {
		return len(get(t, env, ns, "tick").Status.Active) != 3, nil
	})
	if _, err := env.Client.CoreV1().ResourceQuotas(ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("3")}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	quotaStatus(t, env, ns, 3)
	for _, job := range old {
		finish(t, env, job, batch.JobComplete)
	}
	waitStatus(t, env, ns, "tick", "none active", func(cj *batch.CronJob) bool { return len(cj.Status.Active) == 0 })
	setLast(t, env, ns, "tick", minute.Add(-time.Minute))
	patch(t, env, ns, "tick", `{"spec":{"suspend":false,"successfulJobsHistoryLimit":1}}`)
	waitReason(t, env, ns, "tick", "FailedCreate")
	env.WaitFor(t, "the old jobs to go", timeout, func(ctx context.Context) (bool, error) {
		found, err := jobs(ctx, env, ns)
		return len(found) == 1 && found[0].Name == old[2].Name, err
	})
	quotaStatus(t, env, ns, 1)
	started := waitJobs(t, env, ns, 2)[1]
	if started.Labels["made"] != "later" {
		t.Errorf("labels %v", started.Labels)
	}
	if got := reasons(t, env, ns, "tick")["SuccessfulDelete"]; got != 2 {
		t.Errorf("told %d deletions", got)
	}
}

// quotaStatus counts the Jobs, as the quota controller would.
func quotaStatus(t *testing.T, env *framework.Env, ns string, used int64) {
	t.Helper()
	env.WaitFor(t, "the quota's status", timeout, func(ctx context.Context) (bool, error) {
		quota, err := env.Client.CoreV1().ResourceQuotas(ns).Get(ctx, "jobs", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		quota.Status.Hard = quota.Spec.Hard
		quota.Status.Used = corev1.ResourceList{"count/jobs.batch": *resource.NewQuantity(used, resource.DecimalSI)}
		_, err = env.Client.CoreV1().ResourceQuotas(ns).UpdateStatus(ctx, quota, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

// Replace deletes the Job before and its Pods; one that a finalizer holds does not come back.
func TestReplace(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "replace")
	minute := inMinute(t, 25*time.Second)
	cj := create(t, env, ns, "tick", "* * * * *", suspended, policy(batch.ReplaceConcurrent))
	setLast(t, env, ns, "tick", minute.Add(-2*time.Minute))
	plain := ownJob(t, env, cj, nameAt(cj, minute.Add(-2*time.Minute)), nil)
	held := ownJob(t, env, cj, nameAt(cj, minute.Add(-time.Minute)), nil)
	hold := func(body string) {
		t.Helper()
		if _, err := env.Client.BatchV1().Jobs(ns).Patch(t.Context(), held.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	hold(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	waitStatus(t, env, ns, "tick", "both to be active", active(*plain, *held))
	patch(t, env, ns, "tick", `{"spec":{"suspend":false}}`)
	waitStatus(t, env, ns, "tick", "the replacement", func(cj *batch.CronJob) bool {
		return len(cj.Status.Active) == 1 && cj.Status.Active[0].Name == nameAt(cj, minute)
	})
	if _, err := env.Client.BatchV1().Jobs(ns).Get(t.Context(), plain.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the replaced job: %v", err)
	}
	env.Never(t, "the replaced job came back", 2*time.Second, func(ctx context.Context) (bool, error) {
		return len(get(t, env, ns, "tick").Status.Active) != 1, nil
	})
	hold(`{"metadata":{"finalizers":null}}`)
	if got := reasons(t, env, ns, "tick"); got["UnexpectedJob"]+got["MissingJob"] != 0 {
		t.Errorf("events %v", got)
	}
}

// An active Job that somebody deletes is told and taken off; a schedule without times is told once.
func TestEvents(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "events")
	minute := inMinute(t, 15*time.Second)
	cj := create(t, env, ns, "tick", "* * * * *", suspended)
	setLast(t, env, ns, "tick", minute)
	job := ownJob(t, env, cj, nameAt(cj, minute), nil)
	waitStatus(t, env, ns, "tick", "the job to be active", active(*job))
	if err := env.Client.BatchV1().Jobs(ns).Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	waitReason(t, env, ns, "tick", "MissingJob")
	waitStatus(t, env, ns, "tick", "no job to be active", active())

	create(t, env, ns, "never", "59 23 31 2 *")
	waitReason(t, env, ns, "never", "InvalidSchedule")
	for i := range 5 {
		patch(t, env, ns, "never", fmt.Sprintf(`{"metadata":{"labels":{"edit":"%d"}}}`, i))
	}
	patch(t, env, ns, "never", `{"spec":{"schedule":"59 23 30 2 *"}}`)
	env.WaitFor(t, "the other schedule to be told", timeout, func(context.Context) (bool, error) {
		return reasons(t, env, ns, "never")["InvalidSchedule"] == 2, nil
	})
	if got := reasons(t, env, ns, "never"); got["InvalidSchedule"] != 2 || len(got) != 1 {
		t.Errorf("events %v", got)
	}
}
