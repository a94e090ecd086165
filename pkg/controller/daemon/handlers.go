// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func (c *DaemonSetsController) watch(daemonSets, revisions, pods, nodes cache.SharedIndexInformer) error {
	podEvents := controller.PodEvents{Kind: controllerKind.GroupKind(), Owned: c.podOwnerChanged, Orphan: c.orphanChanged}
	for _, w := range []struct {
		of       string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"daemon sets", daemonSets, worker.Handler(controllerName, worker.HandlerFuncs[*apps.DaemonSet]{
			Add: c.daemonSetAdded, Update: c.daemonSetUpdated, Delete: c.daemonSetDeleted,
		})},
		{"controller revisions", revisions, worker.Handler(controllerName, worker.HandlerFuncs[*apps.ControllerRevision]{
			Add: func(r *apps.ControllerRevision, initial bool) {
				if !initial {
					c.revisionChanged(r)
				}
			},
			Update: func(old, cur *apps.ControllerRevision) { c.revisionChanged(old); c.revisionChanged(cur) },
			Delete: c.revisionChanged,
		})},
		{"pods", pods, podEvents.Handler(controllerName)},
		{"nodes", nodes, worker.Handler(controllerName, worker.HandlerFuncs[*v1.Node]{
			Add: c.nodeAdded, Update: c.nodeUpdated, Delete: func(node *v1.Node) { c.nodeUpdates.Add(node.Name) },
		})},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watching %s: %w", w.of, err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return nil
}

func (c *DaemonSetsController) daemonSetAdded(ds *apps.DaemonSet, initial bool) {
	c.queue.AddEvent(cache.MetaObjectToName(ds), initial)
}

func (c *DaemonSetsController) daemonSetUpdated(old, cur *apps.DaemonSet) {
	if old.UID != cur.UID {
		// Deleted and made anew under its name, and the watch brought it as one event.
		c.forget(cache.MetaObjectToName(old), old.UID)
	}
	c.queue.Add(cache.MetaObjectToName(cur))
}

func (c *DaemonSetsController) daemonSetDeleted(ds *apps.DaemonSet) {
	c.forget(cache.MetaObjectToName(ds), ds.UID)
	c.queue.Add(cache.MetaObjectToName(ds))
}

// revisionChanged enqueues a revision's owner: it may have to make another. Orphans are adopted when
// the DaemonSet is synced for another reason; they matter only to a history that is looked at.
func (c *DaemonSetsController) revisionChanged(revision *apps.ControllerRevision) {
	owner := metav1.GetControllerOfNoCopy(revision)
	if owner != nil && controller.RefersTo(owner, controllerKind.GroupKind()) {
		c.batched.Add(cache.NewObjectName(revision.Namespace, owner.Name))
	}
}

func (c *DaemonSetsController) podOwnerChanged(owner cache.ObjectName, initial bool) {
	if initial {
		c.queue.AddInitial(owner)
		return
	}
	c.batched.Add(owner)
}

func (c *DaemonSetsController) orphanChanged(pod *v1.Pod, initial bool) {
	c.orphans.AddEvent(cache.MetaObjectToName(pod), initial)
}

// syncOrphan enqueues the DaemonSets that may adopt a Pod without controller.
func (c *DaemonSetsController) syncOrphan(_ context.Context, key cache.ObjectName) error {
	pod, err := c.podLister.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if metav1.GetControllerOfNoCopy(pod) != nil || pod.DeletionTimestamp != nil {
		return nil
	}
	all, err := c.daemonSets.DaemonSets(key.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing from the cache: %w", err)
	}
	for _, ds := range all {
		selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.queue.Add(cache.MetaObjectToName(ds))
		}
	}
	return nil
}

func (c *DaemonSetsController) nodeAdded(node *v1.Node, initial bool) {
	if !initial { // the first sync of each DaemonSet looks at all nodes
		c.nodeUpdates.Add(node.Name)
	}
}

// nodeUpdated passes over what no verdict depends on: a node's status is written every few seconds.
func (c *DaemonSetsController) nodeUpdated(old, cur *v1.Node) {
	if equality.Semantic.DeepEqual(old.Labels, cur.Labels) && equality.Semantic.DeepEqual(old.Spec.Taints, cur.Spec.Taints) {
		return
	}
	c.nodeUpdates.Add(cur.Name)
}

// syncNode enqueues the DaemonSets for which the node is not as it should be.
func (c *DaemonSetsController) syncNode(ctx context.Context, name string) error {
	owners, err := c.ownersOn(name)
	if err != nil {
		return err
	}
	all, err := c.daemonSets.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing daemon sets from the cache: %w", err)
	}
	node, err := c.nodes.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	gone := err != nil
	logger := klog.FromContext(ctx)
	for _, ds := range all {
		has := owners[ds.UID]
		if gone {
			if has || ds.Status.DesiredNumberScheduled > 0 {
				c.batched.Add(cache.MetaObjectToName(ds)) // one node less counts in the status
			}
			continue
		}
		v := c.predicates.of(ds, c.comparisons).judge(logger, node)
		if v.wants != has || (has && ds.Status.NumberMisscheduled > 0) {
			c.batched.Add(cache.MetaObjectToName(ds))
		}
	}
	return nil
}

// ownersOn returns the UIDs of the DaemonSets that have Pods on the node.
func (c *DaemonSetsController) ownersOn(node string) (map[types.UID]bool, error) {
	objs, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, node)
	if err != nil {
		return nil, fmt.Errorf("looking up the pods on node %s: %w", node, err)
	}
	owners := map[types.UID]bool{}
	for _, obj := range objs {
		pod, ok := obj.(*v1.Pod)
		if !ok {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && controller.RefersTo(owner, controllerKind.GroupKind()) {
			owners[owner.UID] = true
		}
	}
	return owners, nil
}
