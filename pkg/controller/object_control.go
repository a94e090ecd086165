// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
)

// RSControlInterface is what a ref manager needs in order to write to ReplicaSets.
type RSControlInterface interface {
	// PatchReplicaSet applies a strategic merge patch.
	PatchReplicaSet(ctx context.Context, namespace, name string, data []byte) error
}

// RealRSControl writes ReplicaSets to the API server.
type RealRSControl struct {
	KubeClient clientset.Interface
	Recorder   record.EventRecorder
}

var _ RSControlInterface = RealRSControl{}

// PatchReplicaSet implements RSControlInterface.
func (r RealRSControl) PatchReplicaSet(ctx context.Context, namespace, name string, data []byte) error {
	_, err := r.KubeClient.AppsV1().ReplicaSets(namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	return err
}

// ControllerRevisionControlInterface is what a ref manager needs in order to write to
// ControllerRevisions.
type ControllerRevisionControlInterface interface {
	// PatchControllerRevision applies a strategic merge patch.
	PatchControllerRevision(ctx context.Context, namespace, name string, data []byte) error
}

// RealControllerRevisionControl writes ControllerRevisions to the API server.
type RealControllerRevisionControl struct {
	KubeClient clientset.Interface
}

var _ ControllerRevisionControlInterface = RealControllerRevisionControl{}

// PatchControllerRevision implements ControllerRevisionControlInterface.
func (r RealControllerRevisionControl) PatchControllerRevision(ctx context.Context, namespace, name string, data []byte) error {
	_, err := r.KubeClient.AppsV1().ControllerRevisions(namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	return err
}
