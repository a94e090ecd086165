// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Reasons of the events that pod control records on the object that owns the Pod.
const (
	FailedCreatePodReason     = "FailedCreate"
	SuccessfulCreatePodReason = "SuccessfulCreate"
	FailedDeletePodReason     = "FailedDelete"
	SuccessfulDeletePodReason = "SuccessfulDelete"
)

// PodControlInterface writes Pods on behalf of an object that owns them, and records
// on that object what came of it. A test replaces it with FakePodControl.
type PodControlInterface interface {
	// CreatePods creates one Pod from the template, named after object.
	CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error
	// CreatePodsWithGenerateName is CreatePods with another prefix for the name.
	CreatePodsWithGenerateName(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference, generateName string) error
	// DeletePodByUID deletes exactly this Pod: should another one have its name by now,
	// that one stays and the error is Conflict. A Conflict may have another reason, so that
	// it says nothing of whether the Pod is gone: the caller looks again. NotFound and
	// Conflict are returned without an event.
	DeletePodByUID(ctx context.Context, pod *v1.Pod, object runtime.Object) error
	// DeletePod deletes whatever Pod has the name. It is for callers that know no more
	// than the name; all others use DeletePodByUID.
	DeletePod(ctx context.Context, namespace string, podID string, object runtime.Object) error
	// PatchPod applies a strategic merge patch.
	PatchPod(ctx context.Context, namespace, name string, data []byte) error
}

// RealPodControl writes Pods to the API server.
type RealPodControl struct {
	KubeClient clientset.Interface
	Recorder   record.EventRecorder
	// OnWrite, when not nil, is called with each Pod that was created or patched, as the
	// API server returned it, and with the controller reference it was created with or has
	// after the patch (nil when it has none). It may be called concurrently.
	OnWrite func(*v1.Pod, *metav1.OwnerReference)
}

var _ PodControlInterface = RealPodControl{}

// CreatePods implements PodControlInterface.
func (r RealPodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	return r.CreatePodsWithGenerateName(ctx, namespace, template, object, controllerRef, "")
}

// CreatePodsWithGenerateName implements PodControlInterface. An empty generateName
// stands for the name of object.
func (r RealPodControl) CreatePodsWithGenerateName(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference, generateName string) error {
	if err := validateControllerRef(controllerRef); err != nil {
		return err
	}
	pod, err := GetPodFromTemplate(template, object, controllerRef)
	if err != nil {
		return err
	}
	if generateName != "" {
		pod.GenerateName = generateName
	}
	// Such a Pod could never match its owner's selector.
	if len(pod.Labels) == 0 {
		return errors.New("unable to create pods, no labels")
	}
	created, err := r.KubeClient.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		// A namespace in deletion refuses every Pod: no news, and events are refused too.
		if !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			r.Recorder.Eventf(object, v1.EventTypeWarning, FailedCreatePodReason, "Error creating: %v", err)
		}
		return err
	}
	klog.FromContext(ctx).V(4).Info("Created a pod", "pod", klog.KObj(created))
	r.wrote(created, controllerRef)
	r.Recorder.Eventf(object, v1.EventTypeNormal, SuccessfulCreatePodReason, "Created pod: %v", created.Name)
	return nil
}

// DeletePodByUID implements PodControlInterface.
func (r RealPodControl) DeletePodByUID(ctx context.Context, pod *v1.Pod, object runtime.Object) error {
	return r.deletePod(ctx, pod.Namespace, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}, object)
}

// DeletePod implements PodControlInterface.
func (r RealPodControl) DeletePod(ctx context.Context, namespace string, podID string, object runtime.Object) error {
	return r.deletePod(ctx, namespace, podID, metav1.DeleteOptions{}, object)
}

func (r RealPodControl) deletePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions, object runtime.Object) error {
	err := r.KubeClient.CoreV1().Pods(namespace).Delete(ctx, name, options)
	switch {
	case err == nil:
		klog.FromContext(ctx).V(4).Info("Deleted a pod", "pod", klog.KRef(namespace, name))
		r.Recorder.Eventf(object, v1.EventTypeNormal, SuccessfulDeletePodReason, "Deleted pod: %v", name)
		return nil
	case apierrors.IsNotFound(err):
		klog.FromContext(ctx).V(4).Info("The pod to delete is gone already", "pod", klog.KRef(namespace, name))
		return err
	case apierrors.IsConflict(err) && options.Preconditions != nil:
		return fmt.Errorf("deleting pod %s: %w", name, err)
	default:
		r.Recorder.Eventf(object, v1.EventTypeWarning, FailedDeletePodReason, "Error deleting: %v", err)
		return fmt.Errorf("unable to delete pods: %w", err)
	}
}

// PatchPod implements PodControlInterface.
func (r RealPodControl) PatchPod(ctx context.Context, namespace, name string, data []byte) error {
	patched, err := r.KubeClient.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	r.wrote(patched, metav1.GetControllerOf(patched))
	return nil
}

func (r RealPodControl) wrote(pod *v1.Pod, ref *metav1.OwnerReference) {
	if r.OnWrite != nil {
		r.OnWrite(pod, ref)
	}
}

// GetPodFromTemplate returns the Pod to be created from a template: its labels,
// annotations, finalizers and spec, owned by controllerRef, with a name to be generated
// from the name of parentObject. The template's own name is ignored.
func GetPodFromTemplate(template *v1.PodTemplateSpec, parentObject runtime.Object, controllerRef *metav1.OwnerReference) (*v1.Pod, error) {
	parent, err := meta.Accessor(parentObject)
	if err != nil {
		return nil, fmt.Errorf("parentObject does not have ObjectMeta: %w", err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:       cloneOrEmpty(template.Labels),
			Annotations:  cloneOrEmpty(template.Annotations),
			GenerateName: podNamePrefix(parent.GetName()),
			Finalizers:   slices.Clone(template.Finalizers),
		},
	}
	if controllerRef != nil {
		pod.OwnerReferences = append(pod.OwnerReferences, *controllerRef)
	}
	template.Spec.DeepCopyInto(&pod.Spec)
	return pod, nil
}

func cloneOrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// podNamePrefix separates the generated part with a dash where the owner's name leaves
// room for one.
func podNamePrefix(ownerName string) string {
	prefix := ownerName + "-"
	if len(validation.NameIsDNSSubdomain(prefix, true)) != 0 {
		return ownerName
	}
	return prefix
}

func validateControllerRef(ref *metav1.OwnerReference) error {
	switch {
	case ref == nil:
		return errors.New("controllerRef is nil")
	case ref.APIVersion == "":
		return errors.New("controllerRef has empty APIVersion")
	case ref.Kind == "":
		return errors.New("controllerRef has empty Kind")
	case ref.Controller == nil || !*ref.Controller:
		return errors.New("controllerRef.Controller is not set to true")
	case ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion:
		return errors.New("controllerRef.BlockOwnerDeletion is not set")
	}
	return nil
}
