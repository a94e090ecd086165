// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Options configure an informer. The zero value is complete.
type Options struct {
	// Description names the informer in messages and in the live view: the resource, best.
	// Default: the type of the example.
	Description string
	// ResyncPeriod is that of handlers that do not say one. Zero: none.
	ResyncPeriod time.Duration
	// Indexers are the indexes that the store has from the beginning.
	Indexers clientcache.Indexers
	// Transform changes each object before it is stored. SetTransform replaces it.
	Transform clientcache.TransformFunc
	// Metrics receive what the informer measures. Nil: nothing.
	Metrics *Metrics
}

// Informer keeps a store of all objects of a source, and tells handlers of each change. It
// implements client-go's cache.SharedIndexInformer; doc.go says where it differs.
type Informer struct {
	description string
	example     runtime.Object
	source      Source
	store       *Store
	resync      time.Duration
	metrics     *Metrics
	life        life
	synced      chan struct{}
	mutations   *mutationDetector // nil when it is off

	// mu makes one of what happens to the store and of what listeners are told of it. It guards the
	// following fields.
	mu        sync.Mutex
	running   context.Context // nil before it runs
	stopped   bool
	transform clientcache.TransformFunc
	onError   clientcache.WatchErrorHandlerWithContext
	listeners []*listener
	changes   []change // scratch
	// handlers waits for the goroutines of the listeners.
	handlers sync.WaitGroup
}

var _ clientcache.SharedIndexInformer = (*Informer)(nil)

// NewInformer returns an informer that is not running yet. The example is an object of the type that
// the source gives.
func NewInformer(source Source, example runtime.Object, opts Options) *Informer {
	if opts.Description == "" {
		opts.Description = fmt.Sprintf("%T", example)
	}
	return &Informer{
		description: opts.Description,
		example:     example,
		source:      source,
		store:       NewIndexer(keyOf, opts.Indexers),
		resync:      opts.ResyncPeriod,
		transform:   opts.Transform,
		metrics:     opts.Metrics,
		synced:      make(chan struct{}),
		mutations:   newMutationDetector(opts.Description),
	}
}

// NewSharedIndexInformer returns an informer that reads through a client.
func NewSharedIndexInformer(lw clientcache.ListerWatcher, example runtime.Object, resync time.Duration, indexers clientcache.Indexers) clientcache.SharedIndexInformer {
	return NewInformer(NewListWatchSource(lw), example, Options{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions returns an informer that reads through a client.
func NewSharedIndexInformerWithOptions(lw clientcache.ListerWatcher, example runtime.Object, opts clientcache.SharedIndexInformerOptions) clientcache.SharedIndexInformer {
	return NewInformer(NewListWatchSource(lw), example, Options{
		Description:  opts.ObjectDescription,
		ResyncPeriod: opts.ResyncPeriod,
		Indexers:     opts.Indexers,
		Metrics:      NewMetrics(opts.InformerMetricsProvider, opts.Identifier),
	})
}

// Run runs the informer until stopCh is closed.
func (i *Informer) Run(stopCh <-chan struct{}) {
	i.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext runs the informer until ctx is done, and returns when no handler is called any more.
// An informer runs once.
func (i *Informer) RunWithContext(ctx context.Context) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "resource", i.description)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logger))
	defer cancel()
	if !i.start(ctx) {
		logger.Info("The informer has been started before; once is all it can be")
		return
	}
	newReflector(i.source, i, &i.life).run(ctx)
	cancel()

	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.handlers.Wait()
	i.mutations.check()
}

func (i *Informer) start(ctx context.Context) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running != nil || i.stopped {
		return false
	}
	i.running = ctx
	i.life.start()
	for _, l := range i.listeners {
		i.handlers.Go(func() { l.run(ctx) })
	}
	if i.mutations != nil {
		i.handlers.Go(func() { i.mutations.run(ctx) })
	}
	return true
}

