// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"iter"
	"time"

	v1 "k8s.io/api/core/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// stuckAfter is how long a Pod may take to become ready before a roll-out that waits for
// it is called blocked, unless its containers say themselves that they cannot start.
const stuckAfter = time.Minute

// blockage is a roll-out that waits for a Pod which does not become ready.
type blockage struct {
	pod      *v1.Pod
	since    time.Time
	why      string
	revision string // the one that the roll-out is to
}

func (b *blockage) String() string {
	text := fmt.Sprintf("Roll-out to revision %s waits for Pod %s of revision %s, which is not ready since %s",
		b.revision, b.pod.Name, revisionOf(b.pod), b.since.UTC().Format(time.RFC3339))
	if b.why != "" {
		text += " (" + b.why + ")"
	}
	if revisionOf(b.pod) != b.revision {
		text += "; it is replaced when it becomes ready or is deleted"
	}
	return text
}

// wait decides about a Pod that an ordered set waits for: mostly nothing.
func (p *planner) wait(r *replica) []action {
	p.judge(r)
	if p.blocked == nil || !p.gates.leaveBadRevision || !p.isOld(r) || !p.isDue(r) {
		return nil
	}
	return []action{{remove, r}}
}

// explain looks for the Pod that a roll-out without budget waits for.
func (p *planner) explain(candidates iter.Seq2[int, *replica]) {
	for _, r := range candidates {
		if r.pod != nil && !r.going && !isRunningAndReady(r.pod) {
			p.judge(r)
			return
		}
	}
}

// judge says whether the roll-out, if there is one, is blocked by this replica, or when
// it will be.
func (p *planner) judge(r *replica) {
	if isRunningAndReady(r.pod) || !p.isRollingOut() {
		return // it only has to stay ready for a while, or nothing is held up
	}
	since := notReadySince(r.pod)
	why := failure(r.pod)
	if left := since.Add(stuckAfter).Sub(p.now); why == "" && left > 0 {
		p.lookAgain = left
		return
	}
	if why == "" {
		why = notReadyReason(r.pod)
	}
	p.blocked = &blockage{pod: r.pod, since: since, why: why, revision: p.update}
}

// isDue says whether the update is for this replica.
func (p *planner) isDue(r *replica) bool {
	return r.ordinal-startOrdinal(p.set) >= partition(p.set)
}

// isRollingOut says whether Pods are still to be replaced.
func (p *planner) isRollingOut() bool {
	if !isRolling(p.set) {
		return false
	}
	for _, r := range p.replicas {
		if p.isOld(r) && p.isDue(r) {
			return true
		}
	}
	return false
}

func notReadySince(pod *v1.Pod) time.Time {
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// failure returns why a container cannot run, if it says so.
func failure(pod *v1.Pod) string {
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if status.State.Waiting == nil {
				continue
			}
			switch reason := status.State.Waiting.Reason; reason {
			case "CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
				"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return fmt.Sprintf("container %s: %s", status.Name, reason)
			}
		}
	}
	return ""
}

// notReadyReason returns what else the Pod's status tells.
func notReadyReason(pod *v1.Pod) string {
	if _, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); scheduled != nil && scheduled.Status == v1.ConditionFalse {
		return "not scheduled: " + scheduled.Reason
	}
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.Reason != "" {
		return ready.Reason
	}
	return string(pod.Status.Phase)
}
