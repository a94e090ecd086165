// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/endpointslicemirroring/metrics"
	sliceutil "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	name = "endpointslice-mirroring-controller"
	// controllerName is the value of the label managed-by.
	controllerName = "endpointslicemirroring-controller.k8s.io"
	eventComponent = "endpoint-slice-mirroring-controller"
	// maxRetries is how often Endpoints that fail are retried before they wait for their next event.
	maxRetries = 15
	// Failing Endpoints are retried after defaultSyncBackOff, doubling up to maxSyncBackOff.
	defaultSyncBackOff = 1 * time.Second
	maxSyncBackOff     = 100 * time.Second
	// staleRetry is when to look again after a cache that has not seen the last writes, in case
	// that their event does not bring the Endpoints back.
	staleRetry = 1 * time.Second
)

// Controller mirrors Endpoints. Create it with NewController.
type Controller struct {
	endpointsLister corelisters.EndpointsLister
	serviceLister   corelisters.ServiceLister
	synced          worker.Synced
	clock           clock.PassiveClock

	maxPerSubset  int32
	slices        *sliceutil.Slices
	metrics       *metrics.Collectors
	metricsCache  *metrics.Cache
	events        *controller.EventPipeline
	eventRecorder record.EventRecorder

	// syncHandler is syncEndpoints, but for tests that watch the queue.
	syncHandler func(ctx context.Context, key cache.ObjectName) error

	worker  *worker.Worker[cache.ObjectName]
	batches *worker.Batcher[cache.ObjectName] // before worker
}

// NewController returns a controller that mirrors up to maxEndpointsPerSubset addresses of each
// subset. It must be Run, which ends what it holds.
func NewController(ctx context.Context,
	endpointsInformer coreinformers.EndpointsInformer,
	endpointSliceInformer discoveryinformers.EndpointSliceInformer,
	serviceInformer coreinformers.ServiceInformer,
	maxEndpointsPerSubset int32,
	client clientset.Interface,
	endpointUpdatesBatchPeriod time.Duration,
) *Controller {
	return newController(ctx, sources{endpointsInformer, endpointSliceInformer, serviceInformer}, client,
		options{maxPerSubset: maxEndpointsPerSubset, batchPeriod: endpointUpdatesBatchPeriod, clock: clock.RealClock{}})
}

// sources are the informers that a controller reads from.
type sources struct {
	endpoints coreinformers.EndpointsInformer
	slices    discoveryinformers.EndpointSliceInformer
	services  coreinformers.ServiceInformer
}

type options struct {
	maxPerSubset int32
	batchPeriod  time.Duration
	clock        clock.WithTicker
	// recorder takes the events. Default: the controller's own pipeline.
	recorder record.EventRecorder
}

func newController(ctx context.Context, from sources, client clientset.Interface, opts options) *Controller {
	c := &Controller{
		endpointsLister: from.endpoints.Lister(),
		serviceLister:   from.services.Lister(),
		clock:           opts.clock,
		maxPerSubset:    opts.maxPerSubset,
		metrics:         metrics.Registered(),
		metricsCache:    metrics.NewCache(metrics.Registered(), opts.maxPerSubset),
		events:          controller.NewEventPipeline(ctx, client, eventComponent),
		eventRecorder:   opts.recorder,
	}
	if c.eventRecorder == nil {
		c.eventRecorder = c.events.Recorder()
	}
	var err error
	if c.slices, err = sliceutil.NewSlices(from.slices, client, controllerName); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index endpoint slices", "controller", name)
	}
	c.syncHandler = c.syncEndpoints
	c.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: name, Queue: "endpoint_slice_mirroring", Clock: opts.clock, MaxRetries: maxRetries,
		Sync: func(ctx context.Context, key cache.ObjectName) error { return c.syncHandler(ctx, key) },
		RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](defaultSyncBackOff, maxSyncBackOff),
			// Ten retries a second over all Endpoints, a hundred at once.
			&workqueue.TypedBucketRateLimiter[cache.ObjectName]{Limiter: rate.NewLimiter(rate.Limit(10), 100)},
		),
	})
	c.batches = worker.NewBatcher(c.worker, opts.batchPeriod)
	c.synced.Watch(ctx, name, from.endpoints.Informer(), c.endpointsHandler())
	c.synced.Watch(ctx, name, from.services.Informer(), c.serviceHandler())
	c.synced.Watch(ctx, name, from.slices.Informer(), c.slices.Handler(name, c.worker, opts.batchPeriod))
	return c
}

// Run works on the given number of Endpoints at a time until ctx is done, and returns when
// everything that it started has ended.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, name, c.synced, c.worker.Runner(workers))
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *Controller) Workers() []worker.Reporter { return []worker.Reporter{c.worker} }

func (c *Controller) endpointsHandler() cache.ResourceEventHandler {
	return worker.Handler(name, worker.HandlerFuncs[*v1.Endpoints]{
		Add: func(endpoints *v1.Endpoints, initial bool) {
			switch {
			case !shouldMirror(endpoints):
			case initial:
				c.worker.AddInitial(cache.MetaObjectToName(endpoints))
			default:
				c.batches.Add(cache.MetaObjectToName(endpoints))
			}
		},
		Update: func(old, cur *v1.Endpoints) {
			if shouldMirror(old) || shouldMirror(cur) {
				c.batches.Add(cache.MetaObjectToName(cur))
			}
		},
		Delete: func(endpoints *v1.Endpoints) {
			if shouldMirror(endpoints) {
				c.batches.Add(cache.MetaObjectToName(endpoints))
			}
		},
	})
}

// serviceHandler enqueues the Endpoints of Services that are without a selector, or cease to be.
func (c *Controller) serviceHandler() cache.ResourceEventHandler {
	return worker.Handler(name, worker.HandlerFuncs[*v1.Service]{
		Add: func(service *v1.Service, initial bool) {
			if service.Spec.Selector == nil {
				c.worker.AddEvent(cache.MetaObjectToName(service), initial)
			}
		},
		Update: func(old, cur *v1.Service) {
			if (old.Spec.Selector == nil) != (cur.Spec.Selector == nil) {
				c.worker.Add(cache.MetaObjectToName(cur))
			}
		},
		Delete: func(service *v1.Service) {
			if service.Spec.Selector == nil {
				c.worker.Add(cache.MetaObjectToName(service))
			}
		},
	})
}
