// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	clientset "k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/cronjob/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	controllerName = "cronjob-controller"
	// afterStart is how long after a scheduled time a CronJob is looked at: never before it.
	afterStart = 100 * time.Millisecond
	// changeGrace is how old a scheduled time may be when the schedule changes, and still be run:
	// it was about to be.
	changeGrace = time.Second
	// staleRecheck is when a CronJob is looked at again of which the caches do not show the last
	// write yet, its own or somebody else's. Usually the event of that write brings it back sooner.
	staleRecheck = 500 * time.Millisecond
)

var (
	controllerKind  = batch.SchemeGroupVersion.WithKind("CronJob")
	jobKind         = batch.SchemeGroupVersion.WithKind("Job")
	cronJobResource = schema.GroupResource{Group: batch.GroupName, Resource: "cronjobs"}
	jobResource     = schema.GroupResource{Group: batch.GroupName, Resource: "jobs"}
)

// ControllerV2 creates the Jobs of CronJobs. Create it with NewControllerV2.
type ControllerV2 struct {
	client   clientset.Interface
	events   *controller.EventPipeline
	recorder record.EventRecorder
	now      func() time.Time

	cronJobs   batchlisters.CronJobLister
	jobIndexer cache.Indexer // has controller.JobControllerIndex
	synced     []cache.InformerSynced

	guard  *consistency.Guard
	memory *memory
	queue  *worker.Worker[cache.ObjectName]
}

// NewControllerV2 returns a controller that decides from the informers' caches and writes with
// kubeClient. It must be Run, which ends what it holds.
func NewControllerV2(ctx context.Context, jobInformer batchinformers.JobInformer, cronJobsInformer batchinformers.CronJobInformer,
	kubeClient clientset.Interface) (*ControllerV2, error) {
	metrics.Register()
	if err := controller.AddJobControllerIndexer(jobInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of jobs by controller: %w", err)
	}
	events := controller.NewEventPipeline(ctx, kubeClient, controllerName)
	c := &ControllerV2{
		client:     kubeClient,
		events:     events,
		recorder:   events.Recorder(),
		now:        time.Now,
		cronJobs:   cronJobsInformer.Lister(),
		jobIndexer: jobInformer.Informer().GetIndexer(),
		synced:     []cache.InformerSynced{jobInformer.Informer().HasSynced, cronJobsInformer.Informer().HasSynced},
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			cronJobResource: cronJobsInformer.Informer().GetIndexer(),
			jobResource:     jobInformer.Informer().GetIndexer(),
		}),
		memory: newMemory(),
	}
	c.queue = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "cronjob", Sync: c.sync})
	if _, err := cronJobsInformer.Informer().AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*batch.CronJob]{
		Add: func(cj *batch.CronJob, initial bool) { c.queue.AddEvent(cache.MetaObjectToName(cj), initial) },
		// A resync looks at everything anew, as upstream's does.
		Resync: true,
		Update: c.cronJobUpdated,
		Delete: func(cj *batch.CronJob) { c.queue.Add(cache.MetaObjectToName(cj)) },
	})); err != nil {
		return nil, fmt.Errorf("watching cron jobs: %w", err)
	}
	if _, err := jobInformer.Informer().AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*batch.Job]{
		Add:    c.enqueueOwner,
		Update: c.jobUpdated,
		Delete: func(job *batch.Job) { c.enqueueOwner(job, false) },
	})); err != nil {
		return nil, fmt.Errorf("watching jobs: %w", err)
	}
	return c, nil
}

// Run syncs CronJobs with the given number of workers until ctx is done, and returns when
// everything that it started has ended.
func (c *ControllerV2) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, c.synced, c.queue.Runner(workers), c.watchClock)
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *ControllerV2) Workers() []worker.Reporter { return []worker.Reporter{c.queue} }

// enqueueOwner enqueues the CronJob that controls a Job. That it is the one of that name, and not
// its successor, shows in the index from which the sync reads.
func (c *ControllerV2) enqueueOwner(job *batch.Job, initial bool) {
	if key, ok := ownerOf(job); ok {
		c.queue.AddEvent(key, initial)
	}
}

func ownerOf(job *batch.Job) (cache.ObjectName, bool) {
	ref := metav1.GetControllerOfNoCopy(job)
	if ref == nil || ref.Kind != controllerKind.Kind {
		return cache.ObjectName{}, false
	}
	if version, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || version.Group != controllerKind.Group {
		return cache.ObjectName{}, false
	}
	return cache.ObjectName{Namespace: job.Namespace, Name: ref.Name}, true
}

func (c *ControllerV2) jobUpdated(old, cur *batch.Job) {
	before, had := ownerOf(old)
	if after, has := ownerOf(cur); had && (!has || before != after) {
		c.queue.Add(before)
	}
	c.enqueueOwner(cur, false)
}

func (c *ControllerV2) cronJobUpdated(old, cur *batch.CronJob) {
	key := cache.MetaObjectToName(cur)
	if old.UID == cur.UID && (old.Spec.Schedule != cur.Spec.Schedule || !ptr.Equal(old.Spec.TimeZone, cur.Spec.TimeZone)) {
		c.memory.scheduleChanged(key, cur.UID, c.now().Add(-changeGrace))
	}
	c.queue.Add(key)
}

// sync brings one CronJob up to now. It is not called for one key by two goroutines.
func (c *ControllerV2) sync(ctx context.Context, key cache.ObjectName) error {
	// Before the first read: what is read after this has seen the CronJob's own writes.
	err := c.guard.EnsureReady(key.AsNamespacedName())
	if err == nil {
		err = c.syncCached(ctx, key)
	}
	var behind *consistency.StaleError
	if errors.As(err, &behind) || apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(4).Info("Waiting until the cache shows the last write", "reason", err.Error())
		return worker.RequeueAfter(staleRecheck)
	}
	return err
}

func (c *ControllerV2) syncCached(ctx context.Context, key cache.ObjectName) error {
	cj, err := c.cronJobs.CronJobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.memory.forget(key)
		c.guard.Clear(key.AsNamespacedName(), "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading cron job %s from the cache: %w", key, err)
	}
	return c.syncCronJob(ctx, key, cj)
}

// jobsOf returns the Jobs that a CronJob controls.
func (c *ControllerV2) jobsOf(cj *batch.CronJob) ([]*batch.Job, error) {
	objs, err := c.jobIndexer.ByIndex(controller.JobControllerIndex,
		controller.PodControllerIndexKey(cj.Namespace, metav1.NewControllerRef(cj, controllerKind)))
	if err != nil {
		return nil, fmt.Errorf("looking up the jobs of cron job %s: %w", klog.KObj(cj), err)
	}
	jobs := make([]*batch.Job, 0, len(objs))
	for _, obj := range objs {
		if job, ok := obj.(*batch.Job); ok {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}
