// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// report tells why a budget's numbers are not known, unless its status says so already.
func (dc *DisruptionController) report(pdb *policy.PodDisruptionBudget, kind, reason, message string) {
	if cond := apimeta.FindStatusCondition(pdb.Status.Conditions, policy.DisruptionAllowedCondition); cond != nil &&
		cond.Status == metav1.ConditionFalse && cond.Reason == policy.SyncFailedReason && strings.HasSuffix(message, cond.Message) {
		return
	}
	dc.recorder.Event(pdb, kind, reason, message)
}

// reportFindings tells what is odd about the Pods of a budget whose status changes.
func (dc *DisruptionController) reportFindings(ctx context.Context, pdb *policy.PodDisruptionBudget, pods []*v1.Pod, wanted scales) {
	if len(pods) == 0 {
		dc.recorder.Event(pdb, v1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	if len(wanted.unmanaged) == 0 {
		return
	}
	klog.FromContext(ctx).V(4).Info("Found unmanaged pods associated with this PDB", "podDisruptionBudget", klog.KObj(pdb), "pods", wanted.unmanaged)
	dc.recorder.Eventf(pdb, v1.EventTypeWarning, "UnmanagedPods",
		"Pods selected by this PodDisruptionBudget (selector: %v) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
		pdb.Spec.Selector)
}

// warnOfSeveral tells that the eviction API refuses a Pod that several budgets select.
func (dc *DisruptionController) warnOfSeveral(pod *v1.Pod, budgets []cache.ObjectName) {
	dc.recorder.Eventf(pod, v1.EventTypeWarning, "MultiplePodDisruptionBudgets",
		"Pod %q/%q matches multiple PodDisruptionBudgets.  Chose %q arbitrarily.", pod.Namespace, pod.Name, firstOf(budgets).Name)
}

// firstOf returns the first by name, so that the same event is the same text.
func firstOf(names []cache.ObjectName) cache.ObjectName {
	first := names[0]
	for _, name := range names[1:] {
		if name.Name < first.Name {
			first = name
		}
	}
	return first
}

// reportOverdue tells of a Pod that was let go and not deleted. The text names the namespace twice,
// as upstream's does.
func (dc *DisruptionController) reportOverdue(pdb *policy.PodDisruptionBudget, pod *v1.Pod) {
	dc.recorder.Eventf(pod, v1.EventTypeWarning, "NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't",
		pdb.Namespace, pdb.Namespace)
}
