// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/metrics"
	"k8s.io/endpointslice/topologycache"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	sliceutil "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	name = "endpointslice-controller"
	// controllerName is the value of the label managed-by.
	controllerName = "endpointslice-controller.k8s.io"
	eventComponent = "endpoint-slice-controller"
	// maxRetries is how often a Service that fails is retried before it waits for its next event.
	maxRetries = 15
	// A failing Service is retried after defaultSyncBackOff, doubling up to maxSyncBackOff.
	defaultSyncBackOff = 1 * time.Second
	maxSyncBackOff     = 1000 * time.Second
	// endpointSliceChangeMinSyncDelay is the least time between a change that somebody else made
	// to a slice, and its repair: a fight is not to be fast.
	endpointSliceChangeMinSyncDelay = 1 * time.Second
	// staleRetry is when to look again after a cache that has not seen the last writes, in case
	// that their event does not bring the Service back.
	staleRetry = 1 * time.Second
)

// Controller keeps EndpointSlices. Create it with NewController.
type Controller struct {
	serviceLister corelisters.ServiceLister
	nodeLister    corelisters.NodeLister
	podIndexer    cache.Indexer // has controller.PodNodeNameKeyIndex
	synced        worker.Synced

	selectors          *selectorindex.Services
	selected           *selectorindex.Pods
	slices             *sliceutil.Slices
	client             *sliceClient
	reconciler         *endpointslice.Reconciler
	topologyCache      *topologycache.TopologyCache
	triggerTimeTracker *endpointsliceutil.TriggerTimeTracker
	events             *controller.EventPipeline
	eventRecorder      record.EventRecorder

	// syncHandler is syncService, but for tests that watch the queue.
	syncHandler func(ctx context.Context, key cache.ObjectName) error

	services *worker.Worker[cache.ObjectName]
	batches  *worker.Batcher[cache.ObjectName] // before services
	pods     *worker.Worker[selectorindex.Change]
	nodes    *worker.Worker[nodeKey]
}

// NewController returns a controller that fills slices with up to maxEndpointsPerSlice endpoints.
// It must be Run, which ends what it holds.
func NewController(ctx context.Context, podInformer coreinformers.PodInformer,
	serviceInformer coreinformers.ServiceInformer,
	nodeInformer coreinformers.NodeInformer,
	endpointSliceInformer discoveryinformers.EndpointSliceInformer,
	maxEndpointsPerSlice int32,
	client clientset.Interface,
	endpointUpdatesBatchPeriod time.Duration,
) *Controller {
	return newController(ctx, sources{podInformer, serviceInformer, nodeInformer, endpointSliceInformer}, client,
		options{maxEndpointsPerSlice: maxEndpointsPerSlice, batchPeriod: endpointUpdatesBatchPeriod, clock: clock.RealClock{}})
}

// sources are the informers that a controller reads from.
type sources struct {
	pods     coreinformers.PodInformer
	services coreinformers.ServiceInformer
	nodes    coreinformers.NodeInformer
	slices   discoveryinformers.EndpointSliceInformer
}

type options struct {
	maxEndpointsPerSlice int32
	batchPeriod          time.Duration
	clock                clock.WithTicker
	// recorder takes the events. Default: the controller's own pipeline.
	recorder record.EventRecorder
}

func newController(ctx context.Context, from sources, client clientset.Interface, opts options) *Controller {
	metrics.RegisterMetrics()
	c := &Controller{
		serviceLister:      from.services.Lister(),
		nodeLister:         from.nodes.Lister(),
		podIndexer:         from.pods.Informer().GetIndexer(),
		selectors:          selectorindex.NewServices(),
		topologyCache:      topologycache.NewTopologyCache(),
		triggerTimeTracker: endpointsliceutil.NewTriggerTimeTracker(),
		events:             controller.NewEventPipeline(ctx, client, eventComponent),
		eventRecorder:      opts.recorder,
	}
	if c.eventRecorder == nil {
		c.eventRecorder = c.events.Recorder()
	}
	c.addIndexes(ctx, from, client)
	c.client = &sliceClient{Interface: client, slices: c.slices}
	c.reconciler = endpointslice.NewReconciler(c.client, c.nodeLister, opts.maxEndpointsPerSlice, c.slices.Tracker,
		c.topologyCache, c.eventRecorder, controllerName,
		endpointslice.WithPreferSameTrafficDistributionEnabled(features.Enabled(features.PreferSameTrafficDistribution)))
	c.addWorkers(opts)
	c.synced.Watch(ctx, name, from.services.Informer(), selectorindex.ServiceHandler(name, c.selectors, c.services))
	c.synced.Watch(ctx, name, from.pods.Informer(), selectorindex.PodHandler(name, c.pods))
	c.synced.Watch(ctx, name, from.nodes.Informer(), c.nodeHandler())
	c.synced.Watch(ctx, name, from.slices.Informer(),
		c.slices.Handler(name, c.services, repairDelay(opts.batchPeriod)))
	return c
}

// repairDelay is how long a change that somebody else made to a slice waits for its repair.
func repairDelay(batchPeriod time.Duration) time.Duration {
	return max(endpointSliceChangeMinSyncDelay, batchPeriod)
}

func (c *Controller) addWorkers(opts options) {
	c.syncHandler = c.syncService
	c.services = worker.New(worker.Options[cache.ObjectName]{
		Controller: name, Queue: "endpoint_slice", Clock: opts.clock, MaxRetries: maxRetries,
		Sync: func(ctx context.Context, key cache.ObjectName) error { return c.syncHandler(ctx, key) },
		RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](defaultSyncBackOff, maxSyncBackOff),
			// Ten retries a second over all Services, a hundred at once.
			&workqueue.TypedBucketRateLimiter[cache.ObjectName]{Limiter: rate.NewLimiter(rate.Limit(10), 100)},
		),
	})
	c.batches = worker.NewBatcher(c.services, opts.batchPeriod)
	c.pods = worker.New(worker.Options[selectorindex.Change]{Controller: name, Sync: c.syncPods, Clock: opts.clock})
	c.nodes = worker.New(worker.Options[nodeKey]{Controller: name, Sync: c.syncNode, Clock: opts.clock})
}

func (c *Controller) addIndexes(ctx context.Context, from sources, client clientset.Interface) {
	var err error
	if c.selected, err = selectorindex.NewPods(from.pods.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods", "controller", name)
	}
	if err = controller.AddPodNodeNameIndexer(from.pods.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods by their node", "controller", name)
	}
	if c.slices, err = sliceutil.NewSlices(from.slices, client, controllerName); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index endpoint slices", "controller", name)
	}
}

// Run works on the given number of Services at a time until ctx is done, and returns when
// everything that it started has ended.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, name, c.synced,
			func(ctx context.Context) {
				// Without the nodes' zones the first syncs would take all hints away.
				if err := c.setNodes(ctx); err != nil {
					utilruntime.HandleErrorWithContext(ctx, err, "Could not read the zones of nodes", "controller", name)
				}
				c.services.Run(ctx, workers)
			},
			c.pods.Runner(workers), c.nodes.Runner(1))
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *Controller) Workers() []worker.Reporter {
	return []worker.Reporter{c.services, c.pods, c.nodes}
}
