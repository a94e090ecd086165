// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// BurstReplicas is how many Pods one sync creates at most, and how many it deletes.
const BurstReplicas = 250

// plan is what one sync does.
type plan struct {
	// create names the nodes that get a Pod.
	create []string
	// remove are the Pods that go.
	remove []*v1.Pod
	// failed and succeeded are those of remove that have ended, by which they are reported. The
	// node's back-off grows with each failed one.
	failed, succeeded []*v1.Pod
	// lookAgain is when a failed Pod's back-off is over; 0: there is none.
	lookAgain time.Duration
}

// makePlan decides what is to be done: first that each node has what it should, and where nothing is
// to be done about that, the next step of a roll-out.
func makePlan(s *state) (plan, error) {
	limits, err := rolloutLimits(s.ds, s.desired())
	if err != nil {
		return plan{}, err
	}
	var p plan
	for _, node := range s.nodes {
		p.manage(node, limits.surge > 0)
	}
	for _, pod := range s.lost {
		p.drop(pod)
	}
	if len(p.create)+len(p.remove) == 0 && s.ds.Spec.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType {
		p.rollOut(s, limits)
	}
	p.create = p.create[:min(len(p.create), BurstReplicas)]
	p.remove = p.remove[:min(len(p.remove), BurstReplicas)]
	return p, nil
}

func (p *plan) drop(pod *daemonPod) { p.remove = append(p.remove, pod.Pod) }

// manage sees to one node.
func (p *plan) manage(node *nodeState, surge bool) {
	switch {
	case node.wants && len(node.pods) == 0:
		p.create = append(p.create, node.name)
	case node.tolerates:
		running := p.endedApart(node)
		if surge {
			p.manageSurge(node, running)
			return
		}
		for _, pod := range after(running, 1) {
			p.drop(pod)
		}
	case node.exists:
		for _, pod := range node.pods {
			if !pod.going {
				p.drop(pod)
			}
		}
	}
}

// after returns what comes after the first n.
func after(pods []*daemonPod, n int) []*daemonPod { return pods[min(n, len(pods)):] }

// endedApart drops the Pods of the node that have ended, failed ones when their back-off is over, and
// returns those that have not. Another Pod is created when the ended one is gone.
func (p *plan) endedApart(node *nodeState) []*daemonPod {
	var running []*daemonPod
	for _, pod := range node.pods {
		switch {
		case pod.going:
		case pod.Status.Phase == v1.PodFailed && node.backoff > 0:
			if p.lookAgain == 0 || node.backoff < p.lookAgain {
				p.lookAgain = node.backoff
			}
		case pod.Status.Phase == v1.PodFailed:
			p.failed = append(p.failed, pod.Pod)
			p.drop(pod)
		case pod.Status.Phase == v1.PodSucceeded:
			p.succeeded = append(p.succeeded, pod.Pod)
			p.drop(pod)
		default:
			running = append(running, pod)
		}
	}
	return running
}

// manageSurge leaves a node at most one updated and one old Pod, and the old one only until the updated
// one can do without it.
func (p *plan) manageSurge(node *nodeState, running []*daemonPod) {
	if len(running) == 0 {
		if node.wants {
			p.create = append(p.create, node.name)
		}
		return
	}
	var updated, old *daemonPod
	for _, pod := range running {
		switch {
		case pod.updated && updated == nil:
			updated = pod
		case !pod.updated && old == nil:
			old = pod
		default:
			p.drop(pod)
		}
	}
	if updated != nil && old != nil && (!old.ready() || updated.available) {
		p.drop(old)
	}
}
