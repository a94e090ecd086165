// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"strconv"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var testNow = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(testNow.Add(-d)) }

func testSettings() settings {
	return settings{podBackoff: 10 * time.Second, maxPodBackoff: 10 * time.Minute, maxUncounted: 500, maxCreateDelete: 500, resetStartTime: true}
}

// newJob returns a Job as the API server stores it.
func newJob(parallelism, completions int32, changes ...func(*batch.Job)) *batch.Job {
	labels := map[string]string{batch.ControllerUidLabel: "job-uid", batch.JobNameLabel: "work"}
	job := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "ns", UID: "job-uid", Generation: 1},
		Spec: batch.JobSpec{
			Parallelism:    &parallelism,
			Completions:    &completions,
			BackoffLimit:   new(int32(6)),
			CompletionMode: new(batch.NonIndexedCompletion),
			Suspend:        new(false),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: "job-uid"}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "i"}}},
			},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

func indexed(job *batch.Job) { job.Spec.CompletionMode = new(batch.IndexedCompletion) }

func workQueue(job *batch.Job) { job.Spec.Completions = nil }

func suspend(job *batch.Job) { job.Spec.Suspend = new(true) }

func deleted(job *batch.Job) { job.DeletionTimestamp = &metav1.Time{Time: testNow} }

func backoffLimit(n int32) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.BackoffLimit = &n }
}

func perIndex(n int32) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.BackoffLimitPerIndex = &n }
}

func replacement(policy batch.PodReplacementPolicy) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.PodReplacementPolicy = &policy }
}

func failurePolicy(rules ...batch.PodFailurePolicyRule) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.PodFailurePolicy = &batch.PodFailurePolicy{Rules: rules} }
}

func successPolicy(rules ...batch.SuccessPolicyRule) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.SuccessPolicy = &batch.SuccessPolicy{Rules: rules} }
}

func onExit(action batch.PodFailurePolicyAction, codes ...int32) batch.PodFailurePolicyRule {
	return batch.PodFailurePolicyRule{Action: action, OnExitCodes: &batch.PodFailurePolicyOnExitCodesRequirement{
		Operator: batch.PodFailurePolicyOnExitCodesOpIn, Values: codes}}
}

func onCondition(action batch.PodFailurePolicyAction, kind v1.PodConditionType, status v1.ConditionStatus) batch.PodFailurePolicyRule {
	return batch.PodFailurePolicyRule{Action: action, OnPodConditions: []batch.PodFailurePolicyOnPodConditionsPattern{{Type: kind, Status: status}}}
}

func restartOnFailure(job *batch.Job) {
	job.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyOnFailure
}

func status(change func(*batch.JobStatus)) func(*batch.Job) {
	return func(job *batch.Job) { change(&job.Status) }
}

// counted gives the Job a status.
func counted(succeeded, failed int32) func(*batch.Job) {
	return status(func(s *batch.JobStatus) { s.Succeeded, s.Failed = succeeded, failed })
}

func started(d time.Duration) func(*batch.Job) {
	return status(func(s *batch.JobStatus) { s.StartTime = new(ago(d)) })
}

func withCondition(kind batch.JobConditionType, value v1.ConditionStatus, reason, message string) func(*batch.Job) {
	return status(func(s *batch.JobStatus) {
		s.Conditions = append(s.Conditions, batch.JobCondition{Type: kind, Status: value, Reason: reason, Message: message})
	})
}

func uncounted(succeeded, failed []types.UID) func(*batch.Job) {
	return status(func(s *batch.JobStatus) {
		s.UncountedTerminatedPods = &batch.UncountedTerminatedPods{Succeeded: succeeded, Failed: failed}
	})
}

func deadline(seconds int64) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.ActiveDeadlineSeconds = &seconds }
}

// newPod returns a tracked Pod of the Job "work".
func newPod(name string, phase v1.PodPhase, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name), CreationTimestamp: ago(time.Hour),
			Labels:          map[string]string{batch.ControllerUidLabel: "job-uid"},
			Finalizers:      []string{batch.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newJob(1, 1), controllerKind)},
		},
		Spec:   v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
		Status: v1.PodStatus{Phase: phase},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func index(i int) func(*v1.Pod) {
	return annotation(batch.JobCompletionIndexAnnotation, strconv.Itoa(i))
}

func annotation(key, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func indexFailure(n int) func(*v1.Pod) {
	return annotation(batch.JobIndexFailureCountAnnotation, strconv.Itoa(n))
}

func untracked(pod *v1.Pod) { pod.Finalizers = nil }

func orphan(pod *v1.Pod) { pod.OwnerReferences = nil }

func ready(pod *v1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: ago(time.Minute)})
}

func leaving(pod *v1.Pod) { pod.DeletionTimestamp = new(ago(time.Minute)) }

func podCondition(kind v1.PodConditionType, value v1.ConditionStatus) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: kind, Status: value})
	}
}

func restarts(n int32) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", RestartCount: n}}
	}
}

// exited says that the main container ended with the code so long ago.
func exited(code int32, d time.Duration) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{Name: "main",
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(d)}}})
	}
}
