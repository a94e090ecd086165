// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// PodEvents tells a workload controller of the events of Pods: those of the kind that it looks after,
// and those that nobody controls and that one of them may adopt. Its funcs only enqueue.
type PodEvents struct {
	// Kind is the kind of the owners.
	Kind schema.GroupKind
	// Owned is called with the name of an owner of whose Pods one came, changed or went. Whether it
	// exists, and with the UID that the Pod names, is for its sync to find.
	Owned func(owner cache.ObjectName, initial bool)
	// Orphan is called with a Pod without a controller, of which something changed that could make a
	// set want it.
	Orphan func(pod *v1.Pod, initial bool)
}

// Handler returns the event handler, for worker.Handler's metrics under the controller's name.
func (e PodEvents) Handler(controllerName string) cache.ResourceEventHandler {
	return worker.Handler(controllerName, worker.HandlerFuncs[*v1.Pod]{Add: e.Added, Update: e.Updated, Delete: e.Deleted})
}

// Added is told of a Pod that came.
func (e PodEvents) Added(pod *v1.Pod, initial bool) {
	if e.tellOwner(pod, initial) || pod.DeletionTimestamp != nil {
		return
	}
	if metav1.GetControllerOfNoCopy(pod) == nil {
		e.Orphan(pod, initial)
	}
}

// Updated is told of a Pod that changed. An orphan matters only for what could make a set want it.
func (e PodEvents) Updated(old, cur *v1.Pod) {
	oldOwner, curOwner := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(cur)
	ownerChanged := !SameOwner(oldOwner, curOwner)
	if ownerChanged {
		e.tellOwner(old, false)
	}
	if e.tellOwner(cur, false) || curOwner != nil || cur.DeletionTimestamp != nil {
		return
	}
	if ownerChanged || !maps.Equal(old.Labels, cur.Labels) {
		e.Orphan(cur, false)
	}
}

// Deleted is told of a Pod that went.
func (e PodEvents) Deleted(pod *v1.Pod) { e.tellOwner(pod, false) }

// tellOwner says whether the Pod's controller is of the kind.
func (e PodEvents) tellOwner(pod *v1.Pod, initial bool) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !RefersTo(owner, e.Kind) {
		return false
	}
	e.Owned(cache.NewObjectName(pod.Namespace, owner.Name), initial)
	return true
}

// RefersTo says whether a reference is to an object of the kind, in whatever version.
func RefersTo(ref *metav1.OwnerReference, kind schema.GroupKind) bool {
	if ref.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == kind.Group
}

// SameOwner says whether two references are to the same object, in the same version; nil is to none.
func SameOwner(a, b *metav1.OwnerReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.APIVersion == b.APIVersion && a.Name == b.Name && a.UID == b.UID
}
