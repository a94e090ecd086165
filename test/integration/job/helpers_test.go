// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package job runs the job-controller against a real API server.
package job

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/job"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "job-controller"
	timeout        = 90 * time.Second
	// outcomeLabel on a Pod says what becomes of it on its fake node.
	outcomeLabel = "outcome"
)

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// Nobody waits ten seconds for the replacement of a Pod.
	job.DefaultJobPodFailureBackOff, job.MaxJobPodFailureBackOff = 100*time.Millisecond, time.Second
	framework.Main(m)
}

// start runs the job-controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	jobs, err := job.NewController(c.Ctx, c.Client(serviceAccount), c.Informers.Core().V1().Pods(), c.Informers.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Run("job-controller", func(ctx context.Context) { jobs.Run(ctx, 5) })
	return c
}

// cluster is a namespace of a test's own.
type cluster struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

func newCluster(t *testing.T, env *framework.Env) *cluster {
	t.Helper()
	return &cluster{t: t, env: env, ns: env.Namespace(t, "job")}
}

// kubelet plays two nodes, for Pods with the label outcome: they end as it says.
func kubelet(t *testing.T, env *framework.Env) *fakekubelet.Kubelet {
	t.Helper()
	k := env.Kubelet(t, 2, fakekubelet.Options{Binds: func(pod *corev1.Pod) bool {
		return pod.Labels[outcomeLabel] != "" && env.Owns(pod.Namespace)
	}})
	labeled := func(outcome string) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool { return pod.Labels[outcomeLabel] == outcome }
	}
	k.Set(fakekubelet.Succeeded, labeled("succeeded"))
	k.Set(fakekubelet.Failed, labeled("failed"))
	return k
}

// newJob returns a Job. Its Pods need no grace: without a kubelet they are gone as soon as
// they are deleted.
func newJob(name string, completions, parallelism int32, changes ...func(*batch.Job)) *batch.Job {
	job := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batch.JobSpec{
			Completions: &completions,
			Parallelism: &parallelism,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "job"}},
				Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/job:1"}},
				},
			},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

func indexed(job *batch.Job) { job.Spec.CompletionMode = new(batch.IndexedCompletion) }

func suspended(job *batch.Job) { job.Spec.Suspend = new(true) }

func outcome(o string) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.Template.Labels[outcomeLabel] = o }
}

func backoffLimit(n int32) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.BackoffLimit = &n }
}

func (c *cluster) create(job *batch.Job) *batch.Job {
	c.t.Helper()
	created, err := c.env.Client.BatchV1().Jobs(c.ns).Create(c.t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) patchJob(name, patch string) {
	c.t.Helper()
	_, err := c.env.Client.BatchV1().Jobs(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) patchPod(name, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		c.t.Fatal(err)
	}
}

// setStatus reports a Pod's status as its kubelet would.
func (c *cluster) setStatus(name string, status corev1.PodStatus) {
	c.t.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	c.patchPod(name, string(data), "status")
}

func (c *cluster) setPhase(phase corev1.PodPhase, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.setStatus(name, corev1.PodStatus{Phase: phase})
	}
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	if err := c.env.Client.CoreV1().Pods(c.ns).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

func (c *cluster) listPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	pods, err := c.listPods(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return pods
}

func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// podIndex is the completion index of a Pod; "" when it has none.
func podIndex(pod *corev1.Pod) string { return pod.Annotations[batch.JobCompletionIndexAnnotation] }

// active returns the Job's active Pods, in the order of their indexes and names.
func active(pods []corev1.Pod, job *batch.Job) []corev1.Pod {
	var found []corev1.Pod
	for i := range pods {
		if isActive(&pods[i]) && metav1.IsControlledBy(&pods[i], job) {
			found = append(found, pods[i])
		}
	}
	slices.SortFunc(found, func(a, b corev1.Pod) int {
		return strings.Compare(podIndex(&a)+"/"+a.Name, podIndex(&b)+"/"+b.Name)
	})
	return found
}

func names(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name)
	}
	return all
}

// waitActive waits until the Job has that many active Pods, and returns them.
func (c *cluster) waitActive(job *batch.Job, want int) []corev1.Pod {
	c.t.Helper()
	var found []corev1.Pod
	c.env.WaitFor(c.t, fmt.Sprintf("%d active pods of %s/%s", want, c.ns, job.Name), timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		if err != nil {
			return false, err
		}
		if found = active(pods, job); len(found) != want {
			return false, fmt.Errorf("there are %v", names(found))
		}
		return true, nil
	})
	return found
}

