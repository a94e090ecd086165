// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// backoffRecord is what decides when a Job's next Pod may be created.
type backoffRecord struct {
	// failures since the last success.
	failures int
	// lastFailure is when the newest of them ended.
	lastFailure time.Time
}

// after returns the record once these Pods have ended, too. A success forgets the failures
// before it.
func (r backoffRecord) after(succeeded, failed []*v1.Pod) backoffRecord {
	var lastSuccess time.Time
	for _, pod := range succeeded {
		if at := finishTime(pod); at.After(lastSuccess) {
			lastSuccess = at
		}
	}
	if len(succeeded) > 0 {
		r = backoffRecord{}
	}
	for _, pod := range failed {
		at := finishTime(pod)
		if len(succeeded) > 0 && !at.After(lastSuccess) {
			continue
		}
		r.failures++
		if at.After(r.lastFailure) {
			r.lastFailure = at
		}
	}
	return r
}

// remaining is how long to wait until the next Pod may be created.
func (r backoffRecord) remaining(s settings, now time.Time) time.Duration {
	return remainingBackoff(r.failures, r.lastFailure, s, now)
}

// remainingIndexBackoff is how long to wait until the Pod, the last one of its index to
// fail, may be replaced.
func remainingIndexBackoff(lastFailed *v1.Pod, s settings, now time.Time) time.Duration {
	return remainingBackoff(indexFailures(lastFailed)+ignoredIndexFailures(lastFailed)+1, finishTime(lastFailed), s, now)
}

// remainingBackoff is the rest of a delay that starts with the last failure, and doubles
// with each.
func remainingBackoff(failures int, last time.Time, s settings, now time.Time) time.Duration {
	if failures == 0 {
		return 0
	}
	delay := s.podBackoff
	for i := 1; i < failures && delay < s.maxPodBackoff; i++ {
		delay *= 2
	}
	delay = min(delay, s.maxPodBackoff)
	return max(last.Add(delay).Sub(now), 0)
}

// finishTime is when a Pod ended, as well as that can be told: when its last container did;
// else when it ceased to be ready; else when it was deleted; else when it was created.
func finishTime(pod *v1.Pod) time.Time {
	if at := lastContainerEnd(pod); !at.IsZero() {
		return at
	}
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.Status == v1.ConditionFalse && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	if pod.DeletionTimestamp != nil {
		at := pod.DeletionTimestamp.Time
		if pod.DeletionGracePeriodSeconds != nil {
			// The timestamp lies ahead by the grace.
			at = at.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
		return at
	}
	return pod.CreationTimestamp.Time
}

// lastContainerEnd is when the last container, or sidecar, ended; zero while one of them has
// not, or none is known.
func lastContainerEnd(pod *v1.Pod) time.Time {
	var last time.Time
	ended := func(status *v1.ContainerStatus) bool {
		if status.State.Terminated == nil || status.State.Terminated.FinishedAt.IsZero() {
			return false
		}
		if at := status.State.Terminated.FinishedAt.Time; at.After(last) {
			last = at
		}
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		if !ended(&pod.Status.ContainerStatuses[i]) {
			return time.Time{}
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; isSidecar(pod, status.Name) && !ended(status) {
			return time.Time{}
		}
	}
	return last
}

func isSidecar(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// pastRestartLimit says whether the containers of Pods that restart them have ended so often
// that the Job has failed.
func pastRestartLimit(job *batch.Job, pods []*v1.Pod) bool {
	if job.Spec.Template.Spec.RestartPolicy != v1.RestartPolicyOnFailure {
		return false
	}
	restarts := int32(0)
	for _, pod := range pods {
		if pod.Status.Phase != v1.PodRunning && pod.Status.Phase != v1.PodPending {
			continue
		}
		restarts += podRestarts(pod)
	}
	limit := *job.Spec.BackoffLimit
	if limit == 0 {
		return restarts > 0
	}
	return restarts >= limit
}

func podRestarts(pod *v1.Pod) int32 {
	restarts := int32(0)
	for i := range pod.Status.InitContainerStatuses {
		restarts += pod.Status.InitContainerStatuses[i].RestartCount
	}
	for i := range pod.Status.ContainerStatuses {
		restarts += pod.Status.ContainerStatuses[i].RestartCount
	}
	return restarts
}
