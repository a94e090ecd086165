// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// moreRetry is when to go on with Pods that found no place among the uncounted ones.
const moreRetry = 20 * time.Millisecond

// oldJobRetry is when to look again whether the cache shows the Job as the manager before this
// one has left it. Mostly the event that brings it enqueues the Job before.
const oldJobRetry = time.Second

// sync brings one Job on.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	if key.Namespace == "" || key.Name == "" {
		return worker.Terminal(fmt.Errorf("invalid job key %q: either namespace or name is missing", key))
	}
	c.behind() // remembers that others wait
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	// Before the first read: what is read after this has seen the Job's own writes.
	if err := controller.EnsureReady(ctx, c.guard, name, metrics.StaleSyncSkips); err != nil {
		return err
	}
	job, err := c.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.guard.Clear(name, "")
		c.memory.forget(name, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	switch {
	case externalController(job) != "":
		return nil
	case jobutil.IsJobFinished(job):
		c.memory.forget(name, job.UID)
		return nil
	case !knownCompletionMode(job):
		reportUnknownCompletionMode(c.recorder, job)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return worker.Terminal(fmt.Errorf("converting the pod selector: %w", err))
	}
	s := &syncer{Controller: c, job: job, name: name, selector: selector, memory: c.memory.of(name, job.UID), action: metrics.JobSyncActionReconciling}
	s.pods = c.podControl(s.wrotePod)
	return s.metered(ctx)
}

func knownCompletionMode(job *batch.Job) bool {
	mode := job.Spec.CompletionMode
	return mode == nil || *mode == batch.NonIndexedCompletion || *mode == batch.IndexedCompletion
}

// syncer is one sync of one Job.
type syncer struct {
	*Controller
	job      *batch.Job
	name     types.NamespacedName
	selector labels.Selector
	memory   *jobMemory
	pods     controller.PodControlInterface
	// action is what the sync did, for the metrics.
	action string
}

func (s *syncer) wrotePod(pod *v1.Pod) {
	s.guard.WroteAt(s.name, s.job.UID, v1.Resource("pods"), pod.ResourceVersion)
}

// metered runs the sync and records how it went.
func (s *syncer) metered(ctx context.Context) error {
	start := s.clock.Now()
	wait, err := s.run(ctx)
	result := "success"
	if err != nil {
		result = "error"
	}
	metrics.JobSyncDurationSeconds.WithLabelValues(completionMode(s.job), result, s.action).Observe(s.clock.Since(start).Seconds())
	metrics.JobSyncNum.WithLabelValues(completionMode(s.job), result, s.action).Inc()
	if err == nil && wait > 0 {
		return worker.RequeueAfter(wait)
	}
	return err
}

// run returns when to sync again although nothing failed; 0 when only an event needs that.
func (s *syncer) run(ctx context.Context) (time.Duration, error) {
	if wait, err := s.awaitJob(ctx); err != nil || wait > 0 {
		return wait, err
	}
	all, wait, err := s.listPods(ctx)
	if err != nil || wait > 0 {
		return wait, err
	}
	pods, err := s.claim(ctx, all)
	if err != nil {
		return 0, fmt.Errorf("claiming pods: %w", err)
	}
	state := &state{
		settings:       s.settings(),
		job:            s.job,
		pods:           pods,
		leaving:        func(uid types.UID) bool { return s.guard.IsDeleting(s.name, uid) },
		backoff:        s.memory.backoff,
		noReplacements: s.namespaceTerminating(),
		now:            s.clock.Now(),
	}
	census := takeCensus(state)
	plan := makePlan(state, census)
	out := s.apply(ctx, state, census, plan)
	tracking := makeTracking(state, census, plan, out)
	// The status is written even after a failure: what did happen is to be in it.
	ended, err := s.track(ctx, state, census, tracking)
	if out.err != nil || err != nil {
		return 0, errors.Join(out.err, err)
	}
	switch {
	case ended:
		return 0, nil
	case tracking.more:
		plan.waitFor(moreRetry)
	case len(tracking.status.UncountedTerminatedPods.Succeeded)+len(tracking.status.UncountedTerminatedPods.Failed) > 0:
		// They are counted with what else has happened by then.
		plan.waitFor(SyncJobBatchPeriod)
	}
	return plan.wait, nil
}

// awaitJob returns how long to wait because the Job may be older than what the manager before this
// one has written: Pods that are counted in its newer status have lost the finalizer, and would be
// missed, and replaced.
func (s *syncer) awaitJob(ctx context.Context) (time.Duration, error) {
	if s.memory.current {
		return 0, nil
	}
	version, err := s.barrier.version(ctx, s.client)
	if err != nil {
		return 0, err
	}
	var newest *batch.Job
	if consistency.Newer(version, s.jobIndexer.LastStoreSyncResourceVersion()) {
		newest, err = s.client.BatchV1().Jobs(s.job.Namespace).Get(ctx, s.job.Name, metav1.GetOptions{})
	} else {
		// The cache may have come that far only after this sync has read from it.
		newest, err = s.jobs.Jobs(s.job.Namespace).Get(s.job.Name)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("looking whether the cache shows the newest job: %w", err)
	}
	if err != nil || newest.ResourceVersion != s.job.ResourceVersion {
		return oldJobRetry, nil
	}
	s.memory.current = true
	return 0, nil
}

