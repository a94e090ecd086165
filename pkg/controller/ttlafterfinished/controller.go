// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"context"
	"errors"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	clientset "k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	controllerName = "ttl-after-finished-controller"
	// conflictRetry is when a Job is looked at again that changed between the live read and
	// the deletion.
	conflictRetry = 500 * time.Millisecond
)

// Controller deletes finished Jobs that have expired. Create it with New.
type Controller struct {
	client           clientset.Interface
	jobs             batchlisters.JobLister
	synced           []cache.InformerSynced
	clock            clock.PassiveClock
	deletionDuration *k8smetrics.Histogram
	worker           *worker.Worker[cache.ObjectName]
}

// New returns a controller that reads Jobs from the informer and the client, and deletes
// them with the client. It must be Run, which ends what it holds.
func New(ctx context.Context, jobInformer batchinformers.JobInformer, client clientset.Interface) *Controller {
	c := &Controller{
		client:           client,
		jobs:             jobInformer.Lister(),
		clock:            clock.RealClock{},
		deletionDuration: registeredDeletionDuration(),
	}
	c.worker = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "ttl_jobs_to_delete", Sync: c.sync})
	registration, err := jobInformer.Informer().AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*batch.Job]{
		Add:    c.added,
		Update: func(_, cur *batch.Job) { c.added(cur, false) },
	}))
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not watch jobs", "controller", controllerName)
		return c
	}
	c.synced = []cache.InformerSynced{jobInformer.Informer().HasSynced, registration.HasSynced}
	return c
}

// Run works on the given number of Jobs at a time until ctx is done, and returns when
// everything that it started has ended.
func (c *Controller) Run(ctx context.Context, workers int) {
	worker.Start(ctx, controllerName, c.synced, c.worker.Runner(workers))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *Controller) Workers() []worker.Reporter { return []worker.Reporter{c.worker} }

func (c *Controller) added(job *batch.Job, initial bool) {
	if needsCleanup(job) {
		c.worker.AddEvent(cache.MetaObjectToName(job), initial)
	}
}

// sync deletes a Job that has expired, and asks for a later look at one that will.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	job, err := c.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if _, err := c.whenExpired(ctx, job); err != nil {
		return later(err)
	}
	// The cache may not show yet that somebody raised the TTL.
	fresh, err := c.client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the job before its deletion: %w", err)
	}
	expired, err := c.whenExpired(ctx, fresh)
	if err != nil {
		return later(err)
	}
	return c.deleteJob(ctx, fresh, expired)
}

// whenExpired returns when the Job expired. The error says why it has not: it is what
// worker.RequeueAfter or worker.Terminal returns, or errNoTimeOut.
func (c *Controller) whenExpired(ctx context.Context, job *batch.Job) (time.Time, error) {
	life, err := lifetimeOf(job)
	if errors.Is(err, errNoTimeOut) {
		return time.Time{}, err
	}
	if err != nil {
		return time.Time{}, worker.Terminal(err)
	}
	now := c.clock.Now()
	if life.finished.After(now) {
		klog.FromContext(ctx).Info("The job has finished in the future: clocks differ. It is deleted later",
			"job", klog.KObj(job), "finished", life.finished, "now", now)
	}
	if left := life.left(now); left > 0 {
		klog.FromContext(ctx).V(4).Info("The job has not expired", "job", klog.KObj(job), "finished", life.finished, "expires", life.expires, "left", left)
		return time.Time{}, worker.RequeueAfter(left)
	}
	return life.expires, nil
}

// later turns the reason not to delete a Job into what the worker is told.
func later(reason error) error {
	if errors.Is(reason, errNoTimeOut) {
		return nil // an event brings it back when that changes
	}
	return reason
}

// deleteJob deletes exactly this version of the Job, its Pods first.
func (c *Controller) deleteJob(ctx context.Context, job *batch.Job, expired time.Time) error {
	klog.FromContext(ctx).V(4).Info("Deleting a job that has expired", "job", klog.KObj(job), "expired", expired)
	err := c.client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	})
	switch {
	case err == nil:
		c.deletionDuration.Observe(c.clock.Since(expired).Seconds())
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return worker.RequeueAfter(conflictRetry)
	}
	return fmt.Errorf("deleting the job: %w", err)
}
