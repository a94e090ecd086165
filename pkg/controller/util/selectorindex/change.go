// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// Change is what the event of a Pod means to the Services that select it, or did.
type Change struct {
	Namespace string
	labels    labelSet
	// oldLabels is set when the labels have changed.
	oldLabels labelSet
	// labelsOnly says that nothing else about the Pod has changed that Services show.
	labelsOnly bool
}

// String names the change in logs and on debug pages.
func (c Change) String() string {
	if c.oldLabels != "" {
		return fmt.Sprintf("pods in %s with labels %s, before %s", c.Namespace, c.labels, c.oldLabels)
	}
	return fmt.Sprintf("pods in %s with labels %s", c.Namespace, c.labels)
}

// FromPod returns the change that a Pod's appearance or disappearance is.
func FromPod(pod *v1.Pod) Change {
	return Change{Namespace: pod.Namespace, labels: newLabelSet(pod.Labels)}
}

// FromUpdate returns the change that an update of a Pod is; false when Services show nothing of it.
func FromUpdate(old, cur *v1.Pod) (Change, bool) {
	podChanged, labelsChanged := endpointChanged(old, cur), !maps.Equal(old.Labels, cur.Labels)
	if !podChanged && !labelsChanged {
		return Change{}, false
	}
	change := FromPod(cur)
	if labelsChanged {
		change.oldLabels = newLabelSet(old.Labels)
		change.labelsOnly = !podChanged
	}
	return change, true
}

// endpointChanged says whether a Pod's endpoint looks different, or is there at all or not. What
// else an endpoint shows of a Pod (its ports, say) cannot change. A UID differs when the Pod was
// deleted and made anew while nobody watched.
func endpointChanged(old, cur *v1.Pod) bool {
	return old.UID != cur.UID ||
		(old.DeletionTimestamp == nil) != (cur.DeletionTimestamp == nil) ||
		podutil.IsPodReady(old) != podutil.IsPodReady(cur) ||
		podutil.IsPodTerminal(old) != podutil.IsPodTerminal(cur) ||
		old.Status.PodIP != cur.Status.PodIP ||
		!slices.Equal(old.Status.PodIPs, cur.Status.PodIPs) ||
		old.Spec.NodeName != cur.Spec.NodeName ||
		old.Spec.Hostname != cur.Spec.Hostname ||
		old.Spec.Subdomain != cur.Spec.Subdomain
}
