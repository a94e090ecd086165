// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// syncer is one sync of one DaemonSet.
type syncer struct {
	*DaemonSetsController
	ds       *apps.DaemonSet
	name     types.NamespacedName
	selector labels.Selector
	control  controller.PodControlInterface
}

// sync brings one DaemonSet to the state that its spec asks for.
func (c *DaemonSetsController) sync(ctx context.Context, key cache.ObjectName) error {
	name := key.AsNamespacedName()
	// Before the first read: what is read after this has seen the DaemonSet's own writes.
	if err := controller.EnsureReady(ctx, c.guard, name, c.metrics.staleSyncSkips); err != nil {
		return err
	}
	ds, err := c.daemonSets.DaemonSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if selectsEverything(ds) {
		c.recorder.Event(ds, v1.EventTypeWarning, selectingAllReason, "This daemon set is selecting all pods. A non-empty selector is required.")
		return nil
	}
	if ds.DeletionTimestamp != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return worker.Terminal(fmt.Errorf("converting the pod selector: %w", err))
	}
	s := &syncer{DaemonSetsController: c, ds: ds, name: name, selector: selector}
	s.control = controller.RealPodControl{
		KubeClient: c.client,
		Recorder:   c.recorder,
		OnWrite:    func(pod *v1.Pod, _ *metav1.OwnerReference) { s.wrote(podResource, pod) },
	}
	return s.run(ctx)
}

func selectsEverything(ds *apps.DaemonSet) bool {
	return ds.Spec.Selector != nil && len(ds.Spec.Selector.MatchLabels)+len(ds.Spec.Selector.MatchExpressions) == 0
}

// wrote remembers the version of an object that the sync has written.
func (s *syncer) wrote(resource schema.GroupResource, obj metav1.Object) {
	s.guard.WroteAt(s.name, s.ds.UID, resource, obj.GetResourceVersion())
}

func (s *syncer) run(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	pods, err := s.claimPods(ctx)
	if err != nil {
		return err
	}
	r, err := s.readRevisions(ctx, pods)
	if err != nil {
		return err
	}
	state, err := s.observe(ctx, pods, r)
	if err != nil {
		return err
	}
	p, err := makePlan(state)
	if err == nil {
		err = s.apply(ctx, state, p, r.hash())
	}
	// The rest is done even after a failure: a quota that refuses Pods hides no status (#112127).
	err = errors.Join(err, s.truncateHistory(ctx, r, pods), s.writeStatus(ctx, newStatus(state, s.ds.Status.CollisionCount)))
	if err != nil {
		return err
	}
	return s.nextLook(state, p)
}

// canAdopt reads the DaemonSet live: one that is being deleted adopts nothing.
func (s *syncer) canAdopt(ctx context.Context) error {
	return controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := s.client.AppsV1().DaemonSets(s.ds.Namespace).Get(ctx, s.ds.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != s.ds.UID {
			return nil, controller.UIDMismatchError(controllerKind.Kind, s.ds, fresh.UID)
		}
		return fresh, nil
	})(ctx)
}

// claimPods returns the Pods of the DaemonSet, after adopting and releasing.
func (s *syncer) claimPods(ctx context.Context) ([]*v1.Pod, error) {
	all, err := controller.FilterPodsByOwner(s.podIndexer, &s.ds.ObjectMeta, controllerKind.Kind, true)
	if err != nil {
		return nil, err
	}
	manager := controller.NewPodControllerRefManager(s.control, s.ds, s.selector, controllerKind, s.canAdopt)
	return manager.ClaimPods(ctx, all)
}

// observe judges the nodes and sorts the Pods by them.
func (s *syncer) observe(ctx context.Context, pods []*v1.Pod, r *revisions) (*state, error) {
	alive := sets.New[types.UID]()
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			alive.Insert(pod.UID)
		}
	}
	for _, revision := range r.old {
		alive.Insert(revision.UID)
	}
	s.guard.Observe(s.name, alive)
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing nodes from the cache: %w", err)
	}
	predicate, logger := s.predicates.of(s.ds, s.comparisons), klog.FromContext(ctx)
	verdicts := make(map[string]verdict, len(nodes))
	for _, node := range nodes {
		verdicts[node.Name] = predicate.judge(logger, node)
	}
	going := func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp != nil || s.guard.IsDeleting(s.name, pod.UID)
	}
	state := newState(s.ds, verdicts, pods, r.hash(), templateGeneration(s.ds), going, s.clock.Now())
	for _, node := range state.nodes {
		node.backoff = s.backoffOf(node)
	}
	return state, nil
}

// templateGeneration is nil, too, when the annotation does not parse.
func templateGeneration(ds *apps.DaemonSet) *int64 {
	generation, err := util.GetTemplateGeneration(ds)
	if err != nil {
		return nil
	}
	return generation
}

// nextLook asks to come back when time alone will have changed something.
func (s *syncer) nextLook(state *state, p plan) error {
	next := p.lookAgain
	if s.ds.Spec.MinReadySeconds > 0 {
		var pods []*v1.Pod
		for _, node := range state.nodes {
			for _, pod := range node.pods {
				pods = append(pods, pod.Pod)
			}
		}
		if at := controller.FindMinNextPodAvailabilityCheck(pods, s.ds.Spec.MinReadySeconds, state.now, s.clock); at != nil {
			// Zero means at once, which needs a positive duration to be told from never.
			if wait := max(*at, time.Millisecond); next == 0 || wait < next {
				next = wait
			}
		}
	}
	if next == 0 {
		return nil
	}
	return worker.RequeueAfter(next)
}
