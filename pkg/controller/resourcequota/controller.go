// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

const controllerName = "resourcequota-controller"

var quotaResource = schema.GroupResource{Resource: "resourcequotas"}

// ControllerOptions is what a Controller is made of.
type ControllerOptions struct {
	// QuotaClient writes the status of quotas. If it has events, too, as the client of the core group
	// has, the controller records some.
	QuotaClient corev1client.ResourceQuotasGetter
	// ResourceQuotaInformer is the informer of quotas.
	ResourceQuotaInformer coreinformers.ResourceQuotaInformer
	// ResyncPeriod is how often all quotas are counted anew; 0 for never.
	ResyncPeriod controller.ResyncPeriodFunc
	// Registry holds the evaluators. The controller adds those of resources that have none.
	Registry quota.Registry
	// DiscoveryFunc says what there is to count. Nil: what the registry has.
	DiscoveryFunc NamespacedResourcesFunc
	// IgnoredResourcesFunc names the resources that are not counted.
	IgnoredResourcesFunc func() map[schema.GroupResource]struct{}
	// InformersStarted is closed when InformerFactory is started; from then on the controller starts
	// the informers that it asks for.
	InformersStarted <-chan struct{}
	// InformerFactory gives the informers of what is counted. If it is an informerfactory.Releaser, too,
	// those of resources that are gone are released.
	InformerFactory informerfactory.InformerFactory
	// ReplenishmentResyncPeriod is the resync period of the handlers on those informers.
	ReplenishmentResyncPeriod controller.ResyncPeriodFunc
	// UpdateFilter says which updates change what an object uses.
	UpdateFilter UpdateFilter
}

// Controller keeps the status of ResourceQuotas. Create it with NewController.
type Controller struct {
	client    corev1client.ResourceQuotasGetter
	quotas    corelisters.ResourceQuotaLister
	synced    []cache.InformerSynced
	resync    controller.ResyncPeriodFunc
	registry  quota.Registry
	ignored   func() map[schema.GroupResource]struct{}
	started   <-chan struct{}
	informers informerfactory.InformerFactory
	events    *controller.EventPipeline // nil without a client for events
	recorder  record.EventRecorder
	metrics   *metrics
	monitors  *monitors // nil without discovery
	memory    *memory
	guard     *consistency.Guard

	primary  *worker.Worker[cache.ObjectName]
	priority *worker.Worker[cache.ObjectName]
	changes  *worker.Worker[change]
}

// change names objects of a resource that have changed, by the namespace; empty means all.
type change struct {
	resource  schema.GroupResource
	namespace string
}

func (c change) String() string { return c.resource.String() + " in " + c.namespace }

// NewController returns a controller that counts from the caches of options.InformerFactory. It must
// be Run, which ends what it holds. A discovery that fails now is tried again by Sync.
func NewController(ctx context.Context, options *ControllerOptions) (*Controller, error) {
	c := &Controller{
		client:    options.QuotaClient,
		quotas:    options.ResourceQuotaInformer.Lister(),
		resync:    options.ResyncPeriod,
		registry:  options.Registry,
		ignored:   options.IgnoredResourcesFunc,
		started:   options.InformersStarted,
		informers: options.InformerFactory,
		metrics:   registeredMetrics(),
		memory:    newMemory(),
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			quotaResource: options.ResourceQuotaInformer.Informer().GetIndexer(),
		}),
	}
	if core, ok := options.QuotaClient.(corev1client.CoreV1Interface); ok {
		c.events = controller.NewEventPipeline(ctx, coreClient{core: core}, controllerName)
		c.recorder = c.events.Recorder()
	}
	c.primary = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "resourcequota_primary", Sync: c.sync})
	c.priority = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "resourcequota_priority", Sync: c.sync})
	c.changes = worker.New(worker.Options[change]{Controller: controllerName, Queue: "resource_quota_controller_resource_changes", Sync: c.syncChange})
	registration, err := options.ResourceQuotaInformer.Informer().AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*v1.ResourceQuota]{
		Add:    c.added,
		Update: c.updated,
		Delete: func(q *v1.ResourceQuota) {
			c.memory.mark(cache.MetaObjectToName(q), event)
			c.primary.Add(cache.MetaObjectToName(q))
		},
	}))
	if err != nil {
		return nil, fmt.Errorf("watching resource quotas: %w", err)
	}
	c.synced = []cache.InformerSynced{options.ResourceQuotaInformer.Informer().HasSynced, registration.HasSynced}
	if options.DiscoveryFunc != nil {
		c.monitors = &monitors{
			registry: options.Registry, informers: options.InformerFactory, filter: options.UpdateFilter,
			resync: options.ReplenishmentResyncPeriod, metrics: c.metrics, changed: c.resourceChanged,
			all: map[schema.GroupVersionResource]*monitor{}, byResource: map[schema.GroupResource]*monitor{},
		}
		c.monitors.readiness = worker.NewPoller(clock.RealClock{}, readyPoll, c.monitors.checkReadiness)
		if err := c.discover(ctx, options.DiscoveryFunc); err != nil {
			klog.FromContext(ctx).Error(err, "Discovery has failed in part; it will be tried again", "controller", controllerName)
		}
	}
	return c, nil
}

