// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

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
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// syncer is one sync of one set.
type syncer struct {
	*StatefulSetController
	set      *apps.StatefulSet
	name     types.NamespacedName
	selector labels.Selector
	memory   *setMemory
}

// sync brings one set to the state that its spec asks for.
func (c *StatefulSetController) sync(ctx context.Context, key cache.ObjectName) error {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	// Before the first read: what is read after this has seen the set's own writes.
	if err := controller.EnsureReady(ctx, c.guard, name, c.metrics.staleSyncSkips); err != nil {
		return err
	}
	set, err := c.setLister.StatefulSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(4).Info("The set has been deleted")
		c.forget(name, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return worker.Terminal(fmt.Errorf("converting the pod selector: %w", err))
	}
	s := &syncer{StatefulSetController: c, set: set, name: name, selector: selector, memory: c.memories.of(name, set.UID)}
	return s.run(ctx)
}

// wrote remembers the version of an object that the set's sync has written.
func (s *syncer) wrote(resource schema.GroupResource, obj metav1.Object) {
	s.guard.WroteAt(s.name, s.set.UID, resource, obj.GetResourceVersion())
}

func (s *syncer) run(ctx context.Context) error {
	if err := s.checkStrategy(); err != nil {
		return err
	}
	all, err := s.readRevisions(ctx)
	if err != nil {
		return err
	}
	pods, err := s.claimPods(ctx)
	if err != nil {
		return err
	}
	s.observe(pods, all)
	r, err := s.chooseRevisions(ctx, all)
	if err != nil {
		return err
	}
	status, next, err := s.manage(ctx, pods, r)
	// An old revision goes even after a failure, which may be one that lasts.
	if truncateErr := s.truncateHistory(ctx, r, pods); truncateErr != nil {
		err = errors.Join(err, truncateErr)
	}
	if err != nil {
		return err
	}
	return s.nextLook(pods, status, next)
}

// manage plans, does what is planned, and writes the status, even after a failure. It
// returns the status, and when to look again.
func (s *syncer) manage(ctx context.Context, pods []*v1.Pod, r *revisions) (*apps.StatefulSetStatus, time.Duration, error) {
	state := newState(s.set, pods, s.isGoing, s.claimInCache)
	state.current, state.update = r.current.Name, r.update.Name
	state.gates, state.now = s.gates, s.clock.Now()
	var err error
	if state.maxUnavailable, err = maxUnavailable(s.set); err != nil {
		return nil, 0, worker.Terminal(err)
	}
	s.show(state)
	plan := makePlan(state)
	s.tell(plan)
	manageErr := s.apply(ctx, state, plan, r)
	status := newStatus(state, plan.condition, r.collisionCount)
	if err := s.writeStatus(ctx, status); err != nil {
		return nil, 0, errors.Join(manageErr, err)
	}
	return &status, plan.lookAgain, manageErr
}

// checkStrategy refuses an update strategy that its feature gate keeps away.
func (s *syncer) checkStrategy() error {
	if s.set.Spec.UpdateStrategy.Type != apps.RecreateStatefulSetStrategyType || s.gates.recreate {
		return nil
	}
	err := fmt.Errorf("statefulset %s/%s uses Recreate strategy but feature gate %s is disabled", s.set.Namespace, s.set.Name, recreateGate)
	s.recorder.Event(s.set, v1.EventTypeWarning, unknownStrategyReason, err.Error())
	return worker.Terminal(err)
}

// show puts what the set may leave unavailable, and what is, into the metrics.
func (s *syncer) show(state *state) {
	if !s.gates.maxUnavailable {
		return
	}
	labels := []string{s.set.Namespace, s.set.Name, string(s.set.Spec.PodManagementPolicy)}
	s.metrics.maxUnavailable.WithLabelValues(labels...).Set(float64(state.maxUnavailable))
	s.metrics.unavailable.WithLabelValues(labels...).Set(float64(state.unavailable()))
}

// claimPods returns the Pods that belong to the set, after adopting and releasing.
func (s *syncer) claimPods(ctx context.Context) ([]*v1.Pod, error) {
	all, err := controller.FilterPodsByOwner(s.podIndexer, &s.set.ObjectMeta, controllerKind.Kind, true)
	if err != nil {
		return nil, err
	}
	control := controller.RealPodControl{
		KubeClient: s.client,
		Recorder:   s.recorder,
		OnWrite:    func(pod *v1.Pod, _ *metav1.OwnerReference) { s.wrote(v1.Resource("pods"), pod) },
	}
	manager := controller.NewPodControllerRefManager(control, s.set, s.selector, controllerKind, s.canAdopt)
	return manager.ClaimPods(ctx, all, func(pod *v1.Pod) bool { return isMemberOf(s.set, pod) })
}

// observe lets the guard forget the deletions that the cache shows by now.
func (s *syncer) observe(pods []*v1.Pod, revisions []*apps.ControllerRevision) {
	there := sets.New[types.UID]()
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			there.Insert(pod.UID)
		}
	}
	for _, revision := range revisions {
		there.Insert(revision.UID)
	}
	s.guard.Observe(s.name, there)
}

func (s *syncer) isGoing(pod *v1.Pod) bool {
	return pod.DeletionTimestamp != nil || s.guard.IsDeleting(s.name, pod.UID)
}

// claimInCache returns the claim of that name; nil when there is none.
func (s *syncer) claimInCache(name string) *v1.PersistentVolumeClaim {
	held, err := s.claimLister.PersistentVolumeClaims(s.set.Namespace).Get(name)
	if err != nil {
		return nil // a cache knows no other error than that it is not there
	}
	return held
}

// nextLook asks to come back when time alone will have changed something: a Pod becomes
// available, or has been waited for too long.
func (s *syncer) nextLook(pods []*v1.Pod, status *apps.StatefulSetStatus, next time.Duration) error {
	if s.set.Spec.MinReadySeconds > 0 && status.ReadyReplicas != status.AvailableReplicas {
		wait := time.Duration(s.set.Spec.MinReadySeconds) * time.Second
		if at := controller.FindMinNextPodAvailabilityCheck(pods, s.set.Spec.MinReadySeconds, s.clock.Now(), s.clock); at != nil {
			// Zero means at once, which needs a positive duration to be told from never.
			wait = max(*at, time.Millisecond)
		}
		if next == 0 || wait < next {
			next = wait
		}
	}
	if next == 0 {
		return nil
	}
	return worker.RequeueAfter(next)
}
