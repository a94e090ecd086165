// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// GarbageCollector deletes what has no owner any more. Create it with NewGarbageCollector; run both
// Run and Sync.
type GarbageCollector struct {
	metadataClient metadata.Interface
	mapper         meta.ResettableRESTMapper
	builder        *GraphBuilder
	events         *controller.EventPipeline
	lookups        *lookups

	// mu guards the following fields.
	mu           sync.Mutex
	noStrategics map[schema.GroupVersionResource]bool // do not take strategic merge patches
	written      map[identity]string                  // the resource version before the last write
}

// NewGarbageCollector returns a collector with a GraphBuilder of its own.
func NewGarbageCollector(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface,
	mapper meta.ResettableRESTMapper, ignoredResources map[schema.GroupResource]struct{},
	sharedInformers informerfactory.InformerFactory, informersStarted <-chan struct{}) (*GarbageCollector, error) {
	builder := NewDependencyGraphBuilder(ctx, metadataClient, mapper, ignoredResources, sharedInformers, informersStarted)
	return NewComposedGarbageCollector(ctx, kubeClient, metadataClient, mapper, builder)
}

// NewComposedGarbageCollector returns a collector that uses a GraphBuilder which others read, too.
// The collector runs it. A GraphBuilder serves one collector.
func NewComposedGarbageCollector(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface,
	mapper meta.ResettableRESTMapper, graphBuilder *GraphBuilder) (*GarbageCollector, error) {
	gc := &GarbageCollector{
		metadataClient: metadataClient,
		mapper:         mapper,
		builder:        graphBuilder,
		events:         controller.NewEventPipeline(ctx, kubeClient, controllerName),
		lookups:        newLookups(),
		noStrategics:   map[schema.GroupVersionResource]bool{},
		written:        map[identity]string{},
	}
	if !graphBuilder.collector.CompareAndSwap(nil, gc) {
		return nil, fmt.Errorf("the graph builder has a garbage collector already")
	}
	recorder := gc.events.Recorder()
	graphBuilder.recorder.Store(&recorder)
	return gc, nil
}

// Run collects garbage with workers goroutines for deletions and as many for orphaning, until ctx
// is done. Collection starts at once. Only what would be wrong on a graph with gaps waits, up to
// initialSyncTimeout, for the first list of each resource: letting an owner go that waits for its
// dependents, and looking for owners that the list may show.
func (gc *GarbageCollector) Run(ctx context.Context, workers int, initialSyncTimeout time.Duration) {
	b := gc.builder
	b.mu.Lock()
	b.syncTimeout = initialSyncTimeout
	b.mu.Unlock()
	gc.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, nil, b.Run, b.attemptToDelete.Runner(workers), b.attemptToOrphan.Runner(workers))
	})
}

// Workers returns the controller's workers, for health checks and debug pages, and beside them the
// resources that could not be listed.
func (gc *GarbageCollector) Workers() []worker.Reporter {
	b := gc.builder
	return []worker.Reporter{b.changes, b.attemptToDelete, b.attemptToOrphan, resourceReport{b}}
}

// GraphHasUID tells whether the graph knows an object of that UID, be it only as somebody's owner.
func (gc *GarbageCollector) GraphHasUID(u types.UID) bool { return gc.builder.graph.hasUID(u) }

// IsSynced tells whether the objects of every watched resource are in the graph.
func (gc *GarbageCollector) IsSynced(logger klog.Logger) bool { return gc.builder.IsSynced(logger) }

// Sync asks discovery every period what there is to watch, until ctx is done. Collection goes on
// meanwhile.
func (gc *GarbageCollector) Sync(ctx context.Context, discoveryClient discovery.ServerResourcesInterface, period time.Duration) {
	known := map[schema.GroupVersionResource]resource{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		defer func() {
			if r := recover(); r != nil {
				gc.builder.metrics.syncErrors.Inc()
				klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", r), "Recovered, trying again with the next discovery", "stack", string(debug.Stack()))
			}
		}()
		known = gc.resync(ctx, discoveryClient, known)
	}, period)
}

// resync does one round and returns what is known after it.
func (gc *GarbageCollector) resync(ctx context.Context, client discovery.ServerResourcesInterface,
	known map[schema.GroupVersionResource]resource) map[schema.GroupVersionResource]resource {
	logger := klog.FromContext(ctx)
	b := gc.builder
	gc.reportUnsynced(ctx)
	found, err := discoverDeletable(client)
	if err != nil {
		logger.Error(err, "Discovery is incomplete, what it does not show is watched as before")
	}
	if len(found) == 0 {
		logger.Info("Discovery found no resources, the garbage collector goes on with those it knows")
		b.metrics.syncErrors.Inc()
		return known
	}
	mergeKnown(found, known, err)
	if maps.Equal(found, known) {
		return known
	}
	logger.V(2).Info("Watched resources change", "before", len(known), "now", len(found))
	gc.mapper.Reset()
	if err := b.syncMonitors(found); err != nil {
		logger.Error(err, "Some resources cannot be watched, trying again with the next discovery")
		b.metrics.syncErrors.Inc()
		maps.DeleteFunc(found, func(gvr schema.GroupVersionResource, _ resource) bool { return !b.watches(gvr) })
	}
	select {
	case <-b.informersStarted:
		b.informers.Start(ctx.Done())
	case <-ctx.Done():
	}
	return found
}

// reportUnsynced names the resources whose first list did not come in a reasonable time, and asks
// for one object of each to learn why.
func (gc *GarbageCollector) reportUnsynced(ctx context.Context) {
	b := gc.builder
	for _, m := range b.unsynced() {
		if m.ready.Load() || b.pending(m) > 0 {
			continue // It may have come while another one was asked for.
		}
		b.metrics.syncErrors.Inc()
		b.metrics.unsynced.WithLabelValues(m.gvr.Group, m.gvr.Version, m.gvr.Resource).Set(1)
		if m.ready.Load() { // since just now: whoever said so may have taken the metric away too early
			b.metrics.unsynced.DeleteLabelValues(m.gvr.Group, m.gvr.Version, m.gvr.Resource)
			continue
		}
		listCtx, cancel := context.WithTimeout(ctx, time.Second*5)
		_, err := b.metadataClient.Resource(m.gvr).List(listCtx, metav1.ListOptions{Limit: 1})
		cancel()
		if err == nil {
			err = fmt.Errorf("the first list has not come for %s", b.clock.Since(m.since).Round(time.Second))
		}
		m.lastError.Store(&err)
		klog.FromContext(ctx).Error(err, "Resource cannot be listed, the others are collected all the same", "resource", m.gvr)
	}
}

// resourceReport shows the resources that could not be listed among the controller's live records.
type resourceReport struct{ b *GraphBuilder }

func (r resourceReport) Record() worker.Record {
	rec := worker.Record{Controller: controllerName, Queue: "unsynced resources"}
	for _, m := range r.b.unsynced() {
		rec.FailingCount++
		failing := worker.Failing{Key: m.gvr.String(), Since: m.since, LastTried: r.b.clock.Now(), Failures: 1, Retrying: true, LastError: "not listed yet"}
		if err := m.lastError.Load(); err != nil {
			failing.LastError = (*err).Error()
		}
		rec.Failing = append(rec.Failing, failing)
	}
	return rec
}

// Check finds nothing wrong: a resource that cannot be listed is no reason to restart the manager,
// which would not mend it and would stop everything else.
func (r resourceReport) Check(time.Time) error { return nil }