// listPods returns the Job's Pods and the orphans of its namespace, or how long to wait
// before that can be told.
func (s *syncer) listPods(ctx context.Context) ([]*v1.Pod, time.Duration, error) {
	m := s.memory
	if !m.unsettled.IsZero() {
		if since := s.clock.Since(m.unsettled); since < settleDelay {
			return nil, settleDelay - since, nil
		}
		return s.listLive(ctx)
	}
	if !m.trusted {
		known, err := s.cacheKnows(ctx)
		if err != nil {
			return nil, 0, err
		}
		if !known {
			return s.listLive(ctx)
		}
		m.trusted, m.doubtUntil = true, ""
	}
	pods, err := controller.FilterPodsByOwner(s.podIndexer, &s.job.ObjectMeta, controllerKind.Kind, true)
	if err != nil {
		return nil, 0, err
	}
	s.observe(pods)
	return pods, 0, nil
}

// cacheKnows says whether the cache of Pods has seen all that was written before this
// manager led, or, after a live list, all that was in it. Two watches fill the caches of
// Jobs and Pods: the one of Pods could still show them as they were before the manager
// before this one counted them, and they would be counted again.
func (s *syncer) cacheKnows(ctx context.Context) (bool, error) {
	version := s.memory.doubtUntil
	if version == "" {
		var err error
		if version, err = s.barrier.version(ctx, s.client); err != nil {
			return false, err
		}
	}
	return !consistency.Newer(version, s.podIndexer.LastStoreSyncResourceVersion()), nil
}

// listLive reads the Pods from the API server. The cache is believed again when it shows
// the same, or has come as far as the list.
func (s *syncer) listLive(ctx context.Context) ([]*v1.Pod, time.Duration, error) {
	list, err := s.client.CoreV1().Pods(s.job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.selector.String()})
	if err != nil {
		return nil, 0, fmt.Errorf("listing pods: %w", err)
	}
	var pods []*v1.Pod
	owned := map[types.UID]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		if metav1.IsControlledBy(pod, s.job) {
			owned[pod.UID] = pod.ResourceVersion
		} else if metav1.GetControllerOfNoCopy(pod) != nil {
			continue
		}
		pods = append(pods, pod)
		if pod.DeletionTimestamp == nil {
			// Its deletion, if it was requested, has not happened.
			s.guard.DeleteFailed(s.name, pod.UID)
		}
	}
	cached, err := controller.FilterPodsByOwner(s.podIndexer, &s.job.ObjectMeta, controllerKind.Kind, false)
	if err != nil {
		return nil, 0, err
	}
	same := len(cached) == len(owned)
	for _, pod := range cached {
		same = same && owned[pod.UID] == pod.ResourceVersion
	}
	s.memory.trusted, s.memory.doubtUntil, s.memory.unsettled = same, list.ResourceVersion, time.Time{}
	s.observe(pods)
	return pods, 0, nil
}

// observe lets the guard forget deletions that have been seen.
func (s *syncer) observe(pods []*v1.Pod) {
	alive := sets.New[types.UID]()
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			alive.Insert(pod.UID)
		}
	}
	s.guard.Observe(s.name, alive)
}

// claim adopts and releases Pods. An adopted one gets the finalizer, and a released one
// loses it. The Job is read live before the first adoption: see
// controller.BaseControllerRefManager.
func (s *syncer) claim(ctx context.Context, pods []*v1.Pod) ([]*v1.Pod, error) {
	canAdopt := controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := s.client.BatchV1().Jobs(s.job.Namespace).Get(ctx, s.job.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != s.job.UID {
			return nil, controller.UIDMismatchError(controllerKind.Kind, s.job, fresh.UID)
		}
		return fresh, nil
	})
	manager := controller.NewPodControllerRefManager(s.pods, s.job, s.selector, controllerKind, canAdopt, batch.JobTrackingFinalizer)
	claimed, err := manager.ClaimPods(ctx, pods)
	for i, pod := range claimed {
		if metav1.GetControllerOfNoCopy(pod) == nil && !isTracked(pod) {
			// As the patch has made it.
			claimed[i] = pod.DeepCopy()
			claimed[i].Finalizers = append(claimed[i].Finalizers, batch.JobTrackingFinalizer)
		}
	}
	return claimed, err
}

// namespaceTerminating says whether the namespace takes no Pods any more.
func (s *syncer) namespaceTerminating() bool {
	refused := s.memory.namespaceTerminating
	return !refused.IsZero() && s.clock.Since(refused) < terminatingMemory
}