// IsStopped says whether the informer has stopped, for good.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// AddEventHandler adds a handler with the informer's resync period.
func (i *Informer) AddEventHandler(handler clientcache.ResourceEventHandler) (clientcache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, clientcache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler clientcache.ResourceEventHandler, resync time.Duration) (clientcache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, clientcache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler. It is told all objects there are, then each change.
func (i *Informer) AddEventHandlerWithOptions(handler clientcache.ResourceEventHandler, opts clientcache.HandlerOptions) (clientcache.ResourceEventHandlerRegistration, error) {
	resync := i.resync
	if opts.ResyncPeriod != nil {
		resync = *opts.ResyncPeriod
	}
	l := newListener(i.description+" handler "+describe(handler), handler, resync, i.beginResync)
	if i.metrics != nil {
		l.latency, l.queued = i.metrics.latency, i.metrics.queued
	}

	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("adding a handler to the informer of %s: %w", i.description, errStopped)
	}
	i.listeners = append(i.listeners, l)
	if i.HasSynced() {
		l.begin(i.store.snapshot())
	}
	if i.running != nil {
		ctx := i.running
		if opts.Logger != nil {
			ctx = klog.NewContext(ctx, *opts.Logger)
		}
		i.handlers.Go(func() { l.run(ctx) })
	}
	return l, nil
}

// RemoveEventHandler removes a handler. One call of it may still be under way when this returns.
func (i *Informer) RemoveEventHandler(handle clientcache.ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok {
		return fmt.Errorf("removing a handler of %s: a %T is no registration of this informer", i.description, handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.listeners, l)
	if at < 0 {
		return nil
	}
	i.listeners = slices.Delete(i.listeners, at, at+1)
	l.remove()
	if i.running == nil {
		close(l.finished) // It will never run.
	}
	return nil
}

func (i *Informer) handlerCount() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.listeners)
}

// beginResync tells the listener all objects anew.
func (i *Informer) beginResync(l *listener) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.HasSynced() {
		l.walkAgain(i.store.snapshot())
	}
}

// HasSynced says whether the store has been filled.
func (i *Informer) HasSynced() bool { return clientcache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker is done when HasSynced is true.
func (i *Informer) HasSyncedChecker() clientcache.DoneChecker {
	return doneChecker{name: i.description, done: i.synced}
}

// LastSyncResourceVersion returns the version up to which the store shows everything.
func (i *Informer) LastSyncResourceVersion() string { return i.store.LastStoreSyncResourceVersion() }

// GetStore returns the store.
func (i *Informer) GetStore() clientcache.Store { return i.store }

// GetIndexer returns the store.
func (i *Informer) GetIndexer() clientcache.Indexer { return i.store }

// Barrier returns the store, to wait for what one has written.
func (i *Informer) Barrier() Barrier { return i.store }

// AddIndexers adds indexes, whether or not the informer runs.
func (i *Informer) AddIndexers(indexers clientcache.Indexers) error {
	if i.IsStopped() {
		return fmt.Errorf("adding indexes to the informer of %s: %w", i.description, errStopped)
	}
	return i.store.AddIndexers(indexers)
}

// GetController returns what client-go's interface asks for: the informer, seen as a controller.
func (i *Informer) GetController() clientcache.Controller { return i }

// SetTransform sets what changes each object before it is stored.
func (i *Informer) SetTransform(transform clientcache.TransformFunc) error {
	return i.beforeStart("transform", func() { i.transform = transform })
}

// SetWatchErrorHandler sets who is told that a list or watch has failed.
func (i *Informer) SetWatchErrorHandler(handler clientcache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *clientcache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext sets who is told that a list or watch has failed.
func (i *Informer) SetWatchErrorHandlerWithContext(handler clientcache.WatchErrorHandlerWithContext) error {
	return i.beforeStart("watch error handler", func() { i.onError = handler })
}

func (i *Informer) beforeStart(what string, set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running != nil {
		return fmt.Errorf("setting the %s of %s: the informer has started already", what, i.description)
	}
	set()
	return nil
}
