// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	nodeutil "k8s.io/component-helpers/node/util"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
)

// evictedReason is the status.reason that a kubelet gives to Pods that it evicted.
const evictedReason = "Evicted"

// victim is a Pod to delete, and why.
type victim struct {
	namespace, name string
	uid             types.UID
	reason          string // one of the reasons of package metrics
}

func newVictim(pod *v1.Pod, reason string) victim {
	return victim{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, reason: reason}
}

// String names the victim in logs and on debug pages.
func (v victim) String() string { return fmt.Sprintf("%s/%s (%s)", v.namespace, v.name, v.reason) }

// plan is what a pass found. Every Pod is in it at most once.
type plan struct {
	// victims are the Pods to delete now.
	victims []victim
	// outOfService are the nodes whose terminating Pods are to be deleted, sorted.
	outOfService []string
	// lost are the nodes that Pods are on and that are not known, sorted.
	lost []string
}

// makePlan looks at every Pod once. A threshold of 0 or less keeps all terminated Pods.
func makePlan(pods []*v1.Pod, nodes map[string]*v1.Node, threshold int) plan {
	var p plan
	surplus := surplusOf(pods, threshold)
	doomed := sets.New[types.NamespacedName]()
	for _, pod := range surplus {
		doomed.Insert(nameOf(pod))
		if !isSettled(pod) {
			p.victims = append(p.victims, newVictim(pod, metrics.PodGCReasonTerminated))
		}
	}
	outOfService, lost := sets.New[string](), sets.New[string]()
	for _, pod := range pods {
		if doomed.Has(nameOf(pod)) || isSettled(pod) {
			continue
		}
		node := nodes[pod.Spec.NodeName]
		switch {
		case reasonHolds(metrics.PodGCReasonTerminatingOutOfService, pod, node):
			outOfService.Insert(node.Name)
		case reasonHolds(metrics.PodGCReasonOrphaned, pod, node):
			lost.Insert(pod.Spec.NodeName)
		case reasonHolds(metrics.PodGCReasonTerminatingUnscheduled, pod, node):
			p.victims = append(p.victims, newVictim(pod, metrics.PodGCReasonTerminatingUnscheduled))
		}
	}
	p.outOfService, p.lost = sets.List(outOfService), sets.List(lost)
	return p
}

// surplusOf returns the terminated Pods beyond the threshold, in the order in which they
// are to go.
func surplusOf(pods []*v1.Pod, threshold int) []*v1.Pod {
	if threshold <= 0 {
		return nil
	}
	var terminated []*v1.Pod
	for _, pod := range pods {
		if isTerminated(pod) {
			terminated = append(terminated, pod)
		}
	}
	count := len(terminated) - threshold
	if count <= 0 {
		return nil
	}
	slices.SortFunc(terminated, func(a, b *v1.Pod) int {
		return cmp.Or(
			compareBool(isEvicted(b), isEvicted(a)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace),
		)
	})
	return terminated[:count]
}

// reasonHolds says whether the reason to delete the Pod is there. node is the Pod's node,
// nil when it is not known.
func reasonHolds(reason string, pod *v1.Pod, node *v1.Node) bool {
	switch reason {
	case metrics.PodGCReasonTerminated:
		return isTerminated(pod)
	case metrics.PodGCReasonTerminatingOutOfService:
		return pod.DeletionTimestamp != nil && node != nil && isOutOfService(node)
	case metrics.PodGCReasonOrphaned:
		return pod.Spec.NodeName != "" && node == nil
	case metrics.PodGCReasonTerminatingUnscheduled:
		return pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
	default:
		return false
	}
}

// isTerminated says whether the Pod will never run again. A phase that is not known, or
// none, is one of those.
func isTerminated(pod *v1.Pod) bool {
	switch pod.Status.Phase {
	case v1.PodPending, v1.PodRunning, v1.PodUnknown:
		return false
	}
	return true
}

// isSettled says whether the Pod was force-deleted already and is held by finalizers
// alone: no further request brings its end nearer.
func isSettled(pod *v1.Pod) bool {
	return podutil.IsPodTerminal(pod) && pod.DeletionTimestamp != nil &&
		pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) > 0
}

// isOutOfService says whether somebody has declared that nothing runs on the node any
// more (KEP-2268), and the node does not say otherwise.
func isOutOfService(node *v1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, v1.NodeReady)
	if ready != nil && ready.Status == v1.ConditionTrue {
		return false
	}
	return slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeOutOfService })
}

func isEvicted(pod *v1.Pod) bool { return pod.Status.Reason == evictedReason }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
