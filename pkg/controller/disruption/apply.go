// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

var budgetResource = policy.Resource("poddisruptionbudgets")

// apply carries a plan out.
func (dc *DisruptionController) apply(ctx context.Context, pdb *policy.PodDisruptionBudget, p plan) error {
	if p.write {
		if err := dc.writeStatus(ctx, pdb, p.status); err != nil {
			return err
		}
	}
	for _, pod := range p.overdue {
		dc.reportOverdue(pdb, pod)
	}
	if p.recheck > 0 {
		dc.rechecks.AddAfter(cache.MetaObjectToName(pdb), p.recheck)
	}
	return nil
}

// applyFailSafe allows no disruption, since what is wrong with the budget may be that Pods are missing.
func (dc *DisruptionController) applyFailSafe(ctx context.Context, pdb *policy.PodDisruptionBudget, reason error) error {
	status, write := failSafe(pdb, reason, dc.clock.Now())
	if !write {
		return nil
	}
	return dc.writeStatus(ctx, pdb, status)
}

// writeStatus writes at the version of the budget that the status was computed from: what an
// eviction has written meanwhile must not be lost.
func (dc *DisruptionController) writeStatus(ctx context.Context, pdb *policy.PodDisruptionBudget, status policy.PodDisruptionBudgetStatus) error {
	updated := pdb.DeepCopy()
	updated.Status = status
	written, err := dc.client.PolicyV1().PodDisruptionBudgets(pdb.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("updating the status of pod disruption budget %s/%s: %w", pdb.Namespace, pdb.Name, err)
	}
	dc.guard.WroteAt(types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}, pdb.UID, budgetResource, written.ResourceVersion)
	return nil
}

// syncStalePod takes back the DisruptionTarget condition of a Pod that was to go and did not.
func (dc *DisruptionController) syncStalePod(ctx context.Context, key cache.ObjectName) error {
	pod, err := dc.podLister.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	stale, ok := staleness(pod, dc.staleAfter)
	if !ok {
		return nil
	}
	if left := stale.Sub(dc.clock.Now()); left > 0 {
		return worker.RequeueAfter(left)
	}
	patch, err := clearPatch(pod, metav1.NewTime(dc.clock.Now()))
	if err != nil {
		return err
	}
	_, err = dc.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("Reset stale DisruptionTarget condition to False", "pod", klog.KObj(pod))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return worker.RequeueAfter(staleRecheck) // the cache is late, or somebody has just set it anew
	}
	return fmt.Errorf("taking back the DisruptionTarget condition of pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// clearPatch is the strategic merge patch that sets the condition to False, for the version of the Pod
// that was seen.
func clearPatch(pod *v1.Pod, now metav1.Time) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []map[string]any{{
			"type":               v1.DisruptionTarget,
			"status":             v1.ConditionFalse,
			"reason":             nil,
			"message":            nil,
			"observedGeneration": pod.Generation,
			"lastTransitionTime": now,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the condition of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return patch, nil
}
