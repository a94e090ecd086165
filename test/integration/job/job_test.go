// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

// waitEvents waits until the Job's events are there as often as wanted, and no others.
func (c *cluster) waitEvents(name string, want map[string]int) {
	c.t.Helper()
	c.env.WaitFor(c.t, "events of job "+name, timeout, func(ctx context.Context) (bool, error) {
		got, err := c.events(ctx, name)
		if err != nil {
			return false, err
		}
		if !maps.Equal(got, want) {
			return false, fmt.Errorf("they are %v", got)
		}
		return true, nil
	})
}

// TestLives runs Jobs side by side under one controller.
func TestLives(t *testing.T) {
	env := framework.New(t)
	kubelet(t, env)
	start(t, env, framework.ControllersOptions{})
	// The subtests wait for each other's end before the controller is stopped.
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *framework.Env){
			"Complete":                                testComplete,
			"BackoffLimit":                            testBackoffLimit,
			"NoPodsForFinishedJob":                    testNoPodsForFinishedJob,
			"SuspendedWithoutCompletions":             testSuspendedWithoutCompletions,
			"SuspendAndResume":                        testSuspendAndResume,
			"ReplacementPolicyWithSurplusTerminating": testReplacementPolicyWithSurplusTerminating,
			"SuccessAfterFailure":                     testSuccessAfterFailure,
			"ElasticIndexedJob":                       testElasticIndexedJob,
			"ManyJobsUnderQuota":                      testManyJobsUnderQuota,
			"FailurePolicy":                           testFailurePolicy,
			"SuccessPolicyAndPerIndex":                testSuccessPolicyAndPerIndex,
			"Deadline":                                testDeadline,
			"RecreatedAtOnce":                         testRecreatedAtOnce,
			"ManagedBy":                               testManagedBy,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, env)
			})
		}
	})
}

func testComplete(t *testing.T, env *framework.Env) {
	for _, tc := range []struct {
		name      string
		change    func(*batch.Job)
		completed string
	}{
		{"plain", func(*batch.Job) {}, ""},
		{"indexed", indexed, "0-4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, env)
			mark := env.AuditMark(t)
			c.create(newJob("work", 5, 3, tc.change, outcome("succeeded")))
			got := c.waitComplete("work").Status
			if got.Succeeded != 5 || got.Failed != 0 || got.Active != 0 || got.CompletedIndexes != tc.completed || got.CompletionTime == nil {
				t.Errorf("status %+v", got)
			}
			if met := condition(&batch.Job{Status: got}, batch.JobSuccessCriteriaMet); met == nil || met.Reason != batch.JobReasonCompletionsReached {
				t.Errorf("conditions %+v", got.Conditions)
			}
			c.waitNoFinalizers()
			c.waitEvents("work", map[string]int{
				"job-controller Normal SuccessfulCreate Created pod": 5,
				"job-controller Normal Completed Job completed":      1,
			})
			for code, n := range env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns)).Count(func(e audit.Event) string { return fmt.Sprint(e.Code() >= 400) }) {
				if code == "true" {
					t.Errorf("%d requests were refused", n)
				}
			}
			for i, pod := range c.pods() {
				if tc.completed != "" && (pod.Spec.Hostname != "work-"+podIndex(&pod) || pod.Spec.Containers[0].Env[0].Name != "JOB_COMPLETION_INDEX") {
					t.Errorf("pod %d: host name %s, variables %v", i, pod.Spec.Hostname, pod.Spec.Containers[0].Env)
				}
			}
		})
	}
}

// BC034, kubernetes/kubernetes#62382 and #96630.
func testBackoffLimit(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(newJob("work", 1, 1, outcome("failed"), backoffLimit(1)))
	failed := c.waitFailed("work")
	if s := failed.Status; s.Failed != 2 || s.StartTime == nil || s.Active != 0 || condition(failed, batch.JobFailureTarget) == nil ||
		condition(failed, batch.JobFailed).Reason != batch.JobReasonBackoffLimitExceeded {
		t.Errorf("status %+v", s)
	}
	c.neverMore(failed, 0, 2*time.Second)
	if n := len(c.pods()); n != 2 {
		t.Errorf("%d pods, want 2", n)
	}
	c.waitNoFinalizers()
	c.waitEvents("work", map[string]int{
		"job-controller Normal SuccessfulCreate Created pod":                                      2,
		"job-controller Warning BackoffLimitExceeded Job has reached the specified backoff limit": 1,
	})
}

