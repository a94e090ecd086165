// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	clientset "k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

const controllerName = "job-controller"

// controllerKind is what owner references to a Job say.
var controllerKind = batch.SchemeGroupVersion.WithKind("Job")

// Upstream's numbers under upstream's names. They are variables because tests written for
// upstream's package change them; NewController and each sync read them.
var (
	// SyncJobBatchPeriod is how long the changes of a Job's Pods are gathered before its sync.
	SyncJobBatchPeriod = time.Second
	// DefaultJobApiBackOff and MaxJobApiBackOff are the first and the longest delay after a sync
	// that failed.
	//lint:ignore ST1003 upstream's name
	DefaultJobApiBackOff = time.Second
	//lint:ignore ST1003 upstream's name
	MaxJobApiBackOff = time.Minute
	// DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff are the first and the longest
	// delay before a Pod that has failed is replaced.
	DefaultJobPodFailureBackOff = 10 * time.Second
	MaxJobPodFailureBackOff     = 10 * time.Minute
	// MaxUncountedPods bounds the Pods that a status lists as ended but not counted.
	MaxUncountedPods = 500
	// MaxPodCreateDeletePerSync bounds the Pods that one sync creates, or deletes.
	MaxPodCreateDeletePerSync = 500
)

// goneOwners is how many Jobs that are known to be gone are remembered.
const goneOwners = 4096

// Controller runs Jobs. Create it with NewController.
type Controller struct {
	client     clientset.Interface
	jobs       batchlisters.JobLister
	pods       corelisters.PodLister
	jobIndexer cache.Indexer
	podIndexer cache.Indexer
	synced     []cache.InformerSynced

	guard   *consistency.Guard
	memory  *memory
	barrier barrier
	gone    *lru.Cache // UIDs of Jobs that are known to be gone
	clock   clock.Clock
	// resetStartTime is the gate MutableSchedulingDirectivesForSuspendedJobs.
	resetStartTime bool

	events   *controller.EventPipeline
	recorder record.EventRecorder
	// podControl returns the pod control for one sync. onWrite is to be called with every Pod
	// it has written. Tests replace it.
	podControl func(onWrite func(*v1.Pod)) controller.PodControlInterface

	// lastWaited is when a Job was last seen to wait for a worker, in nanoseconds since 1970.
	lastWaited atomic.Int64

	worker  *worker.Worker[cache.ObjectName]
	orphans *worker.Worker[orphanKey]
}

// NewController returns a controller that reads from the informers and writes with the
// client. It must be Run, which ends what it holds. The last two are upstream's, for its
// alpha gate WorkloadWithJob, and are not used: see the package documentation.
func NewController(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer, jobInformer batchinformers.JobInformer,
	_ schedulinginformers.WorkloadInformer, _ schedulinginformers.PodGroupInformer) (*Controller, error) {
	return newController(ctx, kubeClient, podInformer, jobInformer, clock.RealClock{})
}

func newController(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer, jobInformer batchinformers.JobInformer, clock clock.WithTicker) (*Controller, error) {
	metrics.Register()
	if err := controller.AddPodControllerIndexer(podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("indexing pods by their controller: %w", err)
	}
	jobIndexer, podIndexer := jobInformer.Informer().GetIndexer(), podInformer.Informer().GetIndexer()
	c := &Controller{
		client:     kubeClient,
		jobs:       jobInformer.Lister(),
		pods:       podInformer.Lister(),
		jobIndexer: jobIndexer,
		podIndexer: podIndexer,
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			v1.Resource("pods"):    podIndexer,
			batch.Resource("jobs"): jobIndexer,
		}, consistency.WithClock(clock)),
		memory:         newMemory(),
		gone:           lru.New(goneOwners),
		clock:          clock,
		resetStartTime: features.Enabled(features.MutableSchedulingDirectivesForSuspendedJobs),
		events:         controller.NewEventPipeline(ctx, kubeClient, controllerName),
	}
	c.recorder = c.events.Recorder()
	c.podControl = func(onWrite func(*v1.Pod)) controller.PodControlInterface {
		return controller.RealPodControl{
			KubeClient: kubeClient,
			Recorder:   c.recorder,
			OnWrite:    func(pod *v1.Pod, _ *metav1.OwnerReference) { onWrite(pod) },
		}
	}
	c.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: controllerName, Queue: "job", Sync: c.sync, Clock: clock, RateLimiter: apiBackoff[cache.ObjectName](),
	})
	c.orphans = worker.New(worker.Options[orphanKey]{
		Controller: controllerName, Queue: "job_orphan_pod", Sync: c.syncOrphan, Clock: clock, RateLimiter: apiBackoff[orphanKey](),
	})
	if err := c.addHandlers(jobInformer, podInformer); err != nil {
		c.end(ctx)
		return nil, err
	}
	return c, nil
}

// end releases what the queues of a controller hold that will not be run.
func (c *Controller) end(ctx context.Context) {
	done, cancel := context.WithCancel(ctx)
	cancel()
	c.worker.Run(done, 0)
	c.orphans.Run(done, 0)
}

func apiBackoff[K comparable]() workqueue.TypedRateLimiter[K] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[K](DefaultJobApiBackOff, MaxJobApiBackOff)
}

func (c *Controller) addHandlers(jobs batchinformers.JobInformer, pods coreinformers.PodInformer) error {
	if err := c.watch(jobs.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*batch.Job]{
		Add: c.jobAdded, Update: c.jobUpdated, Delete: c.jobDeleted,
	})); err != nil {
		return fmt.Errorf("watching jobs: %w", err)
	}
	if err := c.watch(pods.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*v1.Pod]{
		Add: c.podAdded, Update: c.podUpdated, Delete: c.podDeleted,
	})); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// watch adds a handler, and makes Run wait until it has had the initial list.
func (c *Controller) watch(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	c.synced = append(c.synced, informer.HasSynced, registration.HasSynced)
	return nil
}

// Workers returns the controller's workers, for health and debug pages.
func (c *Controller) Workers() []worker.Reporter {
	return []worker.Reporter{c.worker, c.orphans}
}

// Run works on the given number of Jobs, and on as many Pods without a Job, at a time until
// ctx is done, and returns when all that it started has ended. It may be called once.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, c.synced, c.worker.Runner(workers), c.orphans.Runner(workers))
	})
}

// settings reads the numbers for one sync.
func (c *Controller) settings() settings {
	return settings{
		podBackoff:      DefaultJobPodFailureBackOff,
		maxPodBackoff:   MaxJobPodFailureBackOff,
		maxUncounted:    MaxUncountedPods,
		maxCreateDelete: MaxPodCreateDeletePerSync,
		resetStartTime:  c.resetStartTime,
	}
}

// externalController is the controller that a Job is left to; "" when it is this one.
func externalController(job *batch.Job) string {
	if by := job.Spec.ManagedBy; by != nil && *by != batch.JobControllerName {
		return *by
	}
	return ""
}

func nameOf(job *batch.Job) types.NamespacedName {
	return types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
}
