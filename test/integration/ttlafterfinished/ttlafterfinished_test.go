// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package ttlafterfinished runs the ttl-after-finished-controller against a real API server.
package ttlafterfinished

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/ttlafterfinished"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

const (
	serviceAccount = "ttl-after-finished-controller"
	timeout        = 60 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// start runs the controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	ttl := ttlafterfinished.New(c.Ctx, c.Informers.Batch().V1().Jobs(), c.Client(serviceAccount))
	c.Run("ttl-after-finished-controller", func(ctx context.Context) { ttl.Run(ctx, 5) })
	return c
}

// finishedJob creates a Job that is complete, or failed, as of now. There is no Job
// controller here: its part is played.
func finishedJob(t *testing.T, env *framework.Env, ns, name string, condition batch.JobConditionType, ttl *int32) *batch.Job {
	t.Helper()
	jobs := env.Client.BatchV1().Jobs(ns)
	job, err := jobs.Create(t.Context(), &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batch.JobSpec{TTLSecondsAfterFinished: ttl, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/job:1"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	job.Status.Conditions = []batch.JobCondition{
		{Type: batch.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	if condition == batch.JobComplete {
		job.Status.CompletionTime = &now
		job.Status.Succeeded = 1
		job.Status.Conditions[0].Type = batch.JobSuccessCriteriaMet
	}
	job.Status.UncountedTerminatedPods = &batch.UncountedTerminatedPods{}
	if job, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return job
}

func setTTL(t *testing.T, env *framework.Env, ns, name, ttl string) {
	t.Helper()
	_, err := env.Client.BatchV1().Jobs(ns).Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"ttlSecondsAfterFinished":%s}}`, ttl), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitDeleted waits until the Job is in deletion, and returns it: no garbage collector
// takes its finalizer away here.
func waitDeleted(t *testing.T, env *framework.Env, ns, name string) *batch.Job {
	t.Helper()
	var job *batch.Job
	env.WaitFor(t, "job "+name+" to be deleted", timeout, func(ctx context.Context) (ok bool, err error) {
		job, err = env.Client.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && job.DeletionTimestamp != nil, err
	})
	return job
}

// staysFor fails the test when the Job is deleted within the time.
func staysFor(t *testing.T, env *framework.Env, ns, name string, d time.Duration) {
	t.Helper()
	env.Never(t, "job "+name+" was deleted", d, func(ctx context.Context) (bool, error) {
		job, err := env.Client.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && job.DeletionTimestamp != nil, err
	})
}

func TestJobsExpire(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "ttl")
	mark := env.AuditMark(t)
	finishedJob(t, env, ns, "none", batch.JobComplete, nil)
	finishedJob(t, env, ns, "long", batch.JobFailed, new(int32(600)))
	complete := finishedJob(t, env, ns, "complete", batch.JobComplete, new(int32(2)))
	finishedJob(t, env, ns, "failed", batch.JobFailed, new(int32(2)))
	finishedJob(t, env, ns, "at-once", batch.JobFailed, new(int32(0)))
	for _, name := range []string{"complete", "failed", "at-once"} {
		job := waitDeleted(t, env, ns, name)
		finished := job.Status.Conditions[1].LastTransitionTime
		if lived := job.DeletionTimestamp.Sub(finished.Time); lived < time.Duration(*job.Spec.TTLSecondsAfterFinished)*time.Second {
			t.Errorf("job %s lived for %s, want %d s at least", name, lived, *job.Spec.TTLSecondsAfterFinished)
		}
		if !slices.Equal(job.Finalizers, []string{metav1.FinalizerDeleteDependents}) {
			t.Errorf("finalizers %v: the pods are to go first", job.Finalizers)
		}
	}
	staysFor(t, env, ns, "none", time.Second)
	staysFor(t, env, ns, "long", 0)
	if got := waitDeleted(t, env, ns, "complete"); got.UID != complete.UID {
		t.Errorf("job %s was deleted for %s", got.UID, complete.UID)
	}
	got := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns)).Count(func(e audit.Event) string {
		return e.Verb + " " + e.Resource()
	})
	if got["get jobs.batch"] != 3 || got["delete jobs.batch"] != 3 || len(got) != 2 {
		t.Errorf("requests %v, want a read and a deletion for each of three jobs", got)
	}
}

// BC094: the TTL is edited.
func TestTTLIsEdited(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	ns := env.Namespace(t, "ttl")
	finishedJob(t, env, ns, "raised", batch.JobComplete, new(int32(3)))
	finishedJob(t, env, ns, "taken", batch.JobComplete, new(int32(3)))
	finishedJob(t, env, ns, "lowered", batch.JobComplete, new(int32(600)))
	finishedJob(t, env, ns, "given", batch.JobComplete, nil)
	setTTL(t, env, ns, "raised", "600")
	setTTL(t, env, ns, "taken", "null")
	setTTL(t, env, ns, "lowered", "1")
	setTTL(t, env, ns, "given", "1")
	waitDeleted(t, env, ns, "lowered")
	waitDeleted(t, env, ns, "given")
	staysFor(t, env, ns, "raised", 4*time.Second)
	staysFor(t, env, ns, "taken", 0)
}

// While the cache stands still, the live Job decides.
func TestLateCache(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	ns := env.Namespace(t, "ttl")
	finishedJob(t, env, ns, "raised", batch.JobComplete, new(int32(4)))
	finishedJob(t, env, ns, "again", batch.JobComplete, new(int32(4)))
	finishedJob(t, env, ns, "probe", batch.JobComplete, new(int32(0)))
	waitDeleted(t, env, ns, "probe") // the cache has seen them all
	jobs := regexp.MustCompile(`/jobs(/|\?|$)`)
	proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: jobs}, WithholdEvents: true})
	reads := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"get"}, Path: jobs}})
	setTTL(t, env, ns, "raised", "600")
	if err := env.Client.BatchV1().Jobs(ns).Delete(t.Context(), "again", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	finishedJob(t, env, ns, "again", batch.JobComplete, new(int32(600)))
	env.WaitFor(t, "both jobs to be read", timeout, func(context.Context) (bool, error) { return reads.Hits() >= 2, nil })
	staysFor(t, env, ns, "raised", 2*time.Second)
	staysFor(t, env, ns, "again", 0)
}

// A manager that starts finds the Jobs that finished before.
func TestRestart(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "ttl")
	finishedJob(t, env, ns, "job", batch.JobFailed, new(int32(1)))
	start(t, env, framework.ControllersOptions{})
	waitDeleted(t, env, ns, "job")
}
