// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

const (
	controllerName = "garbage-collector-controller"

	// readyPoll is how often monitors are asked whether their first list has come.
	readyPoll = 100 * time.Millisecond
	// defaultSyncTimeout is how long a new monitor is waited for where that matters.
	defaultSyncTimeout = 30 * time.Second
)

// GraphBuilder watches every deletable resource and keeps the graph of who owns whom. It can be
// shared: see NewComposedGarbageCollector.
type GraphBuilder struct {
	graph            *graph
	metadataClient   metadata.Interface
	mapper           meta.ResettableRESTMapper
	ignored          map[schema.GroupResource]struct{}
	informers        informerfactory.InformerFactory
	informersStarted <-chan struct{}
	clock            clock.WithTicker
	metrics          *metrics
	recorder         atomic.Pointer[record.EventRecorder] // nil before there is a collector

	changes         *worker.Worker[change]
	readiness       *worker.Poller
	attemptToDelete *worker.Worker[identity]
	attemptToOrphan *worker.Worker[identity]
	collector       atomic.Pointer[GarbageCollector]

	// mu guards the following fields.
	mu          sync.RWMutex
	monitors    map[schema.GroupVersionResource]*monitor
	byKind      map[*kind]*monitor
	syncTimeout time.Duration
}

// monitor is one watched resource.
type monitor struct {
	resource
	key          *kind
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	since        time.Time
	// replaces: the kind was watched in another version before.
	replaces bool
	// marked: its first list has come. ready: the graph has taken it in.
	marked, ready, stopped atomic.Bool
	// parked: owners of this kind wait until it is ready before they are looked up.
	parked    atomic.Bool
	lastError atomic.Pointer[error]
}

// get returns the object as the informer shows it, or nil.
func (m *monitor) get(namespace, name string, uid types.UID) metav1.Object {
	item, exists, err := m.informer.GetIndexer().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return nil
	}
	obj, err := meta.Accessor(item)
	if err != nil || obj.GetUID() != uid {
		return nil
	}
	return obj
}

// change names an object that the graph has to look at. With marker it says instead that the
// monitor's first list has come.
type change struct {
	monitor         *monitor
	namespace, name string
	uid             types.UID
	marker          bool
}

func (c change) String() string {
	if c.marker {
		return c.monitor.gvr.String()
	}
	return c.monitor.gvr.GroupResource().String() + " " + cache.NewObjectName(c.namespace, c.name).String()
}

// NewDependencyGraphBuilder returns a builder that watches nothing before Sync of a GarbageCollector
// has told it what there is. It must be Run, or be given to a GarbageCollector that is.
func NewDependencyGraphBuilder(_ context.Context, metadataClient metadata.Interface, mapper meta.ResettableRESTMapper,
	ignoredResources map[schema.GroupResource]struct{}, sharedInformers informerfactory.InformerFactory,
	informersStarted <-chan struct{}) *GraphBuilder {
	return newGraphBuilder(metadataClient, mapper, ignoredResources, sharedInformers, informersStarted, clock.RealClock{})
}

func newGraphBuilder(metadataClient metadata.Interface, mapper meta.ResettableRESTMapper,
	ignoredResources map[schema.GroupResource]struct{}, sharedInformers informerfactory.InformerFactory,
	informersStarted <-chan struct{}, c clock.WithTicker) *GraphBuilder {
	b := &GraphBuilder{
		graph: newGraph(), metadataClient: metadataClient, mapper: mapper, ignored: ignoredResources,
		informers: sharedInformers, informersStarted: informersStarted, clock: c, metrics: registeredMetrics(),
		monitors: map[schema.GroupVersionResource]*monitor{}, byKind: map[*kind]*monitor{}, syncTimeout: defaultSyncTimeout,
	}
	b.changes = worker.New(worker.Options[change]{
		Controller: controllerName, Queue: "garbage_collector_graph_changes", Sync: b.syncChange, Clock: c,
	})
	b.readiness = worker.NewPoller(c, readyPoll, b.markReady)
	b.attemptToDelete = worker.New(worker.Options[identity]{
		Controller: controllerName, Queue: "garbage_collector_attempt_to_delete", Clock: c,
		Sync: func(ctx context.Context, id identity) error { return b.collector.Load().syncDelete(ctx, id) },
	})
	b.attemptToOrphan = worker.New(worker.Options[identity]{
		Controller: controllerName, Queue: "garbage_collector_attempt_to_orphan", Clock: c,
		Sync: func(ctx context.Context, id identity) error { return b.collector.Load().syncOrphan(ctx, id) },
	})
	return b
}

// Run keeps the graph up to date until ctx is done.
func (b *GraphBuilder) Run(ctx context.Context) {
	// One worker: each event of an object must find what the one before it has left.
	worker.Start(ctx, controllerName, nil, b.changes.Runner(1), b.readiness.Run)
}

