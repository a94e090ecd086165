// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/api/v1/endpoints"
	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	name           = "endpoints-controller"
	eventComponent = "endpoint-controller"
	// maxRetries is how often a Service that fails is retried before it waits for its next event.
	maxRetries = 15
	// staleRetry is when to look again after a cache that has not seen the last write, in case that
	// its event does not bring the Service back.
	staleRetry = 1 * time.Second
)

var resource = schema.GroupResource{Resource: "endpoints"}

// Controller keeps Endpoints. Create it with NewEndpointController.
type Controller struct {
	client          clientset.Interface
	serviceLister   corelisters.ServiceLister
	endpointsLister corelisters.EndpointsLister
	synced          worker.Synced

	selectors          *selectorindex.Services
	selected           *selectorindex.Pods
	guard              *consistency.Guard
	waiting            consistency.Waiting
	triggerTimeTracker *endpointsliceutil.TriggerTimeTracker
	events             *controller.EventPipeline
	eventRecorder      record.EventRecorder

	// syncHandler is syncService, but for tests that watch the queue.
	syncHandler func(ctx context.Context, key cache.ObjectName) error

	services *worker.Worker[cache.ObjectName]
	batches  *worker.Batcher[cache.ObjectName] // before services
	pods     *worker.Worker[selectorindex.Change]
}

// NewEndpointController returns a controller of Endpoints. It must be Run, which ends what it holds.
func NewEndpointController(ctx context.Context, podInformer coreinformers.PodInformer, serviceInformer coreinformers.ServiceInformer,
	endpointsInformer coreinformers.EndpointsInformer, client clientset.Interface, endpointUpdatesBatchPeriod time.Duration) *Controller {
	return newController(ctx, sources{podInformer, serviceInformer, endpointsInformer}, client,
		options{batchPeriod: endpointUpdatesBatchPeriod, clock: clock.RealClock{}})
}

// sources are the informers that a controller reads from.
type sources struct {
	pods      coreinformers.PodInformer
	services  coreinformers.ServiceInformer
	endpoints coreinformers.EndpointsInformer
}

type options struct {
	batchPeriod time.Duration
	clock       clock.WithTicker
	// recorder takes the events. Default: the controller's own pipeline.
	recorder record.EventRecorder
}

func newController(ctx context.Context, from sources, client clientset.Interface, opts options) *Controller {
	c := &Controller{
		client:             client,
		serviceLister:      from.services.Lister(),
		endpointsLister:    from.endpoints.Lister(),
		selectors:          selectorindex.NewServices(),
		guard:              consistency.NewGuard(map[schema.GroupResource]consistency.Reader{resource: from.endpoints.Informer().GetIndexer()}),
		triggerTimeTracker: endpointsliceutil.NewTriggerTimeTracker(),
		events:             controller.NewEventPipeline(ctx, client, eventComponent),
		eventRecorder:      opts.recorder,
	}
	if c.eventRecorder == nil {
		c.eventRecorder = c.events.Recorder()
	}
	var err error
	if c.selected, err = selectorindex.NewPods(from.pods.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods", "controller", name)
	}
	c.syncHandler = c.syncService
	c.services = worker.New(worker.Options[cache.ObjectName]{
		Controller: name, Queue: "endpoint", Clock: opts.clock, MaxRetries: maxRetries,
		Sync: func(ctx context.Context, key cache.ObjectName) error { return c.syncHandler(ctx, key) },
	})
	c.batches = worker.NewBatcher(c.services, opts.batchPeriod)
	c.pods = worker.New(worker.Options[selectorindex.Change]{Controller: name, Sync: c.syncPods, Clock: opts.clock})

	c.synced.Watch(ctx, name, from.services.Informer(), selectorindex.ServiceHandler(name, c.selectors, c.services))
	c.synced.Watch(ctx, name, from.pods.Informer(), selectorindex.PodHandler(name, c.pods))
	c.synced.Watch(ctx, name, from.endpoints.Informer(), c.endpointsHandler())
	return c
}

// Run works on the given number of Services at a time until ctx is done, and returns when
// everything that it started has ended.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, name, c.synced, c.services.Runner(workers), c.pods.Runner(workers))
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *Controller) Workers() []worker.Reporter {
	return []worker.Reporter{c.services, c.pods}
}

// endpointsHandler enqueues the Services of Endpoints that somebody has deleted, those of the first
// list, whose Services may be gone, and those whose sync waits for its own write.
func (c *Controller) endpointsHandler() cache.ResourceEventHandler {
	seen := func(shown *v1.Endpoints) {
		if key := cache.MetaObjectToName(shown); c.waiting.Done(key.AsNamespacedName()) {
			c.services.Add(key)
		}
	}
	return worker.Handler(name, worker.HandlerFuncs[*v1.Endpoints]{
		Add: func(added *v1.Endpoints, initial bool) {
			if _, lock := added.Annotations[endpoints.LeaderAnnotation]; initial && !lock {
				c.services.AddInitial(cache.MetaObjectToName(added))
				return
			}
			seen(added)
		},
		Update: func(_, cur *v1.Endpoints) { seen(cur) },
		Delete: func(deleted *v1.Endpoints) {
			key := cache.MetaObjectToName(deleted)
			c.waiting.Done(key.AsNamespacedName())
			c.services.Add(key)
		},
	})
}

// syncPods enqueues the Services that a change of Pods concerns.
func (c *Controller) syncPods(_ context.Context, change selectorindex.Change) error {
	for _, service := range c.selectors.Affected(change) {
		c.batches.Add(service)
	}
	return nil
}