// neverMore fails the test when the Job has more active Pods for a moment.
func (c *cluster) neverMore(job *batch.Job, most int, within time.Duration) {
	c.t.Helper()
	c.env.Never(c.t, fmt.Sprintf("more than %d active pods of %s/%s", most, c.ns, job.Name), within, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return err == nil && len(active(pods, job)) > most, err
	})
}

func (c *cluster) getJob(ctx context.Context, name string) (*batch.Job, error) {
	return c.env.Client.BatchV1().Jobs(c.ns).Get(ctx, name, metav1.GetOptions{})
}

// waitJob waits until the condition holds for the Job, and returns the Job.
func (c *cluster) waitJob(name, what string, condition func(*batch.Job) bool) *batch.Job {
	c.t.Helper()
	var got *batch.Job
	c.env.WaitFor(c.t, fmt.Sprintf("job %s/%s: %s", c.ns, name, what), timeout, func(ctx context.Context) (bool, error) {
		job, err := c.getJob(ctx, name)
		if err != nil {
			return false, err
		}
		got = job
		if !condition(job) {
			return false, fmt.Errorf("generation %d, status %+v", job.Generation, job.Status)
		}
		return true, nil
	})
	return got
}

// conditionTrue tells whether a condition of the Job is True.
func conditionTrue(kind batch.JobConditionType) func(*batch.Job) bool {
	return func(job *batch.Job) bool {
		c := condition(job, kind)
		return c != nil && c.Status == corev1.ConditionTrue
	}
}

func condition(job *batch.Job, kind batch.JobConditionType) *batch.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func (c *cluster) waitComplete(name string) *batch.Job {
	c.t.Helper()
	return c.waitJob(name, "complete", conditionTrue(batch.JobComplete))
}

func (c *cluster) waitFailed(name string) *batch.Job {
	c.t.Helper()
	return c.waitJob(name, "failed", conditionTrue(batch.JobFailed))
}

// counts waits until the Job's counts are as wanted and nothing is uncounted.
func (c *cluster) waitCounts(name string, active, succeeded, failed int32) *batch.Job {
	c.t.Helper()
	return c.waitJob(name, fmt.Sprintf("%d active, %d succeeded, %d failed", active, succeeded, failed), func(job *batch.Job) bool {
		s := job.Status
		return s.Active == active && s.Succeeded == succeeded && s.Failed == failed && nothingUncounted(s)
	})
}

func nothingUncounted(s batch.JobStatus) bool {
	return s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) == 0
}

// waitNoFinalizers waits until no Pod of the namespace has the finalizer of the controller.
func (c *cluster) waitNoFinalizers() {
	c.t.Helper()
	c.env.WaitFor(c.t, "no pod of "+c.ns+" to have the finalizer", timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		if err != nil {
			return false, err
		}
		for i := range pods {
			if slices.Contains(pods[i].Finalizers, batch.JobTrackingFinalizer) {
				return false, fmt.Errorf("pod %s has it", pods[i].Name)
			}
		}
		return true, nil
	})
}

// events returns the Job's events as "type reason message", with the names of Pods left
// out, and how often each is there.
func (c *cluster) events(ctx context.Context, name string) (map[string]int, error) {
	list, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + name})
	if err != nil {
		return nil, err
	}
	got := map[string]int{}
	for _, e := range list.Items {
		message, pod, ok := strings.Cut(e.Message, " pod: ")
		if ok && pod != "" {
			message += " pod"
		}
		got[fmt.Sprintf("%s %s %s %s", e.Source.Component, e.Type, e.Reason, message)] += int(e.Count)
	}
	return got, nil
}

// managerArgs are the flags of a manager that runs the job-controller alone.
func managerArgs(env *framework.Env, more ...string) []string {
	args := slices.DeleteFunc(env.ControlPlane.ManagerArgs(), func(arg string) bool {
		for _, flag := range []string{"--controllers=", "--secure-port=", "--leader-elect="} {
			if strings.HasPrefix(arg, flag) {
				return true
			}
		}
		return false
	})
	return append(append(args, "--controllers=job-controller", "--leader-elect=false"), more...)
}