// markReady queues the marker of each monitor whose first list has come, and tells whether
// others are without one still.
func (b *GraphBuilder) markReady(context.Context) (more bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, m := range b.monitors {
		switch {
		case m.marked.Load():
		case m.registration.HasSynced():
			m.marked.Store(true)
			b.changes.AddInitial(change{monitor: m, marker: true})
		default:
			more = true
		}
	}
	return more
}

func (b *GraphBuilder) allMonitors() []*monitor {
	b.mu.RLock()
	defer b.mu.RUnlock()
	monitors := make([]*monitor, 0, len(b.monitors))
	for _, m := range b.monitors {
		monitors = append(monitors, m)
	}
	return monitors
}

func (b *GraphBuilder) monitorOf(k *kind) *monitor {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byKind[k]
}

// versionOf returns the version in which a kind is watched; empty if it is not.
func (b *GraphBuilder) versionOf(k *kind) string {
	if m := b.monitorOf(k); m != nil {
		return m.gvr.Version
	}
	return ""
}

// pending tells for how long a monitor's first list may be expected still.
func (b *GraphBuilder) pending(m *monitor) time.Duration {
	if m.ready.Load() {
		return 0
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return max(0, b.syncTimeout-b.clock.Since(m.since))
}

// anyPending tells whether the first list of any resource may be expected still. After the timeout
// nothing waits for it any longer.
func (b *GraphBuilder) anyPending() bool {
	return slices.ContainsFunc(b.allMonitors(), func(m *monitor) bool { return b.pending(m) > 0 })
}

// unsynced returns the monitors whose objects are not in the graph yet, by name.
func (b *GraphBuilder) unsynced() []*monitor {
	monitors := slices.DeleteFunc(b.allMonitors(), func(m *monitor) bool { return m.ready.Load() })
	slices.SortFunc(monitors, func(x, y *monitor) int { return strings.Compare(x.gvr.String(), y.gvr.String()) })
	return monitors
}

// syncMonitors watches exactly the given resources. What failed is named in the error; the others
// are watched all the same.
func (b *GraphBuilder) syncMonitors(resources map[schema.GroupVersionResource]resource) error {
	b.mu.Lock()
	var errs []error
	var removed []*monitor
	var changed effects
	for gvr, m := range b.monitors {
		if _, keep := resources[gvr]; !keep {
			removed = append(removed, m)
			delete(b.monitors, gvr)
		}
	}
	for gvr, r := range resources {
		if _, ignored := b.ignored[gvr.GroupResource()]; ignored || b.monitors[gvr] != nil {
			continue
		}
		e, err := b.addMonitorLocked(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("couldn't start monitor for resource %q: %w", gvr, err))
		}
		changed.toDelete = append(changed.toDelete, e.toDelete...)
		changed.invalid = append(changed.invalid, e.invalid...)
	}
	gone := make([]*kind, 0, len(removed))
	for _, m := range removed {
		m.stopped.Store(true)
		b.metrics.unsynced.DeleteLabelValues(m.gvr.Group, m.gvr.Version, m.gvr.Resource)
		if err := m.informer.RemoveEventHandler(m.registration); err != nil {
			errs = append(errs, fmt.Errorf("stopping the monitor for resource %q: %w", m.gvr, err))
		}
		if b.byKind[m.key] == m {
			delete(b.byKind, m.key)
			gone = append(gone, m.key)
		}
	}
	b.mu.Unlock()

	if releaser, ok := b.informers.(informerfactory.Releaser); ok {
		for _, m := range removed {
			releaser.ReleaseInformer(m.gvr)
		}
	}
	b.enqueue(changed)
	for _, k := range gone {
		b.enqueue(b.graph.forgetKind(k, func(identity) bool { return false }))
	}
	return errors.Join(errs...)
}

func (b *GraphBuilder) addMonitorLocked(r resource) (effects, error) {
	informer, err := b.informers.ForResource(r.gvr)
	if err != nil {
		return effects{}, err
	}
	s := scopeCluster
	if r.namespaced {
		s = scopeNamespaced
	}
	key, e := b.graph.setScope(r.kind, s)
	m := &monitor{resource: r, key: key, informer: informer.Informer(), since: b.clock.Now(), replaces: b.byKind[key] != nil}
	enqueue := func(obj metav1.Object) {
		b.changes.Add(change{monitor: m, namespace: obj.GetNamespace(), name: obj.GetName(), uid: obj.GetUID()})
	}
	m.registration, err = m.informer.AddEventHandlerWithResyncPeriod(worker.Handler(controllerName, worker.HandlerFuncs[metav1.Object]{
		Add: func(obj metav1.Object, initial bool) {
			// The marker brings the whole first list: a queue of all objects of a cluster would keep
			// its room for ever.
			if !initial {
				enqueue(obj)
			}
		},
		Update: func(old, cur metav1.Object) {
			if old.GetUID() != cur.GetUID() {
				enqueue(old)
			} else if sameForGraph(old, cur) {
				return
			}
			enqueue(cur)
		},
		Delete: enqueue,
	}), 0)
	if err != nil {
		return e, err
	}
	b.monitors[r.gvr], b.byKind[key] = m, m
	b.readiness.Wake()
	return e, nil
}

