// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"maps"

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
	history     history.Interface
	synced      []cache.InformerSynced

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
		synced: []cache.InformerSynced{podInformer.Informer().HasSynced, setInformer.Informer().HasSynced,
			pvcInformer.Informer().HasSynced, revInformer.Informer().HasSynced},
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
	c.watch(ctx, setInformer.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*apps.StatefulSet]{
		Add: c.setAdded, Update: c.setUpdated, Delete: c.setDeleted,
	}))
	c.watch(ctx, podInformer.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*v1.Pod]{
		Add: c.podAdded, Update: c.podUpdated, Delete: c.podDeleted,
	}))
	c.watch(ctx, pvcInformer.Informer(), worker.Handler(controllerName, worker.HandlerFuncs[*v1.PersistentVolumeClaim]{
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

// watch adds a handler, and makes Run wait until it has had the initial list.
func (c *StatefulSetController) watch(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not watch", "controller", controllerName)
		return
	}
	c.synced = append(c.synced, registration.HasSynced)
}

func (c *StatefulSetController) setAdded(set *apps.StatefulSet, initial bool) {
	c.enqueue(cache.MetaObjectToName(set), initial)
}

func (c *StatefulSetController) setUpdated(old, cur *apps.StatefulSet) {
	if old.UID != cur.UID {
		// Deleted and made anew under its name, and the watch brought it as one event.
		c.forget(nameOf(old), old.UID)
	}
	c.enqueue(cache.MetaObjectToName(cur), false)
}

func (c *StatefulSetController) setDeleted(set *apps.StatefulSet) {
	c.forget(nameOf(set), set.UID)
	c.enqueue(cache.MetaObjectToName(set), false)
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

func (c *StatefulSetController) podAdded(pod *v1.Pod, initial bool) {
	if c.enqueueOwner(pod, initial) || pod.DeletionTimestamp != nil {
		return
	}
	if metav1.GetControllerOfNoCopy(pod) == nil {
		c.enqueueNamesake(pod, initial)
	}
}

func (c *StatefulSetController) podUpdated(old, cur *v1.Pod) {
	oldOwner, curOwner := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(cur)
	ownerChanged := !sameOwner(oldOwner, curOwner)
	if ownerChanged {
		c.enqueueOwner(old, false)
	}
	if c.enqueueOwner(cur, false) || curOwner != nil || cur.DeletionTimestamp != nil {
		return
	}
	// An orphan is looked at again only for what could make a set want it.
	if ownerChanged || !maps.Equal(old.Labels, cur.Labels) {
		c.enqueueNamesake(cur, false)
	}
}

func (c *StatefulSetController) podDeleted(pod *v1.Pod) {
	c.enqueueOwner(pod, false)
}

// claimDeleted enqueues the set that may have waited for the claim to go.
func (c *StatefulSetController) claimDeleted(claim *v1.PersistentVolumeClaim) {
	owner := metav1.GetControllerOfNoCopy(claim)
	switch {
	case owner == nil:
	case owner.Kind == controllerKind.Kind && isApps(owner):
		c.enqueue(cache.NewObjectName(claim.Namespace, owner.Name), false)
	case owner.Kind == podKind.Kind && owner.APIVersion == "v1":
		if parent, ordinal := parentAndOrdinal(owner.Name); ordinal >= 0 {
			c.enqueue(cache.NewObjectName(claim.Namespace, parent), false)
		}
	}
}

// enqueueOwner enqueues the Pod's controller if that is a StatefulSet, and says whether
// it is. Whether it exists, and with this UID, is for its sync to find.
func (c *StatefulSetController) enqueueOwner(pod *v1.Pod, initial bool) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != controllerKind.Kind || !isApps(owner) {
		return false
	}
	c.enqueue(cache.NewObjectName(pod.Namespace, owner.Name), initial)
	return true
}

// enqueueNamesake enqueues the one set that could adopt an orphan: that of its name.
func (c *StatefulSetController) enqueueNamesake(pod *v1.Pod, initial bool) {
	if parent, ordinal := parentAndOrdinal(pod.Name); ordinal >= 0 && parent != "" {
		c.enqueue(cache.NewObjectName(pod.Namespace, parent), initial)
	}
}

func (c *StatefulSetController) enqueue(key cache.ObjectName, initial bool) {
	if initial {
		c.worker.AddInitial(key)
		return
	}
	c.worker.Add(key)
}

func isApps(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == controllerKind.Group
}

func sameOwner(a, b *metav1.OwnerReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.APIVersion == b.APIVersion && a.Name == b.Name && a.UID == b.UID
}
