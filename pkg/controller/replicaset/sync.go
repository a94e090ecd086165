// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// sync brings one set to the state that its spec asks for.
func (c *ReplicaSetController) sync(ctx context.Context, key cache.ObjectName) error {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	// Before the first read: what is read after this has seen the set's own writes.
	if err := controller.EnsureReady(ctx, c.guard, name, c.metrics.staleSyncSkips); err != nil {
		return err
	}
	set, err := c.kind.Get(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(4).Info("The set has been deleted")
		c.guard.Clear(name, "")
		c.memory.forget(name, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return worker.Terminal(fmt.Errorf("converting the pod selector: %w", err))
	}
	s := &syncer{ReplicaSetController: c, set: set, name: name, selector: selector}
	s.pods = c.podControl(func(pod *v1.Pod) {
		c.guard.WroteAt(name, set.UID, v1.Resource("pods"), pod.ResourceVersion)
	})
	return s.run(ctx)
}

// syncer is one sync of one set.
type syncer struct {
	*ReplicaSetController
	set      *apps.ReplicaSet
	name     types.NamespacedName
	selector labels.Selector
	pods     controller.PodControlInterface
}

func (s *syncer) run(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	state, err := s.observe(ctx)
	if err != nil {
		return err
	}
	plan := makePlan(state)
	manageErr := s.apply(ctx, state, plan)

	// The status is written even after a failure: it says what the failure was.
	status := newStatus(state, plan, manageErr)
	if err := s.writeStatus(ctx, status); err != nil {
		return errors.Join(manageErr, err)
	}
	if manageErr != nil {
		return fmt.Errorf("bringing the number of pods to %d: %w", replicas(s.set), manageErr)
	}
	return s.nextLook(state, plan, status)
}

// observe reads the set's Pods, claims them, and puts together what the plan needs.
func (s *syncer) observe(ctx context.Context) (*state, error) {
	all, err := controller.FilterPodsByOwner(s.podIndexer, &s.set.ObjectMeta, s.Kind, true)
	if err != nil {
		return nil, err
	}
	owned := controller.FilterPods(all, func(pod *v1.Pod) bool { return metav1.IsControlledBy(pod, s.set) })
	alive := sets.New[types.UID]()
	for _, pod := range owned {
		if pod.DeletionTimestamp == nil {
			alive.Insert(pod.UID)
		}
	}
	s.guard.Observe(s.name, alive)

	// Pods whose deletion this controller has requested are on their way out, whatever
	// the cache still says of them.
	leaving := func(pod *v1.Pod) bool { return s.guard.IsDeleting(s.name, pod.UID) }
	active := controller.FilterPods(all, func(pod *v1.Pod) bool { return controller.IsPodActive(pod) && !leaving(pod) })
	claimed, err := s.claim(ctx, active)
	if err != nil {
		return nil, err
	}
	terminating := controller.FilterPods(owned, func(pod *v1.Pod) bool {
		return (controller.IsPodTerminating(pod) || controller.IsPodActive(pod) && leaving(pod)) &&
			s.selector.Matches(labels.Set(pod.Labels))
	})
	observed := &state{
		set:         s.set,
		claimed:     claimed,
		terminating: int32(len(terminating)),
		owned:       owned,
		burst:       s.burst,
		features:    s.features,
		now:         s.clock.Now(),
	}
	if observed.excess() > 0 {
		if observed.related, err = s.relatedPods(s.set); err != nil {
			return nil, err
		}
	}
	return observed, nil
}

// claim adopts and releases. The set is read live before the first adoption: see
// controller.BaseControllerRefManager.
func (s *syncer) claim(ctx context.Context, pods []*v1.Pod) ([]*v1.Pod, error) {
	canAdopt := controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := s.kind.GetLive(ctx, s.set.Namespace, s.set.Name)
		if err != nil {
			return nil, err
		}
		if fresh.UID != s.set.UID {
			return nil, controller.UIDMismatchError(s.Kind, s.set, fresh.UID)
		}
		return fresh, nil
	})
	manager := controller.NewPodControllerRefManager(s.pods, s.set, s.selector, s.GroupVersionKind, canAdopt)
	return manager.ClaimPods(ctx, pods)
}

// relatedPods returns the active Pods that the selector of any set with the same
// controller matches, each once.
func (c *ReplicaSetController) relatedPods(set *apps.ReplicaSet) ([]*v1.Pod, error) {
	siblings, err := c.kind.Siblings(set)
	if err != nil {
		return nil, err
	}
	pods, err := c.podLister.Pods(set.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	selectors := make([]labels.Selector, 0, len(siblings))
	for _, sibling := range siblings {
		selector, err := metav1.LabelSelectorAsSelector(sibling.Spec.Selector)
		if err != nil {
			return nil, worker.Terminal(fmt.Errorf("converting the pod selector of the related set %s: %w", sibling.Name, err))
		}
		selectors = append(selectors, selector)
	}
	return controller.FilterPods(pods, func(pod *v1.Pod) bool {
		if !controller.IsPodActive(pod) {
			return false
		}
		for _, selector := range selectors {
			if selector.Matches(labels.Set(pod.Labels)) {
				return true
			}
		}
		return false
	}), nil
}

// nextLook asks to come back when time alone will have changed something: a Pod becomes
// available, or a delayed creation is due.
func (s *syncer) nextLook(state *state, plan plan, status apps.ReplicaSetStatus) error {
	var next time.Duration
	if s.set.Spec.MinReadySeconds > 0 && status.ReadyReplicas != status.AvailableReplicas {
		next = time.Duration(s.set.Spec.MinReadySeconds) * time.Second
		if at := controller.FindMinNextPodAvailabilityCheck(state.claimed, s.set.Spec.MinReadySeconds, state.now, s.clock); at != nil {
			// Zero means at once, which needs a positive duration to be told from never.
			next = max(*at, time.Millisecond)
		}
	}
	if plan.backoff != nil && plan.backoff.wait > 0 && (next == 0 || plan.backoff.wait < next) {
		next = plan.backoff.wait
	}
	if next == 0 {
		return nil
	}
	return worker.RequeueAfter(next)
}

// syncOrphan enqueues the sets that may adopt a Pod without controller.
func (c *ReplicaSetController) syncOrphan(ctx context.Context, key cache.ObjectName) error {
	pod, err := c.podLister.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if metav1.GetControllerOfNoCopy(pod) != nil || !controller.IsPodActive(pod) {
		return nil
	}
	candidates, err := c.setsSelecting(pod)
	if err != nil {
		return err
	}
	if len(candidates) > 1 {
		// Both will try, and the API server lets one of them.
		klog.FromContext(ctx).Info("User error: more than one set selects the same pod",
			"kind", c.Kind, "pod", klog.KObj(pod), "labels", pod.Labels, "sets", klog.KObjSlice(candidates))
	}
	for _, set := range candidates {
		c.worker.Add(cache.MetaObjectToName(set))
	}
	return nil
}

// setsSelecting returns the sets whose selector matches the Pod.
func (c *ReplicaSetController) setsSelecting(pod *v1.Pod) ([]*apps.ReplicaSet, error) {
	all, err := c.kind.List(pod.Namespace)
	if err != nil {
		return nil, fmt.Errorf("listing from the cache: %w", err)
	}
	var selecting []*apps.ReplicaSet
	for _, set := range all {
		if selects(set, pod.Labels) {
			selecting = append(selecting, set)
		}
	}
	return selecting, nil
}