// BC031, kubernetes/kubernetes#130333.
func testNoPodsForFinishedJob(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 3, 3, backoffLimit(0)))
	c.setPhase(corev1.PodFailed, c.waitActive(job, 3)[0].Name)
	before := c.waitFailed("work").Status
	for _, pod := range c.pods() {
		c.deletePod(pod.Name)
	}
	c.patchJob("work", `{"metadata":{"annotations":{"touched":"yes"}}}`)
	c.neverMore(job, 0, 3*time.Second)
	after, err := c.getJob(t.Context(), "work")
	if err != nil || after.Status.Failed != before.Failed || after.Status.Succeeded != before.Succeeded || before.Failed != 3 {
		t.Errorf("status %+v, then %+v (%v)", before, after.Status, err)
	}
}

// BC037, kubernetes/kubernetes#132614.
func testSuspendedWithoutCompletions(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	c.create(newJob("work", 0, 1, suspended))
	job := c.waitComplete("work")
	if condition(job, batch.JobSuccessCriteriaMet) == nil || len(c.pods()) != 0 {
		t.Errorf("conditions %+v, %d pods", job.Status.Conditions, len(c.pods()))
	}
	refused := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Code(422))
	if len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// BC038, kubernetes/kubernetes#135104 and #139287.
func testSuspendAndResume(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 3, 1))
	first := c.waitActive(job, 1)
	c.setPhase(corev1.PodSucceeded, first[0].Name)
	c.waitCounts("work", 1, 1, 0)
	c.setPhase(corev1.PodRunning, c.waitActive(job, 1)[0].Name)
	c.patchJob("work", `{"spec":{"suspend":true}}`)
	c.waitJob("work", "suspended", func(job *batch.Job) bool {
		return conditionTrue(batch.JobSuspended)(job) && job.Status.StartTime == nil && job.Status.Active == 0 && job.Status.Succeeded == 1 && job.Status.Failed == 0
	})
	c.waitActive(job, 0)
	c.patchJob("work", `{"spec":{"template":{"spec":{"nodeSelector":{"kind":"fast"}}}}}`)
	before := time.Now().Add(-time.Second)
	c.patchJob("work", `{"spec":{"suspend":false}}`)
	resumed := c.waitJob("work", "resumed", func(job *batch.Job) bool {
		cond := condition(job, batch.JobSuspended)
		return cond != nil && cond.Status == corev1.ConditionFalse && cond.Reason == "JobResumed" && job.Status.StartTime != nil && job.Status.Active == 1
	})
	if resumed.Status.StartTime.Before(&metav1.Time{Time: before.Truncate(time.Second)}) || resumed.Status.Succeeded != 1 {
		t.Errorf("status %+v, resumed after %v", resumed.Status, before)
	}
	if pod := c.waitActive(job, 1)[0]; pod.Spec.NodeSelector["kind"] != "fast" {
		t.Errorf("node selector %v", pod.Spec.NodeSelector)
	}
	c.waitEvents("work", map[string]int{
		"job-controller Normal SuccessfulCreate Created pod": 3,
		"job-controller Normal SuccessfulDelete Deleted pod": 1,
		"job-controller Normal Suspended Job suspended":      1,
		"job-controller Normal Resumed Job resumed":          1,
	})
}

// BC039, kubernetes/kubernetes#121147.
func testReplacementPolicyWithSurplusTerminating(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 3, 3, func(job *batch.Job) { job.Spec.PodReplacementPolicy = new(batch.Failed) }))
	pods := c.waitActive(job, 3)
	for _, pod := range pods {
		c.patchPod(pod.Name, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		c.deletePod(pod.Name)
	}
	c.patchJob("work", `{"spec":{"parallelism":1}}`)
	c.waitJob("work", "3 terminating", func(job *batch.Job) bool { return job.Status.Terminating != nil && *job.Status.Terminating == 3 })
	c.neverMore(job, 0, 3*time.Second)
	for _, pod := range pods {
		c.setPhase(corev1.PodFailed, pod.Name)
	}
	c.waitActive(job, 1)
	c.neverMore(job, 1, 2*time.Second)
	for _, pod := range pods {
		c.patchPod(pod.Name, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/hold"]}}`)
	}
}

// BC040, kubernetes/kubernetes#111646.
func testSuccessAfterFailure(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	job := c.create(newJob("work", 2, 2, backoffLimit(0)))
	pods := c.waitActive(job, 2)
	c.setPhase(corev1.PodFailed, pods[0].Name)
	c.setPhase(corev1.PodSucceeded, pods[1].Name)
	if s := c.waitFailed("work").Status; s.Succeeded != 1 || s.Failed != 1 {
		t.Errorf("status %+v", s)
	}
	c.waitNoFinalizers()
	if conflicts := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Code(409)); len(conflicts) > 1 {
		t.Errorf("conflicts: %v", conflicts)
	}
}

