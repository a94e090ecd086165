// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func (dc *DeploymentController) addHandlers(deployments, replicaSets, pods cache.SharedIndexInformer) error {
	if _, err := deployments.AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*apps.Deployment]{
		Add:    func(d *apps.Deployment, initial bool) { dc.enqueue(d, initial) },
		Update: func(_, cur *apps.Deployment) { dc.enqueue(cur, false) },
		Delete: func(d *apps.Deployment) { dc.enqueue(d, false) },
		Resync: true,
	})); err != nil {
		return fmt.Errorf("deployments: %w", err)
	}
	if _, err := replicaSets.AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*apps.ReplicaSet]{
		Add:    dc.replicaSetAdded,
		Update: dc.replicaSetUpdated,
		Delete: dc.replicaSetDeleted,
	})); err != nil {
		return fmt.Errorf("replica sets: %w", err)
	}
	if _, err := pods.AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*v1.Pod]{
		Delete: dc.podDeleted,
	})); err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	return nil
}

func (dc *DeploymentController) enqueue(d *apps.Deployment, initial bool) {
	key := cache.MetaObjectToName(d)
	dc.queue.AddEvent(key, initial)
}

func (dc *DeploymentController) replicaSetAdded(rs *apps.ReplicaSet, initial bool) {
	// A restarted manager may meet a ReplicaSet first when it is being deleted already.
	if rs.DeletionTimestamp != nil {
		dc.replicaSetDeleted(rs)
		return
	}
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		dc.enqueueOwner(rs.Namespace, ref, initial)
		return
	}
	key := cache.MetaObjectToName(rs)
	dc.orphans.AddEvent(key, initial)
}

func (dc *DeploymentController) replicaSetUpdated(old, cur *apps.ReplicaSet) {
	curRef, oldRef := metav1.GetControllerOfNoCopy(cur), metav1.GetControllerOfNoCopy(old)
	refChanged := !apiequality.Semantic.DeepEqual(curRef, oldRef)
	if refChanged && oldRef != nil {
		dc.enqueueOwner(old.Namespace, oldRef, false)
	}
	if curRef != nil {
		dc.enqueueOwner(cur.Namespace, curRef, false)
		return
	}
	if refChanged || !apiequality.Semantic.DeepEqual(cur.Labels, old.Labels) {
		dc.orphans.Add(cache.MetaObjectToName(cur))
	}
}

func (dc *DeploymentController) replicaSetDeleted(rs *apps.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		dc.enqueueOwner(rs.Namespace, ref, false)
	}
}

// podDeleted wakes a Deployment that may wait with its new pods until the old ones are gone.
func (dc *DeploymentController) podDeleted(pod *v1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != replicaSetKind.Kind {
		return
	}
	rs, err := dc.rsLister.ReplicaSets(pod.Namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID {
		return
	}
	d := dc.resolve(rs.Namespace, metav1.GetControllerOfNoCopy(rs))
	if d != nil && d.Spec.Strategy.Type == apps.RecreateDeploymentStrategyType {
		dc.enqueue(d, false)
	}
}

func (dc *DeploymentController) enqueueOwner(namespace string, ref *metav1.OwnerReference, initial bool) {
	if d := dc.resolve(namespace, ref); d != nil {
		dc.enqueue(d, initial)
	}
}

// resolve returns the Deployment to which a controller reference points, nil when it points to
// something else or to a former object of the name.
func (dc *DeploymentController) resolve(namespace string, ref *metav1.OwnerReference) *apps.Deployment {
	if ref == nil || ref.Kind != controllerKind.Kind {
		return nil
	}
	d, err := dc.deployments.Deployments(namespace).Get(ref.Name)
	if err != nil || d.UID != ref.UID {
		return nil
	}
	return d
}

// syncOrphan wakes the Deployments that may adopt a ReplicaSet. It is a queue of its own because it
// matches selectors over the namespace, which a handler must not.
func (dc *DeploymentController) syncOrphan(ctx context.Context, key cache.ObjectName) error {
	rs, err := dc.rsLister.ReplicaSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if metav1.GetControllerOfNoCopy(rs) != nil || rs.DeletionTimestamp != nil || len(rs.Labels) == 0 {
		return nil
	}
	deployments, err := dc.deployments.Deployments(key.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, d := range deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Skipping a deployment whose selector does not parse", "deployment", klog.KObj(d), "err", err)
			continue
		}
		if !selector.Empty() && selector.Matches(labels.Set(rs.Labels)) {
			dc.enqueue(d, false)
		}
	}
	return nil
}
