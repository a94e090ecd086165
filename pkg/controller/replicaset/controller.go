// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

// BurstReplicas is how many Pods the controller manager lets one sync create, and how
// many delete.
const BurstReplicas = 500

// ReplicaSetController keeps the number of Pods of each ReplicaSet, or of each object of
// another kind that it was made for.
type ReplicaSetController struct {
	// GroupVersionKind is the kind that the controller works for, as owner references
	// name it.
	schema.GroupVersionKind

	name       string
	kind       Kind
	client     clientset.Interface
	podLister  corelisters.PodLister
	podIndexer cache.Indexer
	podEvents  controller.PodEvents
	synced     worker.Synced

	guard    *consistency.Guard
	memory   *memory
	features Features
	burst    int
	metrics  *collectors
	clock    clock.Clock

	events *controller.EventPipeline
	// podControl returns the pod control for one sync. onWrite is to be called with
	// every Pod it has written. Tests replace it.
	podControl func(onWrite func(*v1.Pod)) controller.PodControlInterface
	recorder   record.EventRecorder
	// syncHandler is sync; tests replace it.
	syncHandler func(ctx context.Context, key cache.ObjectName) error

	worker *worker.Worker[cache.ObjectName]
	// orphans finds the sets that may adopt a Pod; a handler must not look them up.
	orphans *worker.Worker[cache.ObjectName]
}

// Config is what NewBaseController makes a controller of.
type Config struct {
	// Name is the canonical name of the controller, for logs and the live record.
	Name string
	// QueueName is the name of the queue in the workqueue metrics.
	QueueName string
	// EventComponent is the source that events name.
	EventComponent string
	// Kind gives access to the objects; Pods and KubeClient to their Pods.
	Kind       Kind
	Pods       coreinformers.PodInformer
	KubeClient clientset.Interface
	// BurstReplicas bounds the creations, and the deletions, of one sync.
	BurstReplicas int
	Features      Features
	// Clock is the time source. Default: the real one.
	Clock clock.WithTicker
}

// NewReplicaSetController returns the controller of ReplicaSets. The feature gates
// DeploymentReplicaSetTerminatingReplicas and PodDeletionCost are read here, once.
func NewReplicaSetController(ctx context.Context, rsInformer appsinformers.ReplicaSetInformer, podInformer coreinformers.PodInformer, kubeClient clientset.Interface, burstReplicas int) *ReplicaSetController {
	kind, err := newReplicaSets(rsInformer, kubeClient)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index replica sets by their controller")
	}
	return NewBaseController(ctx, Config{
		Name:           "replicaset-controller",
		QueueName:      "replicaset",
		EventComponent: "replicaset-controller",
		Kind:           kind,
		Pods:           podInformer,
		KubeClient:     kubeClient,
		BurstReplicas:  burstReplicas,
		Features: Features{
			TerminatingReplicas: features.Enabled(features.DeploymentReplicaSetTerminatingReplicas),
			DeletionCost:        features.Enabled(features.PodDeletionCost),
		},
	})
}

// NewBaseController returns the controller that config describes. It must be run, with
// a cancelled context if nothing else, to end its queues' goroutines.
func NewBaseController(ctx context.Context, config Config) *ReplicaSetController {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if err := controller.AddPodControllerIndexer(config.Pods.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods by their controller")
	}
	podIndexer := config.Pods.Informer().GetIndexer()
	c := &ReplicaSetController{
		GroupVersionKind: config.Kind.GroupVersionKind(),
		name:             config.Name,
		kind:             config.Kind,
		client:           config.KubeClient,
		podLister:        config.Pods.Lister(),
		podIndexer:       podIndexer,
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			v1.Resource("pods"):         podIndexer,
			config.Kind.GroupResource(): config.Kind.Informer().GetIndexer(),
		}, consistency.WithClock(config.Clock)),
		memory:   newMemory(),
		features: config.Features,
		burst:    config.BurstReplicas,
		metrics:  registeredCollectors(),
		clock:    config.Clock,
		events:   controller.NewEventPipeline(ctx, config.KubeClient, config.EventComponent),
	}
	c.recorder = c.events.Recorder()
	c.podControl = func(onWrite func(*v1.Pod)) controller.PodControlInterface {
		return controller.RealPodControl{
			KubeClient: config.KubeClient,
			Recorder:   c.recorder,
			OnWrite:    func(pod *v1.Pod, _ *metav1.OwnerReference) { onWrite(pod) },
		}
	}
	c.syncHandler = c.sync
	c.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: config.Name, Queue: config.QueueName, Clock: config.Clock,
		Sync: func(ctx context.Context, key cache.ObjectName) error { return c.syncHandler(ctx, key) },
	})
	c.orphans = worker.New(worker.Options[cache.ObjectName]{
		Controller: config.Name, Sync: c.syncOrphan, Clock: config.Clock,
	})
	c.addHandlers(ctx, config)
	return c
}

// Name returns the canonical name of the controller.
func (c *ReplicaSetController) Name() string {
	return c.name
}

// Workers returns the controller's workers, for health and debug pages.
func (c *ReplicaSetController) Workers() []worker.Reporter {
	return []worker.Reporter{c.worker, c.orphans}
}

// Run works until ctx is done, with the given number of goroutines, and returns when all
// that it started has ended. It may be called once.
func (c *ReplicaSetController) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, c.name, c.synced, c.worker.Runner(workers), c.orphans.Runner(1))
	})
}

func (c *ReplicaSetController) addHandlers(ctx context.Context, config Config) {
	sets := worker.Handler(c.name, worker.HandlerFuncs[metav1.Object]{
		Add:    c.setAdded,
		Update: c.setUpdated,
		Delete: c.setDeleted,
	})
	c.podEvents = controller.PodEvents{Kind: c.GroupKind(), Owned: c.worker.AddEvent, Orphan: c.enqueueOrphan}
	c.synced.Watch(ctx, c.name, config.Kind.Informer(), sets)
	c.synced.Watch(ctx, c.name, config.Pods.Informer(), c.podEvents.Handler(c.name))
}

func (c *ReplicaSetController) setAdded(set metav1.Object, initial bool) {
	c.worker.AddEvent(cache.MetaObjectToName(set), initial)
}

func (c *ReplicaSetController) setUpdated(old, cur metav1.Object) {
	if old.GetUID() != cur.GetUID() {
		// Deleted and made anew under its name, and the watch brought it as one event.
		c.forget(old)
	}
	c.worker.Add(cache.MetaObjectToName(cur))
}

func (c *ReplicaSetController) setDeleted(set metav1.Object) {
	c.forget(set)
	c.worker.Add(cache.MetaObjectToName(set))
}

// forget drops all that is remembered of a set that is gone.
func (c *ReplicaSetController) forget(set metav1.Object) {
	key := types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName()}
	c.guard.Clear(key, set.GetUID())
	c.memory.forget(key, set.GetUID())
}

func (c *ReplicaSetController) enqueueOrphan(pod *v1.Pod, initial bool) {
	c.orphans.AddEvent(cache.MetaObjectToName(pod), initial)
}
