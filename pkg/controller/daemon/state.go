// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
)

// daemonPod is a Pod of the DaemonSet, and what the plan wants to know of it.
type daemonPod struct {
	*v1.Pod
	// going: it is being deleted, or its deletion was requested.
	going bool
	// updated: it was made of the current template.
	updated bool
	// available: it has been ready for minReadySeconds.
	available bool
}

func (p *daemonPod) ready() bool { return podutil.IsPodReady(p.Pod) }

// nodeState is a node and the Pods that the DaemonSet has for it, oldest first.
type nodeState struct {
	name string
	// exists: there is such a node. Of one that is gone the Pods are the Pod garbage collector's.
	exists bool
	verdict
	pods []*daemonPod
	// backoff is how long the failed Pods of the node are still kept.
	backoff time.Duration
}

// state is what a plan is made of.
type state struct {
	ds *apps.DaemonSet
	// nodes are those there are, and those that Pods are on or bound to, by name.
	nodes []*nodeState
	// lost are Pods that were to be scheduled to nodes that do not exist.
	lost []*daemonPod
	now  time.Time
}

// newState sorts the DaemonSet's Pods by node. Pods that have ended and are going count no more:
// their node gets another at once. verdicts has an entry for each node there is.
func newState(ds *apps.DaemonSet, verdicts map[string]verdict, pods []*v1.Pod, hash string, generation *int64, going func(*v1.Pod) bool, now time.Time) *state {
	s := &state{ds: ds, now: now}
	byName := make(map[string]*nodeState, len(verdicts))
	for name, v := range verdicts {
		byName[name] = &nodeState{name: name, exists: true, verdict: v}
	}
	for _, pod := range pods {
		p := &daemonPod{
			Pod:       pod,
			going:     going(pod),
			updated:   util.IsPodUpdated(pod, hash, generation),
			available: podutil.IsPodAvailable(pod, ds.Spec.MinReadySeconds, metav1.NewTime(now)),
		}
		if p.going && podutil.IsPodTerminal(pod) {
			continue
		}
		name, err := util.GetTargetNodeName(pod)
		if err != nil {
			continue // it was adopted before it was scheduled: it counts when it is
		}
		node, ok := byName[name]
		if !ok {
			if pod.Spec.NodeName == "" && !p.going {
				s.lost = append(s.lost, p)
			}
			node = &nodeState{name: name}
			byName[name] = node
		}
		node.pods = append(node.pods, p)
	}
	s.nodes = make([]*nodeState, 0, len(byName))
	for _, node := range byName {
		slices.SortFunc(node.pods, olderFirst)
		s.nodes = append(s.nodes, node)
	}
	slices.SortFunc(s.nodes, func(a, b *nodeState) int { return cmp.Compare(a.name, b.name) })
	return s
}

// olderFirst orders the Pods of a node by which is kept: the one that is on the node, then the older.
func olderFirst(a, b *daemonPod) int {
	if onNode := func(p *daemonPod) int {
		if p.Spec.NodeName != "" {
			return 0
		}
		return 1
	}; onNode(a) != onNode(b) {
		return onNode(a) - onNode(b)
	}
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// desired is how many nodes want a Pod.
func (s *state) desired() int {
	n := 0
	for _, node := range s.nodes {
		if node.wants {
			n++
		}
	}
	return n
}

// limits are how many nodes a roll-out may leave without an available Pod, and on how many it may run
// a second one.
type limits struct{ unavailable, surge int }

// rolloutLimits scales the limits to the desired number, rounded up, so that a percentage of a small
// cluster is at least one.
func rolloutLimits(ds *apps.DaemonSet, desired int) (limits, error) {
	rolling := ds.Spec.UpdateStrategy.RollingUpdate
	if ds.Spec.UpdateStrategy.Type != apps.RollingUpdateDaemonSetStrategyType || rolling == nil {
		return limits{}, nil
	}
	var l limits
	var err error
	if rolling.MaxUnavailable != nil {
		if l.unavailable, err = intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, desired, true); err != nil {
			return limits{}, fmt.Errorf("invalid value for MaxUnavailable: %w", err)
		}
	}
	if rolling.MaxSurge != nil {
		if l.surge, err = intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, desired, true); err != nil {
			return limits{}, fmt.Errorf("invalid value for MaxSurge: %w", err)
		}
	}
	if l.unavailable == 0 && l.surge == 0 && desired > 0 {
		l.unavailable = 1
	}
	return l, nil
}