// watches tells whether a resource needs nothing more: it is watched, or ignored.
func (b *GraphBuilder) watches(gvr schema.GroupVersionResource) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, ignored := b.ignored[gvr.GroupResource()]
	return ignored || b.monitors[gvr] != nil
}

// sameForGraph tells whether a change is none for the graph, as most are.
func sameForGraph(old, cur metav1.Object) bool {
	return (old.GetDeletionTimestamp() == nil) == (cur.GetDeletionTimestamp() == nil) &&
		slices.Equal(old.GetFinalizers(), cur.GetFinalizers()) &&
		sameRefs(old.GetOwnerReferences(), cur.GetOwnerReferences())
}

func sameRefs(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool {
		return sameRef(&x, &y) && blocks(&x) == blocks(&y)
	})
}

// syncChange takes in what the informer shows of one object now: an event that was missed, doubled
// or overtaken does not matter.
func (b *GraphBuilder) syncChange(ctx context.Context, c change) error {
	m := c.monitor
	if m.stopped.Load() {
		return nil
	}
	if c.marker {
		if err := b.takeFirstList(m); err != nil {
			return err
		}
		m.ready.Store(true)
		b.metrics.unsynced.DeleteLabelValues(m.gvr.Group, m.gvr.Version, m.gvr.Resource)
		if m.replaces {
			b.enqueue(b.graph.forgetKind(m.key, func(id identity) bool { return m.get(id.namespace, id.name, id.uid) != nil }))
		}
		if m.parked.Load() {
			for _, id := range b.graph.unknownOf(m.key) {
				b.attemptToDelete.Add(id)
			}
		}
		klog.FromContext(ctx).V(4).Info("Resource is in the graph", "resource", m.gvr)
		return nil
	}
	id := identity{kind: m.key, namespace: c.namespace, name: c.name, uid: c.uid}
	obj := m.get(c.namespace, c.name, c.uid)
	if gc := b.collector.Load(); gc != nil {
		gc.shown(id, obj)
	}
	if obj == nil {
		b.enqueue(b.graph.remove(id))
		return nil
	}
	b.take(id, obj)
	return nil
}

// takeFirstList takes in all that a monitor's informer shows. An event that came meanwhile says
// nothing else, or is looked at later.
func (b *GraphBuilder) takeFirstList(m *monitor) error {
	for _, item := range m.informer.GetIndexer().List() {
		if m.stopped.Load() {
			return nil // The graph is about to forget the kind.
		}
		obj, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("taking in the first list of %s: %w", m.gvr, err)
		}
		b.take(identity{kind: m.key, namespace: obj.GetNamespace(), name: obj.GetName(), uid: obj.GetUID()}, obj)
	}
	return nil
}

func (b *GraphBuilder) take(id identity, obj metav1.Object) {
	b.enqueue(b.graph.upsert(objectOf(id, obj)))
}

func objectOf(id identity, obj metav1.Object) object {
	deleting := obj.GetDeletionTimestamp() != nil
	return object{
		id: id, owners: obj.GetOwnerReferences(), deleting: deleting,
		foreground: deleting && hasFinalizer(obj.GetFinalizers(), metav1.FinalizerDeleteDependents),
		orphaning:  deleting && hasFinalizer(obj.GetFinalizers(), metav1.FinalizerOrphanDependents),
	}
}

func (b *GraphBuilder) enqueue(e effects) {
	for _, id := range e.toDelete {
		b.attemptToDelete.Add(id)
	}
	for _, id := range e.toOrphan {
		b.attemptToOrphan.Add(id)
	}
	for _, ref := range e.invalid {
		b.reportInvalid(ref)
	}
}

// IsSynced tells whether the objects of every watched resource are in the graph.
func (b *GraphBuilder) IsSynced(logger klog.Logger) bool {
	if len(b.allMonitors()) == 0 {
		logger.V(4).Info("Garbage collector not synced: no monitors")
		return false
	}
	if missing := b.unsynced(); len(missing) > 0 {
		logger.V(4).Info("Garbage collector not synced", "resources", names(missing))
		return false
	}
	return true
}

func names(monitors []*monitor) []string {
	var s []string
	for _, m := range monitors {
		s = append(s, m.gvr.String())
	}
	return s
}
