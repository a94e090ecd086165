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
	// podsFailingReason is the reason of the condition and of the event that tell of the
	// delay.
	podsFailingReason = "PodsFailing"
	// quickFailure is how long the containers of a Pod that counts as failed at once have
	// run at most.
	quickFailure = 10 * time.Second
	// backoffBaseDelay is waited after the second round of Pods that failed at once, and
	// twice as long after each further one.
	backoffBaseDelay = time.Second
	// backoffMaxDelay bounds the wait.
	backoffMaxDelay = 5 * time.Minute
	// backoffMemory is the gap after which an older failure belongs to another story.
	backoffMemory = 2 * backoffMaxDelay
)

// backoff tells that the set's newest Pods failed at once, one after the other.
type backoff struct {
	// wait is how long not to create Pods yet; zero when the time has come.
	wait time.Duration
	// last is the newest Pod that failed.
	last *v1.Pod
}

// String says why Pods come with delay. It is the same for as long as the reason is,
// since it goes into the status.
func (b *backoff) String() string {
	text := fmt.Sprintf("Pods are created with growing delay because they fail at once, as pod %s did", b.last.Name)
	for _, why := range []string{b.last.Status.Reason, b.last.Status.Message} {
		if why != "" {
			text += ": " + why
		}
	}
	return text
}

// creationBackoff keeps a set from creating Pods as fast as their nodes reject them,
// which fills the API server with failed Pods (#72593). It is nil in normal life: a
// first round of Pods that failed at once is replaced at once, as upstream does; only
// when the replacements failed at once too, and no Pod of the set has got going since,
// the next round waits: 1 s, 2 s, 4 s … 5 min after the last failure.
//
// The Pods of a set restart their containers for ever, so that one can fail only by its
// node: rejected for affinity or resources, evicted, shut down.
//
// The delay is read off the Pods themselves, so that a restarted manager goes on where
// it was, and deleting the failed Pods ends the wait.
func creationBackoff(owned []*v1.Pod, missing int, now time.Time) *backoff {
	// Most sets have no failed Pod at all: find that out without a sort.
	if !slices.ContainsFunc(owned, failedAtOnce) {
		return nil
	}
	count, last := failuresInARow(owned, now)
	// The Pods of one round count as one failure, however many replicas were missing.
	rounds := (count + missing - 1) / max(missing, 1)
	if rounds < 2 {
		return nil
	}
	delay := backoffMaxDelay
	if shift := rounds - 2; shift < 9 { // 2^9 s is above the maximum
		delay = min(backoffBaseDelay<<shift, backoffMaxDelay)
	}
	return &backoff{wait: max(noticedAt(last).Add(delay).Sub(now), 0), last: last}
}

// failuresInARow counts the Pods that failed at once and are newer than every Pod that
// got going, and returns the newest of them.
func failuresInARow(owned []*v1.Pod, now time.Time) (count int, last *v1.Pod) {
	newestFirst := slices.SortedFunc(slices.Values(owned), func(a, b *v1.Pod) int {
		return cmp.Or(noticedAt(b).Compare(noticedAt(a)), cmp.Compare(a.Name, b.Name))
	})
	var progress time.Time
	for _, pod := range newestFirst {
		if gotGoing(pod) {
			progress = noticedAt(pod)
			break
		}
	}
	previous := now
	for _, pod := range newestFirst {
		if !failedAtOnce(pod) {
			continue
		}
		at := noticedAt(pod)
		// A Pod that got going in the same second is progress, too.
		if !at.After(progress) || previous.Sub(at) > backoffMemory {
			break
		}
		if last == nil {
			last = pod
		}
		count++
		previous = at
	}
	return count, last
}

// noticedAt is when the kubelet took notice of the Pod, which for a rejected one is when
// it was rejected; when the Pod was created, if no kubelet did.
func noticedAt(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// failedAtOnce says that the Pod failed before a container had run for long.
func failedAtOnce(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed && pod.DeletionTimestamp == nil && !anyContainer(pod, ranLong)
}

// gotGoing says that the Pod shows that Pods of the set can run.
func gotGoing(pod *v1.Pod) bool {
	switch pod.Status.Phase {
	case v1.PodRunning, v1.PodSucceeded:
		return true
	case v1.PodFailed:
		return anyContainer(pod, ranLong)
	default: // an init container at work
		return anyContainer(pod, func(status v1.ContainerStatus) bool { return status.State.Running != nil })
	}
}

func anyContainer(pod *v1.Pod, is func(v1.ContainerStatus) bool) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, is) || slices.ContainsFunc(pod.Status.ContainerStatuses, is)
}

// ranLong says that the container has run for a while, or was restarted, which takes one.
func ranLong(status v1.ContainerStatus) bool {
	if status.State.Running != nil || status.LastTerminationState.Terminated != nil {
		return true
	}
	end := status.State.Terminated
	return end != nil && end.FinishedAt.Sub(end.StartedAt.Time) > quickFailure
}
