// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// conflictRetry is when a Pod is looked at again of which the cache had an old version.
const conflictRetry = 500 * time.Millisecond

// syncVictim deletes one Pod if there is still reason to.
func (c *PodGCController) syncVictim(ctx context.Context, v victim) error {
	pod, err := c.pods.Pods(v.namespace).Get(v.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	node, err := c.cachedNode(pod.Spec.NodeName)
	if err != nil {
		return err
	}
	if pod.UID != v.uid || isSettled(pod) || !reasonHolds(v.reason, pod, node) {
		return nil
	}
	klog.FromContext(ctx).Info("Force deleting a pod", "pod", klog.KObj(pod), "reason", v.reason, "node", pod.Spec.NodeName)
	err = c.failAndDelete(ctx, pod, v.reason)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return worker.RequeueAfter(conflictRetry)
	}
	metrics.DeletingPodsTotal.WithLabelValues(pod.Namespace, v.reason).Inc()
	if err != nil {
		metrics.DeletingPodsErrorTotal.WithLabelValues(pod.Namespace, v.reason).Inc()
	}
	return err
}

// failAndDelete lets a Pod that has not finished fail, so that its owner need not wait for
// a kubelet that will never report, and deletes it without grace.
func (c *PodGCController) failAndDelete(ctx context.Context, pod *v1.Pod, reason string) error {
	pods := c.client.CoreV1().Pods(pod.Namespace)
	if !podutil.IsPodTerminal(pod) {
		patch, err := failPatch(pod, reason, metav1.NewTime(c.clock.Now()))
		if err != nil {
			return err
		}
		if _, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("letting pod %s/%s fail: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil {
		return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// failPatch returns the strategic merge patch that lets a Pod fail, for the version of the
// Pod that was seen: what has succeeded meanwhile must not fail afterwards.
func failPatch(pod *v1.Pod, reason string, now metav1.Time) ([]byte, error) {
	status := map[string]any{"phase": v1.PodFailed, "observedGeneration": pod.Generation}
	if reason == metrics.PodGCReasonOrphaned {
		// KEP-3329: a Job's podFailurePolicy tells a lost node from a failure by this.
		condition := v1.PodCondition{
			Type:               v1.DisruptionTarget,
			Status:             v1.ConditionTrue,
			Reason:             "DeletionByPodGC",
			Message:            "PodGC: node no longer exists",
			ObservedGeneration: pod.Generation,
		}
		updated := v1.PodStatus{}
		if _, old := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget); old != nil {
			updated.Conditions = []v1.PodCondition{*old}
		}
		podutil.UpdatePodConditionAt(&updated, &condition, now)
		status["conditions"] = updated.Conditions
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return patch, nil
}
