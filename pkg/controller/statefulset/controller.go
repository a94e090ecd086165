// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/history"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	controllerName = "statefulset-controller"
	queueName      = "statefulset"
	recreateGate   = features.StatefulSetRecreateStrategy
)

var controllerKind = apps.SchemeGroupVersion.WithKind("StatefulSet")

// StatefulSetController gives each StatefulSet its Pods and their claims.
type StatefulSetController struct {
	client      clientset.Interface
	setLister   appslisters.StatefulSetLister
	claimLister corelisters.PersistentVolumeClaimLister
	podIndexer  cache.Indexer
	podEvents   controller.PodEvents
	history     history.Interface
	synced      worker.Synced

	guard    *consistency.Guard
	memories *memory
	gates    gates
	metrics  *collectors
	clock    clock.Clock

	events   *controller.EventPipeline
	recorder record.EventRecorder
	// syncHandler is sync; tests replace it.
	syncHandler func(ctx context.Context, key cache.ObjectName) error
	worker      *worker.Worker[cache.ObjectName]
}

// NewStatefulSetController returns the controller of StatefulSets. The feature gates are
// read here, once. It must be run, with a cancelled context if nothing else, to end its
// queue's goroutines.
func NewStatefulSetController(ctx context.Context, podInformer coreinformers.PodInformer, setInformer appsinformers.StatefulSetInformer,
	pvcInformer coreinformers.PersistentVolumeClaimInformer, revInformer appsinformers.ControllerRevisionInformer, kubeClient clientset.Interface) *StatefulSetController {
	return newController(ctx, podInformer, setInformer, pvcInformer, revInformer, kubeClient, clock.RealClock{})
}

func newController(ctx context.Context, podInformer coreinformers.PodInformer, setInformer appsinformers.StatefulSetInformer,
	pvcInformer coreinformers.PersistentVolumeClaimInformer, revInformer appsinformers.ControllerRevisionInformer, kubeClient clientset.Interface, clock clock.WithTicker) *StatefulSetController {
	if err := controller.AddPodControllerIndexer(podInformer.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods by their controller")
	}
	if err := controller.AddControllerRevisionControllerIndexer(revInformer.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index controller revisions by their controller")
	}
	c := &StatefulSetController{
		client:      kubeClient,
		setLister:   setInformer.Lister(),
		claimLister: pvcInformer.Lister(),
		podIndexer:  podInformer.Informer().GetIndexer(),
		history:     history.NewHistory(kubeClient, revInformer.Informer().GetIndexer()),
		synced:      worker.Synced{revInformer.Informer().HasSynced},
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			v1.Resource("pods"):                   podInformer.Informer().GetIndexer(),
			v1.Resource("persistentvolumeclaims"): pvcInformer.Informer().GetIndexer(),
			apps.Resource("statefulsets"):         setInformer.Informer().GetIndexer(),
			apps.Resource("controllerrevisions"):  revInformer.Informer().GetIndexer(),
		}, consistency.WithClock(clock)),
		memories: newMemory(),
		gates: gates{
			maxUnavailable:     features.Enabled(features.MaxUnavailableStatefulSet),
			recreate:           features.Enabled(recreateGate),
			semanticComparison: features.Enabled(features.StatefulSetSemanticRevisionComparison),
			leaveBadRevision:   features.Enabled(features.KCMStatefulSetLeaveBadRevision),
		},
		metrics: registeredCollectors(),
		clock:   clock,
		events:  controller.NewEventPipeline(ctx, kubeClient, controllerName),
	}
	c.recorder = c.events.Recorder()
	c.syncHandler = c.sync
	c.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: controllerName, Queue: queueName, Clock: clock,
		Sync: func(ctx context.Context, key cache.ObjectName) error { return c.syncHandler(ctx, key) },
	})
	c.synced.Watch(ctx, controllerName, setInformer.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*apps.StatefulSet]{
		Add: c.setAdded, Update: c.setUpdated, Delete: c.setDeleted,
	}))
	c.podEvents = controller.PodEvents{Kind: controllerKind.GroupKind(), Owned: c.worker.AddEvent, Orphan: c.enqueueNamesake}
	c.synced.Watch(ctx, controllerName, podInformer.Informer(), c.podEvents.Handler(controllerName))
	c.synced.Watch(ctx, controllerName, pvcInformer.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*v1.PersistentVolumeClaim]{
		Delete: c.claimDeleted,
	}))
	return c
}

// Name returns the canonical name of the controller.
func (c *StatefulSetController) Name() string {
	return controllerName
}

// Workers returns the controller's worker, for health and debug pages.
func (c *StatefulSetController) Workers() []worker.Reporter {
	return []worker.Reporter{c.worker}
}

// Run works until ctx is done, with the given number of goroutines, and returns when all
// that it started has ended. It may be called once.
func (c *StatefulSetController) Run(ctx context.Context, workers int) {
	c.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, c.synced, c.worker.Runner(workers))
	})
}

func (c *StatefulSetController) setAdded(set *apps.StatefulSet, initial bool) {
	c.worker.AddEvent(cache.MetaObjectToName(set), initial)
}

func (c *StatefulSetController) setUpdated(old, cur *apps.StatefulSet) {
	if old.UID != cur.UID {
		// Deleted and made anew under its name, and the watch brought it as one event.
		c.forget(nameOf(old), old.UID)
	}
	c.worker.Add(cache.MetaObjectToName(cur))
}

func (c *StatefulSetController) setDeleted(set *apps.StatefulSet) {
	c.forget(nameOf(set), set.UID)
	c.worker.Add(cache.MetaObjectToName(set))
}

// forget drops all that is remembered of a set that is gone: the one of this UID, or
// any when uid is empty.
func (c *StatefulSetController) forget(name types.NamespacedName, uid types.UID) {
	c.guard.Clear(name, uid)
	c.memories.forget(name, uid)
	c.metrics.forget(name.Namespace, name.Name)
}

func nameOf(set *apps.StatefulSet) types.NamespacedName {
	return types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
}

// claimDeleted enqueues the set that may have waited for the claim to go.
func (c *StatefulSetController) claimDeleted(claim *v1.PersistentVolumeClaim) {
	owner := metav1.GetControllerOfNoCopy(claim)
	switch {
	case owner == nil:
	case controller.RefersTo(owner, controllerKind.GroupKind()):
		c.worker.Add(cache.NewObjectName(claim.Namespace, owner.Name))
	case owner.Kind == podKind.Kind && owner.APIVersion == "v1":
		if parent, ordinal := parentAndOrdinal(owner.Name); ordinal >= 0 {
			c.worker.Add(cache.NewObjectName(claim.Namespace, parent))
		}
	}
}

// enqueueNamesake enqueues the one set that could adopt an orphan: that of its name.
func (c *StatefulSetController) enqueueNamesake(pod *v1.Pod, initial bool) {
	if parent, ordinal := parentAndOrdinal(pod.Name); ordinal >= 0 && parent != "" {
		c.worker.AddEvent(cache.NewObjectName(pod.Namespace, parent), initial)
	}
}