// BC042, kubernetes/kubernetes#115349.
func testElasticIndexedJob(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 5, 5, indexed))
	pods := c.waitActive(job, 5)
	c.setPhase(corev1.PodSucceeded, pods[3].Name, pods[4].Name)
	c.waitJob("work", "3 and 4 completed", func(job *batch.Job) bool { return job.Status.CompletedIndexes == "3,4" })
	c.patchJob("work", `{"spec":{"completions":3,"parallelism":3}}`)
	c.waitJob("work", "nothing completed", func(job *batch.Job) bool {
		return job.Status.CompletedIndexes == "" && job.Status.Succeeded == 0 && job.Status.Active == 3
	})
	c.setPhase(corev1.PodSucceeded, names(pods[:3])...)
	if s := c.waitComplete("work").Status; s.CompletedIndexes != "0-2" || s.Succeeded != 3 {
		t.Errorf("status %+v", s)
	}
	c.waitNoFinalizers()
}

// BC043, kubernetes/kubernetes#111026.
func testManyJobsUnderQuota(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/pods": resource.MustParse("1000")}}}
	quota, err := env.Client.CoreV1().ResourceQuotas(c.ns).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The quota controller's part: without a status nothing is admitted.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/pods": resource.MustParse("0")}}
	if _, err := env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		c.create(newJob(fmt.Sprint("work-", i), 2, 2))
	}
	env.WaitFor(t, "100 pods", timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		if err == nil && len(pods) != 100 {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err == nil, err
	})
}

func testFailurePolicy(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	exit := func(name string, code int32) {
		c.setStatus(name, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}}}})
	}
	job := c.create(newJob("work", 3, 2, backoffLimit(0), func(job *batch.Job) {
		rule := func(action batch.PodFailurePolicyAction, code int32) batch.PodFailurePolicyRule {
			return batch.PodFailurePolicyRule{Action: action, OnExitCodes: &batch.PodFailurePolicyOnExitCodesRequirement{Operator: batch.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}}}
		}
		job.Spec.PodFailurePolicy = &batch.PodFailurePolicy{Rules: []batch.PodFailurePolicyRule{rule(batch.PodFailurePolicyActionIgnore, 3), rule(batch.PodFailurePolicyActionFailJob, 4)}}
	}))
	first := c.waitActive(job, 2)
	exit(first[0].Name, 3)
	env.WaitFor(t, "the ignored pod to be replaced", timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return len(pods) == 3 && len(active(pods, job)) == 2, err
	})
	if s := c.waitCounts("work", 2, 0, 0).Status; len(s.Conditions) != 0 {
		t.Errorf("status %+v", s)
	}
	exit(c.waitActive(job, 2)[0].Name, 4)
	failed := c.waitFailed("work")
	if cond := condition(failed, batch.JobFailed); cond.Reason != batch.JobReasonPodFailurePolicy || failed.Status.Failed != 2 {
		t.Errorf("status %+v", failed.Status)
	}
	c.waitNoFinalizers()
}

func testSuccessPolicyAndPerIndex(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 3, 3, indexed, func(job *batch.Job) {
		job.Spec.BackoffLimitPerIndex = new(int32(1))
		job.Spec.SuccessPolicy = &batch.SuccessPolicy{Rules: []batch.SuccessPolicyRule{{SucceededIndexes: new("1"), SucceededCount: new(int32(1))}}}
	}))
	c.setPhase(corev1.PodFailed, c.waitActive(job, 3)[0].Name)
	env.WaitFor(t, "index 0 to run again", timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return slices.ContainsFunc(active(pods, job), func(pod corev1.Pod) bool {
			return podIndex(&pod) == "0" && pod.Annotations[batch.JobIndexFailureCountAnnotation] == "1"
		}), err
	})
	again := c.waitActive(job, 3)
	c.setPhase(corev1.PodFailed, again[0].Name)
	c.waitJob("work", "index 0 failed", func(job *batch.Job) bool { return job.Status.FailedIndexes != nil && *job.Status.FailedIndexes == "0" })
	c.setPhase(corev1.PodSucceeded, again[1].Name)
	done := c.waitComplete("work")
	if cond := condition(done, batch.JobComplete); cond.Reason != batch.JobReasonSuccessPolicy || done.Status.Succeeded != 1 || done.Status.CompletedIndexes != "1" {
		t.Errorf("status %+v", done.Status)
	}
	c.waitActive(job, 0)
	c.waitNoFinalizers()
}

