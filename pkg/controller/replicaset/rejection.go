// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// podsRejectedReason is the reason of the condition and of the event that tell of the
	// delay.
	podsRejectedReason = "PodsRejected"
	// rejectionBaseDelay is waited after the second round of rejected Pods, and twice as
	// long after each further one.
	rejectionBaseDelay = time.Second
	// rejectionMaxDelay bounds the wait.
	rejectionMaxDelay = 5 * time.Minute
	// rejectionMemory is the gap after which an older rejection belongs to another story.
	rejectionMemory = 2 * rejectionMaxDelay
)

// rejection tells that the set's newest Pods were rejected one after the other.
type rejection struct {
	// wait is how long not to create Pods yet; zero when the time has come.
	wait time.Duration
	// last is the newest rejected Pod.
	last *v1.Pod
}

// String says why Pods come with delay. It is the same for as long as the reason is,
// since it goes into the status.
func (r *rejection) String() string {
	return fmt.Sprintf("Pods are created with growing delay because they fail before any of their containers starts, as pod %s did: %s: %s",
		r.last.Name, r.last.Status.Reason, r.last.Status.Message)
}

// rejectionBackoff keeps a set from creating Pods as fast as a node rejects them, which
// fills the API server with failed Pods (#72593). It is nil in normal life: the first
// round of rejected Pods is replaced at once, as upstream does; only when the
// replacements were rejected too, and no Pod of the set has started a container since,
// the next round waits: 1 s, 2 s, 4 s … 5 min after the last rejection.
//
// It is read off the Pods themselves, so that a restarted manager goes on where it
// was, and deleting the failed Pods ends the wait.
func rejectionBackoff(owned []*v1.Pod, missing int, now time.Time) *rejection {
	// Most sets have no failed Pod at all: find that out without a sort.
	if !slices.ContainsFunc(owned, rejected) {
		return nil
	}
	count, last := rejectionsInARow(owned, now)
	// The Pods of one round count as one rejection, however many replicas were missing.
	rounds := (count + missing - 1) / max(missing, 1)
	if rounds < 2 {
		return nil
	}
	delay := rejectionMaxDelay
	if shift := rounds - 2; shift < 9 { // 2^9 s is above the maximum
		delay = min(rejectionBaseDelay<<shift, rejectionMaxDelay)
	}
	return &rejection{wait: max(judgedAt(last).Add(delay).Sub(now), 0), last: last}
}

// rejectionsInARow counts the rejected Pods that are newer than every Pod that has
// started, and returns the newest of them.
func rejectionsInARow(owned []*v1.Pod, now time.Time) (count int, last *v1.Pod) {
	newestFirst := slices.SortedFunc(slices.Values(owned), func(a, b *v1.Pod) int {
		return cmp.Or(judgedAt(b).Compare(judgedAt(a)), cmp.Compare(a.Name, b.Name))
	})
	var lastStart time.Time
	for _, pod := range newestFirst {
		if started(pod) {
			lastStart = judgedAt(pod)
			break
		}
	}
	previous := now
	for _, pod := range newestFirst {
		if !rejected(pod) {
			continue
		}
		// A Pod that started in the same second is progress.
		if at := judgedAt(pod); !at.After(lastStart) || previous.Sub(at) > rejectionMemory {
			break
		}
		if last == nil {
			last = pod
		}
		count++
		previous = judgedAt(pod)
	}
	return count, last
}

// judgedAt is when the kubelet took notice of the Pod, which for a rejected one is when
// it was rejected; when the Pod was created, if no kubelet did.
func judgedAt(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// rejected says that the Pod failed before any container started: its node did not
// take it for lack of resources, for node affinity, for an unknown runtime class …
func rejected(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed && pod.DeletionTimestamp == nil && !started(pod)
}

// started says that a container of the Pod has started at some time.
func started(pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodRunning || pod.Status.Phase == v1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, containerStarted) ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, containerStarted)
}

func containerStarted(status v1.ContainerStatus) bool {
	return status.State.Running != nil || status.LastTerminationState.Terminated != nil ||
		(status.State.Terminated != nil && !status.State.Terminated.StartedAt.IsZero())
}
