// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
)

// BaseControllerRefManager decides which objects belong to one controller object, and
// changes their controller reference to say so. It is made for one sync and thrown
// away: whether the controller may adopt is asked at most once in its life.
type BaseControllerRefManager struct {
	Controller metav1.Object
	Selector   labels.Selector
	// CanAdoptFunc is asked before the first adoption, with a live read of the
	// controller: a cache may not know yet that it is being deleted, and what is adopted
	// then would be deleted with it. nil means that adopting is always right.
	CanAdoptFunc func(ctx context.Context) error

	canAdoptOnce sync.Once
	canAdoptErr  error
}

// CanAdopt returns what CanAdoptFunc said the first time it was asked.
func (m *BaseControllerRefManager) CanAdopt(ctx context.Context) error {
	m.canAdoptOnce.Do(func() {
		if m.CanAdoptFunc != nil {
			m.canAdoptErr = m.CanAdoptFunc(ctx)
		}
	})
	return m.canAdoptErr
}

// ClaimObject says whether obj belongs to the controller now, after adopting or
// releasing it where that was called for. match tells whether the controller wants it.
//
// The error is nil where somebody else was faster (the object is gone, or is another's
// by now): what the watch brings next will settle it. Any other error of adopt or
// release is returned, and the object counts as not owned.
func (m *BaseControllerRefManager) ClaimObject(ctx context.Context, obj metav1.Object, match func(metav1.Object) bool, adopt, release func(context.Context, metav1.Object) error) (bool, error) {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return m.claimOwned(ctx, obj, owner, match, release)
	}
	return m.claimOrphan(ctx, obj, match, adopt)
}

