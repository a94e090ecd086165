// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// sync takes one pod one step further. The watch brings it back for the next.
func (k *Kubelet) sync(ctx context.Context, key cache.ObjectName) error {
	obj, exists, err := k.pods.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	pod := obj.(*corev1.Pod)
	if pod.Spec.NodeName == "" {
		return k.bind(ctx, pod)
	}
	if !k.owns(pod.Spec.NodeName) {
		return nil
	}
	if silent, _ := k.isSilent(pod.Spec.NodeName); silent || k.isStale(pod) {
		return nil
	}
	if pod.DeletionTimestamp != nil {
		return k.terminate(ctx, pod)
	}
	return k.patchStatus(ctx, pod, k.outcomeFor(pod))
}

// bind places an unscheduled pod, as a scheduler does.
func (k *Kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	if k.opts.Binds == nil || !k.opts.Binds(pod) || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 ||
		isTerminal(pod) {
		return nil
	}
	node := k.place(pod)
	if node == "" {
		return nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding pod %s to %s: %w", keyOf(pod), node, err)
	}
	return nil
}

func (k *Kubelet) place(pod *corev1.Pod) string {
	if k.opts.Place != nil {
		return k.opts.Place(pod)
	}
	return k.opts.Nodes[int(k.next.Add(1)-1)%len(k.opts.Nodes)]
}

// terminate ends a pod that is to be deleted: its containers stop after
// Options.Termination, at the latest when the grace period is over; then its
// last status is reported and the object is removed.
func (k *Kubelet) terminate(ctx context.Context, pod *corev1.Pod) error {
	if k.isHeld(pod) {
		return nil
	}
	now := k.opts.Clock.Now()
	end := k.terminatingSince(pod.UID, now).Add(k.opts.Termination)
	// deletionTimestamp is the end of the grace period, not the time of the request.
	if deadline := pod.DeletionTimestamp.Time; deadline.Before(end) {
		end = deadline
	}
	if wait := end.Sub(now); wait > 0 && !isTerminal(pod) {
		k.queue.AddAfter(cache.MetaObjectToName(pod), wait)
		return nil
	}
	if !isTerminal(pod) {
		// Containers that end on SIGTERM exit with 0, ones that were never started fail
		// the pod: KEP-3329 has kubelets report a terminal phase before the deletion.
		final := Succeeded
		if pod.Status.Phase != corev1.PodRunning {
			final = Failed
		}
		if err := k.patchStatus(ctx, pod, final); err != nil {
			return err
		}
	}
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil {
		return fmt.Errorf("removing pod %s: %w", keyOf(pod), err)
	}
	// A finalizer may keep the object for longer; the kubelet is done with it all the same.
	k.removed(pod.UID)
	return nil
}

// patchStatus reports the status that the outcome gives, unless it is reported already.
func (k *Kubelet) patchStatus(ctx context.Context, pod *corev1.Pod, outcome Outcome) error {
	if isTerminal(pod) {
		return nil
	}
	next := k.statusFor(pod, outcome, metav1.NewTime(k.opts.Clock.Now().Truncate(time.Second)))
	if apiequality.Semantic.DeepEqual(pod.Status, next) {
		return nil
	}
	patch, err := statusPatch(pod, next)
	if err != nil {
		return fmt.Errorf("pod %s: %w", keyOf(pod), err)
	}
	written, err := k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting pod %s: %w", keyOf(pod), err)
	}
	k.wrote(written)
	return nil
}

// statusPatch is the patch that kubelets send: the whole status, conditions
// merged by type, for exactly this UID and no particular version.
func statusPatch(pod *corev1.Pod, status corev1.PodStatus) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   status,
	})
}

func keyOf(pod *corev1.Pod) string { return cache.MetaObjectToName(pod).String() }

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
