// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ended(name string, d time.Duration) *v1.Pod { return newPod(name, v1.PodFailed, exited(1, d)) }

func TestBackoffRecord(t *testing.T) {
	at := func(d time.Duration) time.Time { return testNow.Add(-d) }
	for _, tc := range []struct {
		name              string
		before            backoffRecord
		succeeded, failed []*v1.Pod
		want              backoffRecord
	}{
		{"nothing", backoffRecord{}, nil, nil, backoffRecord{}},
		{"one failure", backoffRecord{}, nil, []*v1.Pod{ended("a", 5)}, backoffRecord{1, at(5)}},
		{"two failures", backoffRecord{}, nil, []*v1.Pod{ended("a", 5), ended("b", 9)}, backoffRecord{2, at(5)}},
		{"two failures, then success", backoffRecord{}, []*v1.Pod{ended("c", 1)}, []*v1.Pod{ended("a", 5), ended("b", 9)}, backoffRecord{}},
		{"two failures, success, two failures", backoffRecord{}, []*v1.Pod{ended("c", 6)},
			[]*v1.Pod{ended("a", 9), ended("b", 8), ended("d", 4), ended("e", 2)}, backoffRecord{2, at(2)}},
		{"two before and one new", backoffRecord{2, at(20)}, nil, []*v1.Pod{ended("a", 5)}, backoffRecord{3, at(5)}},
		{"success and failure at one time", backoffRecord{}, []*v1.Pod{ended("a", 5)}, []*v1.Pod{ended("b", 5)}, backoffRecord{}},
		{"one success", backoffRecord{}, []*v1.Pod{ended("a", 5)}, nil, backoffRecord{}},
		{"success forgets what was before", backoffRecord{4, at(20)}, []*v1.Pod{ended("a", 5)}, nil, backoffRecord{}},
	} {
		if got := tc.before.after(tc.succeeded, tc.failed); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestRemainingBackoff(t *testing.T) {
	for _, tc := range []struct {
		failures int
		since    time.Duration
		want     time.Duration
	}{
		{0, 0, 0},
		{1, 0, 10 * time.Second},
		{1, time.Second, 9 * time.Second},
		{1, 10 * time.Second, 0},
		{1, 11 * time.Second, 0},
		{3, 0, 40 * time.Second},
		{6, 0, 320 * time.Second},
		{7, 0, 10 * time.Minute},
		{1 << 20, 0, 10 * time.Minute},
	} {
		r := backoffRecord{tc.failures, testNow.Add(-tc.since)}
		if got := r.remaining(testSettings(), testNow); got != tc.want {
			t.Errorf("%d failures, %v ago: %v, want %v", tc.failures, tc.since, got, tc.want)
		}
	}
}

func TestRemainingIndexBackoff(t *testing.T) {
	for _, tc := range []struct {
		counted, ignored string
		want             time.Duration
	}{
		{"", "", 10 * time.Second},
		{"0", "", 10 * time.Second},
		{"2", "", 40 * time.Second},
		{"1", "1", 40 * time.Second},
	} {
		pod := newPod("p", v1.PodFailed, exited(1, 0), annotation(batch.JobIndexFailureCountAnnotation, tc.counted), annotation(batch.JobIndexIgnoredFailureCountAnnotation, tc.ignored))
		if got := remainingIndexBackoff(pod, testSettings(), testNow); got != tc.want {
			t.Errorf("%q counted, %q ignored: %v, want %v", tc.counted, tc.ignored, got, tc.want)
		}
	}
}

func TestFinishTime(t *testing.T) {
	running := func(pod *v1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{Name: "second", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	readiness := func(value v1.ConditionStatus, d time.Duration) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: value, LastTransitionTime: ago(d)}}
		}
	}
	deletedAt := func(d time.Duration, grace int64) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.DeletionTimestamp = new(ago(d))
			if grace > 0 {
				pod.DeletionGracePeriodSeconds = &grace
			}
		}
	}
	sidecar := func(d time.Duration) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}, {Name: "init"}}
			pod.Status.InitContainerStatuses = []v1.ContainerStatus{
				{Name: "side", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: ago(d)}}},
				{Name: "init", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: ago(0)}}},
			}
		}
	}
	for _, tc := range []struct {
		name    string
		changes []func(*v1.Pod)
		want    metav1.Time
	}{
		{"all containers have ended", []func(*v1.Pod){exited(0, 9), exited(1, 5), exited(1, 7)}, ago(5)},
		{"with a sidecar", []func(*v1.Pod){exited(0, 9), sidecar(3)}, ago(3)},
		{"one runs: when it was deleted", []func(*v1.Pod){exited(0, 9), running, deletedAt(4, 0)}, ago(4)},
		{"deleted", []func(*v1.Pod){deletedAt(4, 0)}, ago(4)},
		{"deleted, with grace", []func(*v1.Pod){deletedAt(4, 30)}, ago(30*time.Second + 4)},
		{"not ready any more", []func(*v1.Pod){readiness(v1.ConditionFalse, 8)}, ago(8)},
		{"still ready", []func(*v1.Pod){readiness(v1.ConditionTrue, 8), deletedAt(4, 0)}, ago(4)},
		{"nothing is known", nil, ago(time.Hour)},
	} {
		if got := finishTime(newPod("p", v1.PodFailed, tc.changes...)); !got.Equal(tc.want.Time) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
