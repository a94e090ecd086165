// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

// HandlerFuncs are a controller's reactions to the events of one resource. They only enqueue: what
// needs a look-up is an index or a queue of its own. A nil func is skipped.
type HandlerFuncs[T metav1.Object] struct {
	// Add is called for each object; initial says that it comes from the informer's first list.
	Add func(obj T, initial bool)
	// Update is called for each change. It is not called when the resourceVersion is the same,
	// which is how a resync looks, unless Resync is set.
	Update func(old, cur T)
	// Delete is called with the last state that is known: when the deletion itself was missed (a
	// tombstone), that may be older than the object's final one.
	Delete func(obj T)
	// Resync passes updates with an unchanged resourceVersion on.
	Resync bool
}

// Handler returns an event handler that calls f's funcs with typed objects, resolves tombstones,
// and meters the time that it takes. Objects of another type are dropped.
func Handler[T metav1.Object](controller string, f HandlerFuncs[T]) cache.ResourceEventHandler {
	return &handler[T]{funcs: f, duration: registeredMetrics().handlers.WithLabelValues(controller)}
}

type handler[T metav1.Object] struct {
	funcs    HandlerFuncs[T]
	duration k8smetrics.ObserverMetric
}

func (h *handler[T]) OnAdd(obj any, initial bool) {
	cur, ok := obj.(T)
	if !ok || h.funcs.Add == nil {
		return
	}
	defer h.observe(time.Now())
	h.funcs.Add(cur, initial)
}

func (h *handler[T]) OnUpdate(oldObj, newObj any) {
	old, ok := oldObj.(T)
	cur, ok2 := newObj.(T)
	if !ok || !ok2 || h.funcs.Update == nil {
		return
	}
	if !h.funcs.Resync && old.GetResourceVersion() == cur.GetResourceVersion() {
		return
	}
	defer h.observe(time.Now())
	h.funcs.Update(old, cur)
}

func (h *handler[T]) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	last, ok := obj.(T)
	if !ok || h.funcs.Delete == nil {
		return
	}
	defer h.observe(time.Now())
	h.funcs.Delete(last)
}

func (h *handler[T]) observe(start time.Time) { h.duration.Observe(time.Since(start).Seconds()) }

// Synced is what Start waits for.
type Synced []cache.InformerSynced

// Watch adds a handler to an informer, and has Start wait until the handler has had the initial list.
// It is for constructors that, as upstream's, return no error: an informer that has stopped, which is
// the one thing that can go wrong, is only reported.
func (s *Synced) Watch(ctx context.Context, controller string, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	*s = append(*s, informer.HasSynced)
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not watch", "controller", controller)
		return
	}
	*s = append(*s, registration.HasSynced)
}

// syncPollInterval is how often Start asks whether the caches have synced.
const syncPollInterval = 100 * time.Millisecond

// Start waits until the caches have synced, then calls every runner in a goroutine of its own. It
// returns when ctx is done and all runners have returned. The runners are called even when ctx ends
// before the caches have synced, so that they can release what they hold; their context is done
// then.
func Start(ctx context.Context, controller string, synced []cache.InformerSynced, runners ...func(context.Context)) {
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "controller", controller)
	defer logger.Info("Controller stopped", "controller", controller)

	if err := wait.PollUntilContextCancel(ctx, syncPollInterval, true, allSynced(synced)); err != nil {
		logger.Info("Stopped before the caches synced", "controller", controller)
	}
	var wg sync.WaitGroup
	for _, run := range runners {
		wg.Go(func() { run(ctx) })
	}
	wg.Wait()
}

func allSynced(synced []cache.InformerSynced) wait.ConditionWithContextFunc {
	return func(context.Context) (bool, error) {
		for _, done := range synced {
			if !done() {
				return false, nil
			}
		}
		return true, nil
	}
}
