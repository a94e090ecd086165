// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FakePodControl is a PodControlInterface for tests: it records what it was asked to
// do and writes nothing.
type FakePodControl struct {
	sync.Mutex
	// The embedded mutex guards the following fields.

	Templates       []v1.PodTemplateSpec
	ControllerRefs  []metav1.OwnerReference
	DeletePodName   []string
	DeletePodUID    []string // of DeletePodByUID alone
	Patches         [][]byte
	CreateCallCount int
	// Err is returned by every call, after it was recorded.
	Err error
	// CreateLimit, when not 0, is the number of creations after which the others fail.
	CreateLimit int
}

var _ PodControlInterface = &FakePodControl{}

// CreatePods implements PodControlInterface.
func (f *FakePodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	return f.CreatePodsWithGenerateName(ctx, namespace, template, object, controllerRef, "")
}

// CreatePodsWithGenerateName implements PodControlInterface.
func (f *FakePodControl) CreatePodsWithGenerateName(_ context.Context, _ string, template *v1.PodTemplateSpec, _ runtime.Object, controllerRef *metav1.OwnerReference, generateName string) error {
	f.Lock()
	defer f.Unlock()
	f.CreateCallCount++
	if f.CreateLimit != 0 && f.CreateCallCount > f.CreateLimit {
		return fmt.Errorf("not creating pod, limit %d already reached (create call %d)", f.CreateLimit, f.CreateCallCount)
	}
	recorded := *template.DeepCopy()
	if generateName != "" {
		recorded.GenerateName = generateName
	}
	f.Templates = append(f.Templates, recorded)
	if controllerRef != nil {
		f.ControllerRefs = append(f.ControllerRefs, *controllerRef)
	}
	return f.Err
}

// DeletePodByUID implements PodControlInterface.
func (f *FakePodControl) DeletePodByUID(_ context.Context, pod *v1.Pod, _ runtime.Object) error {
	f.Lock()
	defer f.Unlock()
	f.DeletePodName = append(f.DeletePodName, pod.Name)
	f.DeletePodUID = append(f.DeletePodUID, string(pod.UID))
	return f.Err
}

// DeletePod implements PodControlInterface.
func (f *FakePodControl) DeletePod(_ context.Context, _ string, podID string, _ runtime.Object) error {
	f.Lock()
	defer f.Unlock()
	f.DeletePodName = append(f.DeletePodName, podID)
	return f.Err
}

// PatchPod implements PodControlInterface.
func (f *FakePodControl) PatchPod(_ context.Context, _, _ string, data []byte) error {
	f.Lock()
	defer f.Unlock()
	f.Patches = append(f.Patches, data)
	return f.Err
}

// Clear forgets what was recorded. CreateLimit and Err stay.
func (f *FakePodControl) Clear() {
	f.Lock()
	defer f.Unlock()
	f.Templates = nil
	f.ControllerRefs = nil
	f.DeletePodName = nil
	f.DeletePodUID = nil
	f.Patches = nil
	f.CreateCallCount = 0
}
