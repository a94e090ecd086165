// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	// maxUntrackDelay is how long after its Job's end a Pod may keep the finalizer because other
	// Jobs wait.
	maxUntrackDelay = 30 * time.Second
	// untrackRetry is when to look again whether they still wait. It is also for how long none may
	// have waited: Jobs come in waves.
	untrackRetry = time.Second
)

// orphanKey names one Pod that may have no Job, or all Pods of a Job that goes on no more.
type orphanKey struct {
	namespace, name string
	// job is the UID of the Job of that name whose Pods are meant; empty for one Pod.
	job types.UID
}

// String is for logs.
func (k orphanKey) String() string {
	if k.job != "" {
		return fmt.Sprintf("%s/%s (pods of job %s)", k.namespace, k.name, k.job)
	}
	return k.namespace + "/" + k.name
}

func onePod(pod *v1.Pod) orphanKey { return orphanKey{namespace: pod.Namespace, name: pod.Name} }

func podsOfJob(job *batch.Job) orphanKey {
	return orphanKey{namespace: job.Namespace, name: job.Name, job: job.UID}
}

// syncOrphan takes the finalizer off Pods that no Job counts any more, and enqueues Jobs
// that may adopt a Pod.
func (c *Controller) syncOrphan(ctx context.Context, key orphanKey) error {
	if key.job != "" {
		return c.syncPodsOfJob(ctx, key)
	}
	pod, err := c.pods.Pods(key.namespace).Get(key.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if mayBeAdopted(pod) {
		c.enqueueAdopters(ctx, pod)
	}
	if !isTracked(pod) {
		return nil
	}
	counted, err := c.mayBeCounted(ctx, pod)
	if err != nil || counted {
		return err
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if err := c.seesWritesOf(ctx, pod.Namespace, owner.Name); err != nil {
			return err
		}
	}
	if err := c.removeFinalizer(ctx, c.podControl(func(*v1.Pod) {}), pod); err != nil {
		return fmt.Errorf("removing the finalizer of a pod without job: %w", err)
	}
	return nil
}

// syncPodsOfJob takes the finalizer off all Pods of a Job that goes on no more; those that do not
// lose it are tried again one by one. The Pods of a Job that has just finished, which nobody waits
// for, give way to the Jobs that go on. One that is deleted meanwhile does not wait: podUpdated
// enqueues it.
func (c *Controller) syncPodsOfJob(ctx context.Context, key orphanKey) error {
	if c.behindLately() && c.hasJustFinished(key) {
		return worker.RequeueAfter(untrackRetry)
	}
	if err := c.seesWritesOf(ctx, key.namespace, key.name); err != nil {
		return err
	}
	owned, err := controller.FilterPodsByOwner(c.podIndexer, &metav1.ObjectMeta{Namespace: key.namespace, Name: key.name, UID: key.job}, controllerKind.Kind, false)
	if err != nil {
		return err
	}
	pods := controller.FilterPods(owned, isTracked)
	if len(pods) == 0 {
		return nil
	}
	if counted, err := c.mayBeCounted(ctx, pods[0]); err != nil || counted {
		return err
	}
	control := c.podControl(func(pod *v1.Pod) {
		c.guard.WroteAt(types.NamespacedName{Namespace: key.namespace, Name: key.name}, key.job, v1.Resource("pods"), pod.ResourceVersion)
	})
	failed := false
	for i, err := range inParallel(len(pods), func(i int) error { return c.removeFinalizer(ctx, control, pods[i]) }) {
		if err != nil {
			failed = true
			klog.FromContext(ctx).Error(err, "Could not remove the finalizer of a pod without job, will retry", "pod", klog.KObj(pods[i]))
			c.orphans.AddRateLimited(onePod(pods[i]))
		}
	}
	if failed {
		return nil
	}
	// Once the cache shows that, the guard may forget it.
	return worker.RequeueAfter(untrackRetry)
}

// seesWritesOf returns an error while the caches do not show what was written for the Job: its last
// sync may have taken the finalizer off already.
func (c *Controller) seesWritesOf(ctx context.Context, namespace, job string) error {
	return controller.EnsureReady(ctx, c.guard, types.NamespacedName{Namespace: namespace, Name: job}, metrics.StaleSyncSkips)
}

// behind says whether Jobs wait for a worker.
func (c *Controller) behind() bool {
	if c.worker.Len() == 0 {
		return false
	}
	c.lastWaited.Store(c.clock.Now().UnixNano())
	return true
}

// behindLately says whether Jobs wait or were seen to wait within untrackRetry.
func (c *Controller) behindLately() bool {
	return c.behind() || c.clock.Since(time.Unix(0, c.lastWaited.Load())) < untrackRetry
}

func (c *Controller) hasJustFinished(key orphanKey) bool {
	job, err := c.jobs.Jobs(key.namespace).Get(key.name)
	if err != nil || job.UID != key.job {
		return false
	}
	finished, end := jobutil.FinishedCondition(job)
	return finished && c.clock.Since(findCondition(job.Status.Conditions, end).LastTransitionTime.Time) < maxUntrackDelay
}

// mayBeCounted says whether somebody may still want to count the Pod: its Job, or another
// kind of owner, which has the finalizer for reasons of its own.
func (c *Controller) mayBeCounted(ctx context.Context, pod *v1.Pod) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false, nil
	}
	if !isJob(owner) {
		return true, nil
	}
	job, err := c.jobs.Jobs(pod.Namespace).Get(owner.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading from the cache: %w", err)
	}
	if err != nil || job.UID != owner.UID {
		// The cache of Jobs may be older than that of Pods, and not have it yet.
		if job, err = c.liveOwner(ctx, pod.Namespace, owner); err != nil || job == nil {
			return false, err
		}
	}
	return externalController(job) != "" || !jobutil.IsJobFinished(job), nil
}

// liveOwner reads the Job from the API server, unless it is known to be gone; nil when it is.
func (c *Controller) liveOwner(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*batch.Job, error) {
	if _, gone := c.gone.Get(owner.UID); gone {
		return nil, nil
	}
	job, err := c.client.BatchV1().Jobs(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("looking whether job %s is gone: %w", owner.Name, err)
	}
	if err != nil || job.UID != owner.UID {
		c.gone.Add(owner.UID, struct{}{})
		return nil, nil
	}
	return job, nil
}

// enqueueAdopters enqueues the Jobs whose selector matches the Pod.
func (c *Controller) enqueueAdopters(ctx context.Context, pod *v1.Pod) {
	jobs, err := c.jobs.Jobs(pod.Namespace).List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not list jobs from the cache", "namespace", pod.Namespace)
		return
	}
	for _, job := range jobs {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.worker.Add(cache.MetaObjectToName(job))
		}
	}
}