func testDeadline(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	job := c.create(newJob("work", 1, 1, func(job *batch.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(3)) }))
	c.waitActive(job, 1)
	if cond := condition(c.waitFailed("work"), batch.JobFailed); cond.Reason != batch.JobReasonDeadlineExceeded {
		t.Errorf("condition %+v", cond)
	}
	c.waitActive(job, 0)
	c.waitNoFinalizers()
}

// However a Job is deleted, no finalizer of the controller stays on its Pods, not even when
// no controller runs then.
func TestDeletedJob(t *testing.T) {
	env := framework.New(t)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", policy, restart), func(t *testing.T) {
				controllers := start(t, env, framework.ControllersOptions{})
				c := newCluster(t, env)
				job := c.create(newJob("work", 3, 3))
				c.waitActive(job, 3)
				c.waitCounts("work", 3, 0, 0)
				if restart {
					controllers.Stop()
				}
				if err := env.Client.BatchV1().Jobs(c.ns).Delete(t.Context(), "work", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
					t.Fatal(err)
				}
				if policy == metav1.DeletePropagationOrphan {
					for _, pod := range c.pods() {
						c.patchPod(pod.Name, `{"metadata":{"ownerReferences":null}}`)
					}
				}
				if policy != metav1.DeletePropagationBackground {
					// The garbage collector's part.
					if _, err := env.Client.BatchV1().Jobs(c.ns).Patch(t.Context(), "work", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if restart {
					start(t, env, framework.ControllersOptions{})
				}
				c.waitNoFinalizers()
			})
		}
	}
}

// A Job of the same name right after another was deleted starts from nothing.
func testRecreatedAtOnce(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	first := c.create(newJob("work", 2, 2))
	c.setPhase(corev1.PodSucceeded, c.waitActive(first, 2)[0].Name)
	if err := env.Client.BatchV1().Jobs(c.ns).Delete(t.Context(), "work", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	second := c.create(newJob("work", 2, 2))
	c.setPhase(corev1.PodSucceeded, names(c.waitActive(second, 2))...)
	if s := c.waitComplete("work").Status; s.Succeeded != 2 {
		t.Errorf("status %+v", s)
	}
	c.waitNoFinalizers()
}

// A manager that starts goes on where the one before it stopped.
func TestRestart(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env)
	controllers := start(t, env, framework.ControllersOptions{})
	job := c.create(newJob("work", 4, 4))
	pods := c.waitActive(job, 4)
	c.setPhase(corev1.PodSucceeded, pods[0].Name)
	c.waitCounts("work", 3, 1, 0)
	controllers.Stop()
	c.setPhase(corev1.PodSucceeded, pods[1].Name)
	c.deletePod(pods[2].Name) // it stays, for the finalizer
	start(t, env, framework.ControllersOptions{})
	c.waitCounts("work", 2, 2, 1)
	c.setPhase(corev1.PodSucceeded, names(c.waitActive(job, 2))...)
	if s := c.waitComplete("work").Status; s.Succeeded != 4 || s.Failed != 1 {
		t.Errorf("status %+v", s)
	}
	c.waitNoFinalizers()
}

// A Job of another controller is left alone, its Pods too.
func testManagedBy(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	c.create(newJob("work", 1, 1, func(job *batch.Job) { job.Spec.ManagedBy = new("example.com/other") }))
	mine := c.create(newJob("mine", 1, 1))
	c.waitActive(mine, 1)
	for _, e := range env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Writes()) {
		if e.Object() == c.ns+"/work" {
			t.Errorf("written: %s", e)
		}
	}
	job, err := c.getJob(t.Context(), "work")
	if err != nil || job.Status.StartTime != nil {
		t.Errorf("status %+v (%v)", job.Status, err)
	}
}
