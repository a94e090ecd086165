// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
)

// apply carries out the plan and returns the first error as it came: users read its text in
// the condition ReplicaFailure, as upstream writes it.
func (s *syncer) apply(ctx context.Context, state *state, plan plan) error {
	logger := klog.FromContext(ctx)
	s.reportBackoff(ctx, plan)
	switch {
	case plan.create > 0:
		logger.V(2).Info("Too few replicas", "need", replicas(s.set), "creating", plan.create)
		return s.createPods(ctx, plan.create, state.now)
	case len(plan.remove) > 0:
		logger.V(2).Info("Too many replicas", "need", replicas(s.set), "deleting", len(plan.remove))
		for _, ratio := range deletionAgeRatios(state.claimed, plan.remove, state.now) {
			s.metrics.deletionAgeRatio.Observe(ratio)
		}
		return s.deletePods(ctx, plan.remove)
	}
	return nil
}

// reportBackoff tells once, when the condition is about to tell it, that creating Pods is
// being slowed down.
func (s *syncer) reportBackoff(ctx context.Context, plan plan) {
	if plan.backoff == nil {
		return
	}
	klog.FromContext(ctx).V(2).Info("Creating pods with growing delay: they fail at once", "wait", plan.backoff.wait, "lastFailed", klog.KObj(plan.backoff.last))
	if GetCondition(s.set.Status, apps.ReplicaSetReplicaFailure) == nil {
		s.recorder.Event(s.kind.Object(s.set), v1.EventTypeWarning, podsFailingReason, plan.backoff.String())
	}
}

// createPods creates count Pods, few at first. What one batch could not create, the
// next ones do not try.
func (s *syncer) createPods(ctx context.Context, count int, now time.Time) error {
	refused := s.memory.of(s.name, s.set.UID).namespaceTerminating
	if !refused.IsZero() && now.Sub(refused) < terminatingMemory {
		return nil
	}
	ref := metav1.NewControllerRef(s.set, s.GroupVersionKind)
	created, err := controller.SlowStartBatch(ctx, count, controller.SlowStartInitialBatchSize, func(ctx context.Context, _ int) error {
		err := s.pods.CreatePods(ctx, s.set.Namespace, &s.set.Spec.Template, s.kind.Object(s.set), ref)
		if controller.OutcomeUnknown(err) {
			s.memory.createUnknown(s.name, s.set.UID, s.clock.Now())
		}
		return err
	})
	if err == nil {
		return nil
	}
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		// No failure of the set's: it will be deleted, and every further Pod is refused too.
		klog.FromContext(ctx).V(2).Info("Not creating pods in a namespace that is being deleted")
		s.memory.refusedByNamespace(s.name, s.set.UID, s.clock.Now())
		return nil
	}
	klog.FromContext(ctx).V(2).Info("Could not create all pods", "wanted", count, "created", created)
	return err
}

// deletePods deletes the Pods all at once, and returns the first error.
func (s *syncer) deletePods(ctx context.Context, pods []*v1.Pod) error {
	for _, pod := range pods {
		s.guard.Deleting(s.name, s.set.UID, pod.UID)
	}
	errs := make([]error, len(pods))
	var wg sync.WaitGroup
	for i, pod := range pods {
		wg.Go(func() { errs[i] = s.deletePod(ctx, pod) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *syncer) deletePod(ctx context.Context, pod *v1.Pod) error {
	err := s.pods.DeletePodByUID(ctx, pod, s.kind.Object(s.set))
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		// Gone already, as was wanted; the cache will show it.
		return nil
	case controller.OutcomeUnknown(err):
		s.memory.deleteUnknown(s.name, s.set.UID, pod.UID, s.clock.Now())
		return err
	default:
		s.guard.DeleteFailed(s.name, pod.UID)
		return err
	}
}

// settle finds out what became of requests of unknown outcome, before anything is
// decided from a cache that may not show it yet: a create that did happen must not be
// repeated, and a Pod whose deletion happened must not be counted. The Pods are listed
// live. Those that are there become the barrier that the cache has to pass; of those
// that were to be deleted, the ones that are still there unharmed count again.
func (s *syncer) settle(ctx context.Context) error {
	remembered := s.memory.of(s.name, s.set.UID)
	if remembered.unsettled.IsZero() {
		return nil
	}
	if since := s.clock.Since(remembered.unsettled); since < settleDelay {
		return fmt.Errorf("waiting %v before looking what became of a request that got no answer", settleDelay-since)
	}
	live, err := s.client.CoreV1().Pods(s.set.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.selector.String()})
	if err != nil {
		return fmt.Errorf("looking what became of a request that got no answer: %w", err)
	}
	newest := ""
	for i := range live.Items {
		pod := &live.Items[i]
		if !metav1.IsControlledBy(pod, s.set) {
			continue
		}
		if newest == "" || consistency.Newer(pod.ResourceVersion, newest) {
			newest = pod.ResourceVersion
		}
		if _, ok := remembered.undead[pod.UID]; ok && pod.DeletionTimestamp == nil {
			s.guard.DeleteFailed(s.name, pod.UID)
		}
	}
	s.guard.WroteAt(s.name, s.set.UID, v1.Resource("pods"), newest)
	s.memory.settled(s.name, s.set.UID)
	return controller.EnsureReady(ctx, s.guard, s.name, s.metrics.staleSyncSkips)
}

// statusTries is how often a status is written before the sync fails.
const statusTries = 2

// writeStatus writes the status if it differs from the one the set has. When somebody
// else was faster, it is tried once more on what is there by then.
func (s *syncer) writeStatus(ctx context.Context, status apps.ReplicaSetStatus) error {
	set := s.set
	for try := 1; statusDiffers(set, status); try++ {
		klog.FromContext(ctx).V(4).Info("Updating the status", "from", set.Status, "to", status, "generation", set.Generation)
		next := *set
		next.Status = status
		written, err := s.kind.UpdateStatus(ctx, &next)
		if err == nil {
			s.guard.WroteAt(s.name, s.set.UID, s.kind.GroupResource(), written.ResourceVersion)
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if try == statusTries {
			return fmt.Errorf("updating the status: %w", err)
		}
		if set, err = s.kind.GetLive(ctx, s.set.Namespace, s.set.Name); err != nil {
			return fmt.Errorf("reading the set to update its status: %w", err)
		}
		if set.UID != s.set.UID {
			return nil // another one, which has a sync of its own
		}
		// The next sync is to start from no older state than this: the first write may have
		// been carried out after all.
		s.guard.WroteAt(s.name, s.set.UID, s.kind.GroupResource(), set.ResourceVersion)
	}
	return nil
}