func (m *BaseControllerRefManager) claimOwned(ctx context.Context, obj metav1.Object, owner *metav1.OwnerReference, match func(metav1.Object) bool, release func(context.Context, metav1.Object) error) (bool, error) {
	if owner.UID != m.Controller.GetUID() {
		return false, nil
	}
	if match(obj) {
		return true, nil
	}
	// The garbage collector sees to the dependents of a controller in deletion, and
	// must find them.
	if m.Controller.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if err := release(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	return false, nil
}

func (m *BaseControllerRefManager) claimOrphan(ctx context.Context, obj metav1.Object, match func(metav1.Object) bool, adopt func(context.Context, metav1.Object) error) (bool, error) {
	if m.Controller.GetDeletionTimestamp() != nil || !match(obj) {
		return false, nil
	}
	if obj.GetDeletionTimestamp() != nil {
		return false, nil
	}
	// An owner without a namespace is cluster-scoped, and may own everywhere.
	if ns := m.Controller.GetNamespace(); ns != "" && ns != obj.GetNamespace() {
		return false, nil
	}
	if err := adopt(ctx, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// RecheckDeletionTimestamp returns a CanAdoptFunc that refuses when the live object is
// in deletion. getObject reads it from the API server, and must return an error when
// the object there has another UID (UIDMismatchError words it).
func RecheckDeletionTimestamp(getObject func(context.Context) (metav1.Object, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		obj, err := getObject(ctx)
		if err != nil {
			return fmt.Errorf("can't recheck DeletionTimestamp: %w", err)
		}
		if deleted := obj.GetDeletionTimestamp(); deleted != nil {
			return fmt.Errorf("%v/%v has just been deleted at %v", obj.GetNamespace(), obj.GetName(), deleted)
		}
		return nil
	}
}

// UIDMismatchError is the error of a live read that found another object under the
// name of the one that was expected.
func UIDMismatchError(kind string, original metav1.Object, got types.UID) error {
	return fmt.Errorf("original %s %s/%s is gone: got uid %v, wanted %v", kind, original.GetNamespace(), original.GetName(), got, original.GetUID())
}

// claimer is the part that the ref managers of all kinds share.
type claimer[T metav1.Object] struct {
	BaseControllerRefManager
	controllerKind schema.GroupVersionKind
	finalizers     []string
	word           string // the kind of the objects, for messages
	patch          func(ctx context.Context, namespace, name string, data []byte) error
}

func newClaimer[T metav1.Object](word string, controller metav1.Object, selector labels.Selector, kind schema.GroupVersionKind,
	canAdopt func(context.Context) error, finalizers []string, patch func(ctx context.Context, namespace, name string, data []byte) error) *claimer[T] {
	return &claimer[T]{
		BaseControllerRefManager: BaseControllerRefManager{Controller: controller, Selector: selector, CanAdoptFunc: canAdopt},
		controllerKind:           kind,
		finalizers:               finalizers,
		word:                     word,
		patch:                    patch,
	}
}

// claim sorts out which of the objects belong to the controller, and returns those
// together with the errors of the others.
func (c *claimer[T]) claim(ctx context.Context, objs []T, filters ...func(T) bool) ([]T, error) {
	match := func(obj metav1.Object) bool {
		if !c.Selector.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
		for _, filter := range filters {
			if !filter(obj.(T)) {
				return false
			}
		}
		return true
	}
	var claimed []T
	var errs []error
	for _, obj := range objs {
		ok, err := c.ClaimObject(ctx, obj, match, c.adopt, c.release)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if ok {
			claimed = append(claimed, obj)
		}
	}
	return claimed, utilerrors.NewAggregate(errs)
}

func (c *claimer[T]) adopt(ctx context.Context, obj metav1.Object) error {
	if err := c.CanAdopt(ctx); err != nil {
		return fmt.Errorf("can't adopt %s %v/%v (%v): %w", c.word, obj.GetNamespace(), obj.GetName(), obj.GetUID(), err)
	}
	data, err := adoptPatch(c.Controller, c.controllerKind, obj.GetUID(), c.finalizers...)
	if err != nil {
		return err
	}
	return c.patch(ctx, obj.GetNamespace(), obj.GetName(), data)
}

func (c *claimer[T]) release(ctx context.Context, obj metav1.Object) error {
	klog.FromContext(ctx).V(2).Info("Releasing an object that the selector no longer matches",
		"kind", c.word, "object", klog.KObj(obj), "owner", klog.KObj(c.Controller))
	data, err := GenerateDeleteOwnerRefStrategicMergeBytes(obj.GetUID(), []types.UID{c.Controller.GetUID()}, c.finalizers...)
	if err != nil {
		return err
	}
	err = c.patch(ctx, obj.GetNamespace(), obj.GetName(), data)
	// Gone: nothing to release. Invalid: another object of that name by now (the patch
	// would change its UID), or one without owners; neither is ours.
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// PodControllerRefManager claims Pods for one controller object.
type PodControllerRefManager struct {
	*claimer[*v1.Pod]
}

// NewPodControllerRefManager returns the manager of the Pods of controller, which is
// of the given kind. Finalizers are added to a Pod that is adopted and removed from one
// that is released. See BaseControllerRefManager.CanAdoptFunc for canAdopt.
func NewPodControllerRefManager(podControl PodControlInterface, controller metav1.Object, selector labels.Selector,
	controllerKind schema.GroupVersionKind, canAdopt func(ctx context.Context) error, finalizers ...string) *PodControllerRefManager {
	return &PodControllerRefManager{newClaimer[*v1.Pod]("Pod", controller, selector, controllerKind, canAdopt, finalizers, podControl.PatchPod)}
}

// ClaimPods adopts the orphans among pods that the selector and every filter match,
// releases the owned ones that they do not match, and returns those that belong to the
// controller then. Pods whose claim failed are left out and their errors are returned
// together.
func (m *PodControllerRefManager) ClaimPods(ctx context.Context, pods []*v1.Pod, filters ...func(*v1.Pod) bool) ([]*v1.Pod, error) {
	return m.claim(ctx, pods, filters...)
}

// AdoptPod makes the controller the owner of pod.
func (m *PodControllerRefManager) AdoptPod(ctx context.Context, pod *v1.Pod) error {
	return m.adopt(ctx, pod)
}

// ReleasePod removes the controller from the owners of pod. A Pod that is gone is no error.
func (m *PodControllerRefManager) ReleasePod(ctx context.Context, pod *v1.Pod) error {
	return m.release(ctx, pod)
}

// ReplicaSetControllerRefManager claims ReplicaSets for one controller object.
type ReplicaSetControllerRefManager struct {
	*claimer[*apps.ReplicaSet]
}

// NewReplicaSetControllerRefManager returns the manager of the ReplicaSets of
// controller, which is of the given kind.
func NewReplicaSetControllerRefManager(rsControl RSControlInterface, controller metav1.Object, selector labels.Selector,
	controllerKind schema.GroupVersionKind, canAdopt func(ctx context.Context) error) *ReplicaSetControllerRefManager {
	return &ReplicaSetControllerRefManager{newClaimer[*apps.ReplicaSet]("ReplicaSet", controller, selector, controllerKind, canAdopt, nil, rsControl.PatchReplicaSet)}
}

// ClaimReplicaSets is ClaimPods for ReplicaSets.
func (m *ReplicaSetControllerRefManager) ClaimReplicaSets(ctx context.Context, sets []*apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	return m.claim(ctx, sets)
}

// AdoptReplicaSet makes the controller the owner of rs.
func (m *ReplicaSetControllerRefManager) AdoptReplicaSet(ctx context.Context, rs *apps.ReplicaSet) error {
	return m.adopt(ctx, rs)
}

// ReleaseReplicaSet removes the controller from the owners of rs.
func (m *ReplicaSetControllerRefManager) ReleaseReplicaSet(ctx context.Context, rs *apps.ReplicaSet) error {
	return m.release(ctx, rs)
}

// ControllerRevisionControllerRefManager claims ControllerRevisions for one controller object.
type ControllerRevisionControllerRefManager struct {
	*claimer[*apps.ControllerRevision]
}

// NewControllerRevisionControllerRefManager returns the manager of the
// ControllerRevisions of controller, which is of the given kind.
func NewControllerRevisionControllerRefManager(crControl ControllerRevisionControlInterface, controller metav1.Object, selector labels.Selector,
	controllerKind schema.GroupVersionKind, canAdopt func(ctx context.Context) error) *ControllerRevisionControllerRefManager {
	return &ControllerRevisionControllerRefManager{newClaimer[*apps.ControllerRevision]("ControllerRevision", controller, selector, controllerKind, canAdopt, nil, crControl.PatchControllerRevision)}
}

// ClaimControllerRevisions is ClaimPods for ControllerRevisions.
func (m *ControllerRevisionControllerRefManager) ClaimControllerRevisions(ctx context.Context, histories []*apps.ControllerRevision) ([]*apps.ControllerRevision, error) {
	return m.claim(ctx, histories)
}

// AdoptControllerRevision makes the controller the owner of history.
func (m *ControllerRevisionControllerRefManager) AdoptControllerRevision(ctx context.Context, history *apps.ControllerRevision) error {
	return m.adopt(ctx, history)
}

// ReleaseControllerRevision removes the controller from the owners of history.
func (m *ControllerRevisionControllerRefManager) ReleaseControllerRevision(ctx context.Context, history *apps.ControllerRevision) error {
	return m.release(ctx, history)
}

// The UID in both patches is their precondition: it names the object that was seen, and
// the API server refuses to change the UID of another.

type ownerRefPatch struct {
	Metadata ownerRefPatchMeta `json:"metadata"`
}

type ownerRefPatchMeta struct {
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	UID             types.UID               `json:"uid"`
	Finalizers      []string                `json:"finalizers,omitempty"`
}

func adoptPatch(controller metav1.Object, kind schema.GroupVersionKind, uid types.UID, finalizers ...string) ([]byte, error) {
	return json.Marshal(ownerRefPatch{Metadata: ownerRefPatchMeta{
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(controller, kind)},
		UID:             uid,
		Finalizers:      finalizers,
	}})
}

type deleteOwnerRefPatch struct {
	Metadata deleteOwnerRefPatchMeta `json:"metadata"`
}

type deleteOwnerRefPatchMeta struct {
	UID              types.UID        `json:"uid"`
	OwnerReferences  []deleteOwnerRef `json:"ownerReferences"`
	DeleteFinalizers []string         `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

type deleteOwnerRef struct {
	Patch string    `json:"$patch"`
	UID   types.UID `json:"uid"`
}

// GenerateDeleteOwnerRefStrategicMergeBytes returns the strategic merge patch that
// removes the owners with these UIDs, and the finalizers, from the object whose UID is
// dependentUID.
func GenerateDeleteOwnerRefStrategicMergeBytes(dependentUID types.UID, ownerUIDs []types.UID, finalizers ...string) ([]byte, error) {
	refs := make([]deleteOwnerRef, 0, len(ownerUIDs))
	for _, uid := range ownerUIDs {
		refs = append(refs, deleteOwnerRef{Patch: "delete", UID: uid})
	}
	return json.Marshal(deleteOwnerRefPatch{Metadata: deleteOwnerRefPatchMeta{
		UID:              dependentUID,
		OwnerReferences:  refs,
		DeleteFinalizers: finalizers,
	}})
}
