// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/history"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	controllerName = "daemonset-controller"
	// backoffGCInterval is how often the back-off of failed Pods forgets what is long past.
	backoffGCInterval = time.Minute
	// podEventPeriod is how far apart the syncs of one DaemonSet are that events of Pods and nodes ask
	// for. A sync looks at all nodes; without, a roll-out over n nodes would cost n times n looks.
	podEventPeriod = 100 * time.Millisecond
)

var (
	controllerKind    = apps.SchemeGroupVersion.WithKind("DaemonSet")
	daemonSetResource = apps.Resource("daemonsets")
	podResource       = v1.Resource("pods")
)

// DaemonSetsController runs a Pod of each DaemonSet on each node that it is for. Create it with
// NewDaemonSetsController.
type DaemonSetsController struct {
	client     clientset.Interface
	daemonSets appslisters.DaemonSetLister
	nodes      corelisters.NodeLister
	podLister  corelisters.PodLister
	podIndexer cache.Indexer // has controller.PodControllerIndex and controller.PodNodeNameKeyIndex
	history    history.Interface
	synced     []cache.InformerSynced

	guard       *consistency.Guard
	unsettled   unsettled
	predicates  predicates
	backoff     *flowcontrol.Backoff
	comparisons bool
	metrics     *collectors
	clock       clock.WithTicker

	events   *controller.EventPipeline
	recorder record.EventRecorder

	queue       *worker.Worker[cache.ObjectName] // DaemonSets
	batched     *worker.Batcher[cache.ObjectName]
	nodeUpdates *worker.Worker[string]           // nodes
	orphans     *worker.Worker[cache.ObjectName] // Pods without an owner
}

// NewDaemonSetsController returns a controller that decides from the informers' caches and writes with
// kubeClient. failedPodsBackoff says how long a node's failed Pods are kept before they are replaced.
// The feature gate TaintTolerationComparisonOperators is read here, once. It must be Run, which ends
// what it holds.
func NewDaemonSetsController(ctx context.Context, daemonSetInformer appsinformers.DaemonSetInformer, historyInformer appsinformers.ControllerRevisionInformer,
	podInformer coreinformers.PodInformer, nodeInformer coreinformers.NodeInformer, kubeClient clientset.Interface,
	failedPodsBackoff *flowcontrol.Backoff) (*DaemonSetsController, error) {
	return newController(ctx, daemonSetInformer, historyInformer, podInformer, nodeInformer, kubeClient, failedPodsBackoff, clock.RealClock{})
}

func newController(ctx context.Context, daemonSetInformer appsinformers.DaemonSetInformer, historyInformer appsinformers.ControllerRevisionInformer,
	podInformer coreinformers.PodInformer, nodeInformer coreinformers.NodeInformer, kubeClient clientset.Interface,
	failedPodsBackoff *flowcontrol.Backoff, clock clock.WithTicker) (*DaemonSetsController, error) {
	if err := controller.AddPodControllerIndexer(podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of pods by controller: %w", err)
	}
	if err := controller.AddPodNodeNameIndexer(podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of pods by node: %w", err)
	}
	if err := controller.AddControllerRevisionControllerIndexer(historyInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of controller revisions by controller: %w", err)
	}
	events := controller.NewEventPipeline(ctx, kubeClient, controllerName)
	c := &DaemonSetsController{
		client:     kubeClient,
		daemonSets: daemonSetInformer.Lister(),
		nodes:      nodeInformer.Lister(),
		podLister:  podInformer.Lister(),
		podIndexer: podInformer.Informer().GetIndexer(),
		history:    history.NewHistory(kubeClient, historyInformer.Informer().GetIndexer()),
		synced: []cache.InformerSynced{daemonSetInformer.Informer().HasSynced, historyInformer.Informer().HasSynced,
			podInformer.Informer().HasSynced, nodeInformer.Informer().HasSynced},
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			podResource:       podInformer.Informer().GetIndexer(),
			daemonSetResource: daemonSetInformer.Informer().GetIndexer(),
			revisionResource:  historyInformer.Informer().GetIndexer(),
		}, consistency.WithClock(clock)),
		backoff:     failedPodsBackoff,
		comparisons: features.Enabled(features.TaintTolerationComparisonOperators),
		metrics:     registeredCollectors(),
		clock:       clock,
		events:      events,
		recorder:    events.Recorder(),
	}
	c.queue = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "daemonset", Sync: c.sync, Clock: clock})
	c.batched = worker.NewBatcher(c.queue, podEventPeriod)
	c.nodeUpdates = worker.New(worker.Options[string]{Controller: controllerName, Queue: "daemonset-node-updates", Sync: c.syncNode, Clock: clock})
	c.orphans = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Sync: c.syncOrphan, Clock: clock})
	if err := c.watch(daemonSetInformer.Informer(), historyInformer.Informer(), podInformer.Informer(), nodeInformer.Informer()); err != nil {
		return nil, err
	}
	return c, nil
}

// Run syncs DaemonSets with the given number of workers, and nodes with as many, until ctx is done, and
// returns when everything that it started has ended.
func (c *DaemonSetsController) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, c.synced,
			c.queue.Runner(workers), c.nodeUpdates.Runner(workers), c.orphans.Runner(1), c.forgetBackoff)
	})
}

// forgetBackoff keeps the back-off from growing for ever.
func (c *DaemonSetsController) forgetBackoff(ctx context.Context) {
	ticker := c.clock.NewTicker(backoffGCInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.backoff.GC()
		}
	}
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *DaemonSetsController) Workers() []worker.Reporter {
	return []worker.Reporter{c.queue, c.nodeUpdates, c.orphans}
}

// forget drops all that is remembered of a DaemonSet that is gone: the one of this UID, or any when uid
// is empty.
func (c *DaemonSetsController) forget(key cache.ObjectName, uid types.UID) {
	c.guard.Clear(key.AsNamespacedName(), uid)
	c.unsettled.remove(key.AsNamespacedName())
	c.batched.Forget(key)
	if uid != "" {
		c.predicates.forget(uid)
	}
}
