// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"maps"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
)

func (c *Controller) jobAdded(job *batch.Job, initial bool) {
	if external := externalController(job); external != "" {
		metrics.JobByExternalControllerTotal.WithLabelValues(external).Inc()
		return
	}
	c.worker.AddEvent(cache.MetaObjectToName(job), initial)
}

func (c *Controller) jobUpdated(old, cur *batch.Job) {
	if old.UID != cur.UID {
		// Deleted and made anew under its name, and the watch brought it as one event.
		c.jobDeleted(old)
		c.jobAdded(cur, false)
		return
	}
	switch {
	case jobutil.IsJobFinished(cur):
		// Its sync has nothing to do any more. Pods that still have the finalizer lose it.
		c.memory.forget(nameOf(cur), cur.UID)
		c.orphans.Add(podsOfJob(cur))
	case old.Generation == cur.Generation:
		c.worker.AddAfter(cache.MetaObjectToName(cur), SyncJobBatchPeriod)
	default:
		c.worker.Add(cache.MetaObjectToName(cur))
	}
}

func (c *Controller) jobDeleted(job *batch.Job) {
	c.guard.Clear(nameOf(job), job.UID)
	c.memory.forget(nameOf(job), job.UID)
	c.gone.Add(job.UID, struct{}{})
	c.orphans.Add(podsOfJob(job))
}

func (c *Controller) podAdded(pod *v1.Pod, initial bool) {
	recordTracked(nil, pod)
	owner := metav1.GetControllerOfNoCopy(pod)
	if initial {
		// The Jobs of the initial list are enqueued themselves.
		if isTracked(pod) && !c.isActiveJob(pod.Namespace, owner) || mayBeAdopted(pod) {
			c.orphans.AddInitial(onePod(pod))
		}
		return
	}
	c.enqueueOwner(pod, owner)
	if mayBeAdopted(pod) {
		c.orphans.Add(onePod(pod))
	}
}

func (c *Controller) podUpdated(old, cur *v1.Pod) {
	if old.UID != cur.UID {
		c.podDeleted(old)
		c.podAdded(cur, false)
		return
	}
	recordTracked(old, cur)
	oldOwner, owner := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(cur)
	ownerChanged := !controller.SameOwner(oldOwner, owner)
	if ownerChanged {
		c.enqueueOwner(old, oldOwner)
	}
	labelsChanged := !maps.Equal(old.Labels, cur.Labels)
	if ownerChanged || labelsChanged || concernsJob(old, cur) {
		c.enqueueOwner(cur, owner)
	}
	if (ownerChanged || labelsChanged) && mayBeAdopted(cur) {
		c.orphans.Add(onePod(cur))
	}
}

func (c *Controller) podDeleted(pod *v1.Pod) {
	recordTracked(pod, nil)
	if owner := metav1.GetControllerOfNoCopy(pod); isJob(owner) && !c.hasFinished(pod.Namespace, owner) {
		c.worker.AddAfter(cache.NewObjectName(pod.Namespace, owner.Name), SyncJobBatchPeriod)
	}
}

// concernsJob says whether a change of a Pod can change anything about its Job.
func concernsJob(old, cur *v1.Pod) bool {
	return old.Status.Phase != cur.Status.Phase || podutil.IsPodTerminal(cur) ||
		(old.DeletionTimestamp == nil) != (cur.DeletionTimestamp == nil) || cur.DeletionTimestamp != nil ||
		isTracked(old) != isTracked(cur) || podutil.IsPodReady(old) != podutil.IsPodReady(cur) ||
		podRestarts(old) != podRestarts(cur)
}

// enqueueOwner enqueues the Pod's Job for a sync with what else happens to its Pods within
// the batch period, unless it has finished. Where the cache has no such Job that goes on, a Pod with finalizer goes
// to the orphans; what that Pod really is, their sync finds out.
func (c *Controller) enqueueOwner(pod *v1.Pod, owner *metav1.OwnerReference) {
	if isJob(owner) && !c.hasFinished(pod.Namespace, owner) {
		c.worker.AddAfter(cache.NewObjectName(pod.Namespace, owner.Name), SyncJobBatchPeriod)
	}
	if isTracked(pod) && !c.isActiveJob(pod.Namespace, owner) {
		c.orphans.Add(onePod(pod))
	}
}

// isActiveJob says whether the owner is a Job that the cache has and that has not finished.
// It is one look into the cache, by name.
func (c *Controller) isActiveJob(namespace string, owner *metav1.OwnerReference) bool {
	if !isJob(owner) {
		return false
	}
	job, err := c.jobs.Jobs(namespace).Get(owner.Name)
	return err == nil && job.UID == owner.UID && !jobutil.IsJobFinished(job)
}

// hasFinished says whether the owner is a Job that the cache has and that has finished.
func (c *Controller) hasFinished(namespace string, owner *metav1.OwnerReference) bool {
	job, err := c.jobs.Jobs(namespace).Get(owner.Name)
	return err == nil && job.UID == owner.UID && jobutil.IsJobFinished(job)
}

func isJob(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == controllerKind.Kind && owner.APIVersion == batch.SchemeGroupVersion.String()
}

// mayBeAdopted says whether a Job might want the Pod: it has no controller.
func mayBeAdopted(pod *v1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) == nil && pod.DeletionTimestamp == nil && len(pod.Labels) > 0
}

// recordTracked counts Pods that have ended with the finalizer, and those that have then
// lost it. A Pod that is not there, before or after, is nil.
func recordTracked(old, cur *v1.Pod) {
	was := old != nil && podutil.IsPodTerminal(old) && isTracked(old)
	is := cur != nil && podutil.IsPodTerminal(cur) && isTracked(cur)
	switch {
	case is && !was:
		metrics.TerminatedPodsTrackingFinalizerTotal.WithLabelValues(metrics.Add).Inc()
	case was && !is:
		metrics.TerminatedPodsTrackingFinalizerTotal.WithLabelValues(metrics.Delete).Inc()
	}
}