// Run counts with the given number of workers on each of its two queues until ctx is done, and
// returns when everything that it started has ended.
func (c *Controller) Run(ctx context.Context, workers int) {
	run := func(ctx context.Context) {
		runners := []func(context.Context){c.primary.Runner(workers), c.priority.Runner(workers), c.changes.Runner(1), c.resyncAll}
		if c.monitors != nil {
			runners = append(runners, c.monitors.readiness.Run)
			defer c.monitors.stop()
		}
		worker.Start(ctx, controllerName, c.synced, runners...)
	}
	if c.events == nil {
		run(ctx)
		return
	}
	c.events.RunAround(ctx, run)
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *Controller) Workers() []worker.Reporter {
	return []worker.Reporter{c.primary, c.priority, c.changes}
}

// Sync asks discovery every period what there is to count, and watches it, until ctx is done.
func (c *Controller) Sync(ctx context.Context, discoveryFunc NamespacedResourcesFunc, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := c.discover(ctx, discoveryFunc); err != nil {
			klog.FromContext(ctx).Error(err, "Could not discover all that quotas count; what was known is counted on", "controller", controllerName)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// discover brings the monitors to what discovery says.
func (c *Controller) discover(ctx context.Context, discoveryFunc NamespacedResourcesFunc) error {
	if c.monitors == nil {
		return nil
	}
	resources, discoveryErr := GetQuotableResources(discoveryFunc)
	keepKnown(resources, c.monitors.watched(), discoveryErr)
	if c.ignored != nil {
		for gvr := range resources {
			if _, ignore := c.ignored()[gvr.GroupResource()]; ignore {
				delete(resources, gvr)
			}
		}
	}
	added, removed, err := c.monitors.sync(resources)
	if added+removed > 0 {
		klog.FromContext(ctx).V(2).Info("Resources to count have changed", "controller", controllerName, "added", added, "removed", removed)
	}
	select {
	case <-c.started:
		if added > 0 {
			c.informers.Start(ctx.Done())
		}
	default: // whoever starts the informers has not done so yet
	}
	return errors.Join(discoveryErr, err)
}

func (c *Controller) added(q *v1.ResourceQuota, initial bool) {
	key := cache.MetaObjectToName(q)
	c.memory.mark(key, event)
	if isUrgent(q, c.registry.List()) {
		c.priority.Add(key)
		return
	}
	c.primary.AddEvent(key, initial)
}

func (c *Controller) updated(old, cur *v1.ResourceQuota) {
	// The status changes with each object that is created: admission writes it.
	if compare(old.Status.Used, cur.Status.Used).raised {
		c.memory.charged(cache.MetaObjectToName(cur), time.Now())
	}
	if old.UID == cur.UID && equality.Semantic.DeepEqual(old.Spec.Hard, cur.Spec.Hard) {
		return
	}
	c.added(cur, false)
}

func (c *Controller) resourceChanged(resource schema.GroupResource, namespace string, initial bool) {
	c.changes.AddEvent(change{resource, namespace}, initial)
}

// syncChange has the quotas counted that the change of a resource concerns.
func (c *Controller) syncChange(_ context.Context, ch change) error {
	evaluator := c.registry.Get(ch.resource)
	if evaluator == nil {
		return nil
	}
	quotas, err := c.quotas.ResourceQuotas(ch.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing quotas from the cache: %w", err)
	}
	for _, q := range quotas {
		if counts(q, evaluator) {
			c.memory.mark(cache.MetaObjectToName(q), event)
			c.primary.Add(cache.MetaObjectToName(q))
		}
	}
	return nil
}

// resyncAll has all quotas counted anew every resync period.
func (c *Controller) resyncAll(ctx context.Context) {
	period := c.resync()
	if period <= 0 {
		klog.FromContext(ctx).Info("periodic quota controller resync disabled", "controller", controllerName)
		return
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.enqueueAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (c *Controller) enqueueAll(ctx context.Context) {
	all, err := c.quotas.List(labels.Everything())
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not list quotas from the cache", "controller", controllerName)
		return
	}
	for _, q := range all {
		key := cache.MetaObjectToName(q)
		c.memory.mark(key, recount)
		c.primary.AddInitial(key)
	}
}
