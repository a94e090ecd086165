// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// hostIP is the address of all fake nodes, from the range reserved for documentation.
const hostIP = "192.0.2.1"

// statusFor is a kubelet's report of a pod with the given outcome. Times of
// what has not changed since the last report are kept.
func (k *Kubelet) statusFor(pod *corev1.Pod, outcome Outcome, now metav1.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.ObservedGeneration = pod.Generation
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	if s.StartTime == nil {
		s.StartTime = &now
	}
	started := outcome != Waiting
	if started && s.PodIP == "" {
		s.PodIP = k.podIP(pod.UID)
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	switch outcome {
	case Waiting:
		s.Phase = corev1.PodPending
	case Ready, NotReady:
		s.Phase = corev1.PodRunning
	case Succeeded:
		s.Phase = corev1.PodSucceeded
	case Failed:
		s.Phase = corev1.PodFailed
	}
	s.InitContainerStatuses = initStatuses(pod, outcome, now)
	s.ContainerStatuses = containerStatuses(pod.Spec.Containers, pod.Status.ContainerStatuses, outcome, now)
	setConditions(&s, pod, outcome, now)
	return s
}

func initStatuses(pod *corev1.Pod, outcome Outcome, now metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range pod.Spec.InitContainers {
		of := outcome
		if sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways; !sidecar && outcome != Waiting {
			of = Succeeded // an init container has ended well, or the others would not run
		}
		status := containerStatuses([]corev1.Container{c}, pod.Status.InitContainerStatuses, of, now)[0]
		status.Ready = status.Ready || of == Succeeded
		statuses = append(statuses, status)
	}
	return statuses
}

func containerStatuses(containers []corev1.Container, old []corev1.ContainerStatus, outcome Outcome, now metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		status := corev1.ContainerStatus{
			Name:    c.Name,
			Image:   c.Image,
			Ready:   outcome == Ready,
			Started: ptr.To(outcome == Ready || outcome == NotReady),
		}
		startedAt := now
		for _, o := range old {
			if o.Name == c.Name && o.State.Running != nil {
				startedAt = o.State.Running.StartedAt
			}
		}
		switch outcome {
		case Waiting:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		case Ready, NotReady:
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: startedAt}
		case Succeeded:
			status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: startedAt, FinishedAt: now}
		case Failed:
			status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: startedAt, FinishedAt: now}
		}
		if outcome != Waiting {
			status.ImageID = "fake://" + c.Image
			status.ContainerID = "fake://" + c.Name
		}
		for _, o := range old {
			// A container that had ended keeps the times of its end.
			if o.Name == c.Name && o.State.Terminated != nil && status.State.Terminated != nil {
				status.State = o.State
			}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// setConditions sets the five conditions of a kubelet, with its reasons.
func setConditions(s *corev1.PodStatus, pod *corev1.Pod, outcome Outcome, now metav1.Time) {
	set := func(t corev1.PodConditionType, ok bool, reason string) {
		status := corev1.ConditionFalse
		if ok {
			status, reason = corev1.ConditionTrue, ""
		}
		setCondition(s, corev1.PodCondition{Type: t, Status: status, Reason: reason, ObservedGeneration: pod.Generation}, now)
	}
	notReady := "ContainersNotReady"
	switch outcome {
	case Succeeded:
		notReady = "PodCompleted"
	case Failed:
		notReady = "PodFailed"
	}
	running := outcome == Ready || outcome == NotReady
	set(corev1.PodReadyToStartContainers, running, "")
	set(corev1.PodInitialized, outcome != Waiting || len(pod.Spec.InitContainers) == 0, "ContainersNotInitialized")
	set(corev1.ContainersReady, outcome == Ready, notReady)
	ready, reason := outcome == Ready, notReady
	if ready && !gatesOpen(s, pod) {
		ready, reason = false, "ReadinessGatesNotReady"
	}
	set(corev1.PodReady, ready, reason)
	// A scheduler sets this one; a pod that names its node never met one.
	set(corev1.PodScheduled, true, "")
}

// gatesOpen tells whether every readiness gate of the pod has a True condition.
func gatesOpen(s *corev1.PodStatus, pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, c := range s.Conditions {
			open = open || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !open {
			return false
		}
	}
	return true
}

// setCondition adds or replaces a condition; its transition time changes only
// with its status.
func setCondition(s *corev1.PodStatus, c corev1.PodCondition, now metav1.Time) {
	c.LastTransitionTime = now
	for i, old := range s.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}
