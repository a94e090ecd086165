// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// slowSync is how long one sync may take before the log says so.
const slowSync = 5 * time.Second

// Options of a Worker. K is the key's type: cache.ObjectName for most controllers.
type Options[K comparable] struct {
	// Controller is the canonical controller name; it appears in logs, metrics and the live record.
	Controller string
	// Queue is upstream's workqueue name, the label of the workqueue_* metrics. Empty: no such
	// metrics, as upstream has none for some of its queues.
	Queue string
	// Sync brings one key's object to its desired state. nil means done; an error means retry with
	// back-off, unless it wraps what RequeueAfter or Terminal return.
	Sync func(ctx context.Context, key K) error
	// RateLimiter decides the back-off. Default: workqueue.DefaultTypedControllerRateLimiter, 5 ms
	// doubling to 1000 s per key, and 10 a second with a burst of 100 over all keys.
	RateLimiter workqueue.TypedRateLimiter[K]
	// MaxRetries is how often a failing key is retried before it is dropped until its next event.
	// Default 0: retried for ever.
	MaxRetries int
	// Clock is the time source. Default: the real one.
	Clock clock.WithTicker
}

// Worker runs a controller's sync function for the keys in its queue. Create it with New.
type Worker[K comparable] struct {
	opts    Options[K]
	clock   clock.WithTicker
	lanes   *lanes[K]
	queue   workqueue.TypedRateLimitingInterface[K]
	metrics *metrics
	record  recorder[K]
}

// New returns a Worker that takes keys at once and syncs them when Run is called. Its queue holds
// goroutines, which Run ends: a Worker that is created must be run, with a cancelled context if
// nothing else.
func New[K comparable](opts Options[K]) *Worker[K] {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.RateLimiter == nil {
		opts.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[K]()
	}
	lanes := newLanes[K](opts.Clock)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{
		Name: opts.Queue, Clock: opts.Clock, Queue: lanes,
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: opts.Queue, Clock: opts.Clock, Queue: queue,
	})
	return &Worker[K]{
		opts:  opts,
		clock: opts.Clock,
		lanes: lanes,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(opts.RateLimiter, workqueue.TypedRateLimitingQueueConfig[K]{
			Name: opts.Queue, Clock: opts.Clock, DelayingQueue: delaying,
		}),
		metrics: registeredMetrics(),
		record:  newRecorder[K](opts.Clock.Now()),
	}
}

// Add enqueues a key because of a live event. A key that already waits is not queued twice, and
// moves ahead of the keys of the initial list.
func (w *Worker[K]) Add(key K) {
	w.lanes.unmarkInitial(key)
	w.queue.Add(key)
}

// AddInitial enqueues a key from an informer's initial list: it is served after all live keys.
func (w *Worker[K]) AddInitial(key K) {
	w.lanes.markInitial(key)
	w.queue.Add(key)
}

// AddEvent enqueues a key as AddInitial does when the event is from an informer's initial list, and
// as Add does when it is not.
func (w *Worker[K]) AddEvent(key K, initial bool) {
	if initial {
		w.AddInitial(key)
		return
	}
	w.Add(key)
}

// AddAfter enqueues a key as Add does when d has passed.
func (w *Worker[K]) AddAfter(key K, d time.Duration) { w.queue.AddAfter(key, d) }

// AddRateLimited enqueues a key after its back-off, and counts it as a retry.
func (w *Worker[K]) AddRateLimited(key K) { w.queue.AddRateLimited(key) }

// Len returns how many keys wait, without those whose time has not come.
func (w *Worker[K]) Len() int { return w.queue.Len() }

// Run syncs keys on the given number of goroutines until ctx is done. It then stops the queue,
// waits for the syncs in flight, whose context is cancelled, and returns.
func (w *Worker[K]) Run(ctx context.Context, workers int) {
	var wg sync.WaitGroup
	w.record.started(workers, w.clock.Now())
	for range workers {
		wg.Go(func() {
			for w.ProcessNextItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
	w.record.stopped()
}

// Runner returns Run with a fixed number of goroutines, in the form that Start takes.
func (w *Worker[K]) Runner(workers int) func(context.Context) {
	return func(ctx context.Context) { w.Run(ctx, workers) }
}

// ProcessNextItem waits for a key and syncs it. It returns false when the queue is shut down.
// Run calls it; tests may.
func (w *Worker[K]) ProcessNextItem(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}

	scope := gate.NewScope(w.opts.Controller, fmt.Sprint(key))
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", w.opts.Controller, "key", scope.Key)
	start := w.clock.Now()
	w.record.begin(key, scope, start)
	err := w.guardedSync(klog.NewContext(gate.WithScope(ctx, scope), logger), key)
	took := w.clock.Since(start)
	if took > slowSync {
		logger.Info("Slow sync", "duration", took, "requests", scope.Requests(), "writes", scope.Writes())
	}
	w.finish(ctx, logger, key, err)
	return true
}

// finish decides what becomes of a key after its sync.
func (w *Worker[K]) finish(ctx context.Context, logger klog.Logger, key K, err error) {
	now := w.clock.Now()
	var requeue *requeueAfter
	var terminal *terminalError
	switch {
	case err == nil:
		w.queue.Forget(key)
		w.record.succeeded(key, now)
	case errors.As(err, &requeue):
		w.queue.Forget(key)
		w.queue.AddAfter(key, requeue.after)
		w.record.succeeded(key, now)
	case ctx.Err() != nil:
		// The manager stops: a failure that the cancelled context caused is not the object's.
		w.record.interrupted(key)
	case errors.As(err, &terminal):
		w.queue.Forget(key)
		w.record.failed(key, err, false, now)
		w.metrics.syncErrors.WithLabelValues(w.opts.Controller).Inc()
		logger.Error(err, "Sync failed, waiting for the next event")
	case w.opts.MaxRetries > 0 && w.queue.NumRequeues(key) >= w.opts.MaxRetries:
		w.queue.Forget(key)
		w.record.failed(key, err, false, now)
		w.metrics.syncErrors.WithLabelValues(w.opts.Controller).Inc()
		logger.Error(err, "Sync failed, dropping the key until its next event", "retries", w.opts.MaxRetries)
	default:
		w.record.failed(key, err, true, now)
		w.metrics.syncErrors.WithLabelValues(w.opts.Controller).Inc()
		logger.Error(err, "Sync failed, retrying with back-off", "retries", w.queue.NumRequeues(key))
		w.queue.AddRateLimited(key)
	}
}

// guardedSync calls Sync and turns a panic into an error, so that one object that no code foresaw
// cannot take the controller down.
func (w *Worker[K]) guardedSync(ctx context.Context, key K) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		w.metrics.panics.WithLabelValues(w.opts.Controller).Inc()
		w.record.panicked()
		err = fmt.Errorf("panic while syncing %v: %v", key, r)
		klog.FromContext(ctx).Error(err, "Recovered from a panic", "stack", string(debug.Stack()))
	}()
	return w.opts.Sync(ctx, key)
}
