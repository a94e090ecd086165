// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
)

// statusTries is how often a status is written before the sync fails.
const statusTries = 2

// apply creates and deletes what is planned.
func (s *syncer) apply(ctx context.Context, state *state, p plan, hash string) error {
	s.report(p)
	for _, pod := range p.failed {
		if node, err := util.GetTargetNodeName(pod); err == nil {
			s.backoff.Next(s.backoffKey(node), s.clock.Now())
		}
	}
	if len(p.create)+len(p.remove) > 0 {
		klog.FromContext(ctx).V(4).Info("Syncing pods", "create", len(p.create), "delete", len(p.remove))
	}
	return errors.Join(s.createPods(ctx, p.create, hash), s.deletePods(ctx, p.remove))
}

// createPods creates a Pod for each node, few at first. What one batch could not create, the next ones
// do not try.
func (s *syncer) createPods(ctx context.Context, nodes []string, hash string) error {
	if len(nodes) == 0 {
		return nil
	}
	template := util.CreatePodTemplate(s.ds.Spec.Template, templateGeneration(s.ds), hash)
	ref := metav1.NewControllerRef(s.ds, controllerKind)
	_, err := controller.SlowStartBatch(ctx, len(nodes), controller.SlowStartInitialBatchSize, func(ctx context.Context, i int) error {
		own := template
		own.Spec.Affinity = util.ReplaceDaemonSetPodNodeNameNodeAffinity(template.Spec.Affinity.DeepCopy(), nodes[i])
		err := s.control.CreatePods(ctx, s.ds.Namespace, &own, s.ds, ref)
		if controller.OutcomeUnknown(err) {
			s.unsettled.add(s.name, s.ds.UID)
		}
		return err
	})
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		return nil // the DaemonSet will be deleted, and every further Pod is refused too
	}
	if err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	return nil
}

func (s *syncer) deletePods(ctx context.Context, pods []*v1.Pod) error {
	errs := make([]error, len(pods))
	var wg sync.WaitGroup
	for i, pod := range pods {
		s.guard.Deleting(s.name, s.ds.UID, pod.UID)
		wg.Go(func() { errs[i] = s.deletePod(ctx, pod) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *syncer) deletePod(ctx context.Context, pod *v1.Pod) error {
	err := s.control.DeletePodByUID(ctx, pod, s.ds)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case controller.OutcomeUnknown(err):
		s.unsettled.add(s.name, s.ds.UID)
	default:
		s.guard.DeleteFailed(s.name, pod.UID)
	}
	return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
}

func (s *syncer) relabel(ctx context.Context, pod *v1.Pod, patch []byte) error {
	updated, err := s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("labelling pod %s: %w", pod.Name, err)
	}
	s.wrote(podResource, updated)
	return nil
}

// settle waits, after a request of which nobody knows whether it was carried out, until the cache shows
// all Pods that a live look finds: a node must not get two, and no more Pods may go than a roll-out
// allows. Pods that were to be deleted and are there unharmed count again.
func (s *syncer) settle(ctx context.Context) error {
	if !s.unsettled.has(s.name, s.ds.UID) {
		return nil
	}
	live, err := s.client.CoreV1().Pods(s.ds.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.selector.String()})
	if err != nil {
		return fmt.Errorf("looking what became of a request that got no answer: %w", err)
	}
	newest := ""
	for i := range live.Items {
		pod := &live.Items[i]
		if !metav1.IsControlledBy(pod, s.ds) {
			continue
		}
		if newest == "" || consistency.Newer(pod.ResourceVersion, newest) {
			newest = pod.ResourceVersion
		}
		if pod.DeletionTimestamp == nil {
			s.guard.DeleteFailed(s.name, pod.UID)
		}
	}
	s.guard.WroteAt(s.name, s.ds.UID, podResource, newest)
	s.unsettled.remove(s.name)
	return controller.EnsureReady(ctx, s.guard, s.name, s.metrics.staleSyncSkips)
}

// writeStatus writes the status if it differs from the one the DaemonSet has. When somebody else was
// faster, it is tried once more on what is there by then.
func (s *syncer) writeStatus(ctx context.Context, status apps.DaemonSetStatus) error {
	ds := s.ds
	for try := 1; statusDiffers(ds.Status, status); try++ {
		next := *ds
		next.Status = status
		written, err := s.client.AppsV1().DaemonSets(ds.Namespace).UpdateStatus(ctx, &next, metav1.UpdateOptions{})
		if err == nil {
			s.wrote(daemonSetResource, written)
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if try == statusTries {
			return fmt.Errorf("updating the status: %w", err)
		}
		if ds, err = s.client.AppsV1().DaemonSets(s.ds.Namespace).Get(ctx, s.ds.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the daemon set to update its status: %w", err)
		}
		if ds.UID != s.ds.UID {
			return nil // another one, which has a sync of its own
		}
		status.CollisionCount = ds.Status.CollisionCount
	}
	return nil
}

// backoffKey names the failures of one version of the DaemonSet on one node.
func (s *syncer) backoffKey(node string) string {
	return fmt.Sprintf("%s/%d/%s", s.ds.UID, s.ds.Status.ObservedGeneration, node)
}

// backoffOf returns how long failed Pods of the node are still kept.
func (s *syncer) backoffOf(node *nodeState) time.Duration {
	for _, pod := range node.pods {
		if pod.Status.Phase != v1.PodFailed {
			continue
		}
		key, now := s.backoffKey(node.name), s.clock.Now()
		if s.backoff.IsInBackOffSinceUpdate(key, now) {
			return max(s.backoff.Get(key), time.Millisecond)
		}
		return 0
	}
	return 0
}
