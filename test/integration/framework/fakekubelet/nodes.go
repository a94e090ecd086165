// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// ensureNode creates a node as a kubelet registers one, and reports it Ready. A
// node that exists is reported Ready.
func (k *Kubelet) ensureNode(ctx context.Context, name string) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Conditions:  k.nodeConditions(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
	created, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := k.reportNode(ctx, name); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		// Admission taints a new node as not ready; without a node lifecycle controller
		// nobody would take the taint away, and a scheduler would shun the node.
		if err := k.untaint(ctx, created); err != nil {
			return err
		}
	}
	return k.renewLease(ctx, name)
}

func (k *Kubelet) untaint(ctx context.Context, node *corev1.Node) error {
	if len(node.Spec.Taints) == 0 {
		return nil
	}
	patch := []byte(`{"spec":{"taints":null}}`)
	_, err := k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (k *Kubelet) nodeConditions() []corev1.NodeCondition {
	now := metav1.NewTime(k.opts.Clock.Now().Truncate(time.Second))
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

// reportNode renews the node's conditions; one that has not changed keeps its transition time.
func (k *Kubelet) reportNode(ctx context.Context, name string) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions := k.nodeConditions()
	for i := range conditions {
		for _, old := range node.Status.Conditions {
			if old.Type == conditions[i].Type && old.Status == conditions[i].Status {
				conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// renewLease creates or renews the node's lease.
func (k *Kubelet) renewLease(ctx context.Context, name string) error {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       &name,
		LeaseDurationSeconds: ptr.To(max(1, int32(k.opts.LeaseDuration/time.Second))),
		RenewTime:            ptr.To(metav1.NewMicroTime(k.opts.Clock.Now())),
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// heartbeat keeps a node alive until ctx is done.
func (k *Kubelet) heartbeat(ctx context.Context, name string) {
	ticker := k.opts.Clock.NewTicker(k.opts.LeaseDuration / 4)
	defer ticker.Stop()
	for {
		silent, changed := k.isSilent(name)
		if !silent {
			if err := k.beatOnce(ctx, name); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Fake kubelet's heartbeat failed, will retry", "node", name)
			}
		}
		select {
		case <-ticker.C():
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (k *Kubelet) beatOnce(ctx context.Context, name string) error {
	if err := k.renewLease(ctx, name); err != nil {
		return fmt.Errorf("renewing lease: %w", err)
	}
	if err := k.reportNode(ctx, name); err != nil {
		return fmt.Errorf("reporting node: %w", err)
	}
	return nil
}
