// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientcache "k8s.io/client-go/tools/cache"
)

const (
	// deliverAtOnce is about how many notifications are on their way to a handler. What is on its way
	// is not coalesced any more.
	deliverAtOnce = 32
	// minResync is the shortest resync period.
	minResync = time.Second
)

// listener tells one handler what happens. One goroutine, which the informer owns, calls the
// handler; whoever has something to tell only leaves it in the backlog, and never waits.
type listener struct {
	name    string
	handler clientcache.ResourceEventHandler
	resync  time.Duration
	// beginResync calls walkAgain at a moment that fits to what is pushed before and after.
	beginResync func(*listener)
	latency     clientcache.HistogramMetric // nil when nobody measures
	queued      *queuedGauge                // nil when nobody measures

	wake     chan struct{} // holds one
	removed  chan struct{}
	remove   func()
	syncDone chan struct{}
	// finished is closed when the handler is not called any more.
	finished chan struct{}

	// mu guards the following fields.
	mu      sync.Mutex
	backlog backlog
	// begun says that the initial list is in the backlog, or has been.
	begun bool
	// told counts notifications.
	told int64
	// since is when the batch on its way was taken; zero while there is none.
	since time.Time
	// reported is the depth that queued was last told of.
	reported int
}

func newListener(name string, handler clientcache.ResourceEventHandler, resync time.Duration, beginResync func(*listener)) *listener {
	l := &listener{
		name:        name,
		handler:     handler,
		resync:      atLeast(resync, minResync),
		beginResync: beginResync,
		wake:        make(chan struct{}, 1),
		removed:     make(chan struct{}),
		syncDone:    make(chan struct{}),
		finished:    make(chan struct{}),
	}
	l.remove = sync.OnceFunc(func() { close(l.removed) })
	return l
}

// atLeast returns d, or the minimum if d is shorter but not zero.
func atLeast(d, minimum time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return max(d, minimum)
}

// begin tells the handler all objects there are, as the initial list.
func (l *listener) begin(snap *snapshot) {
	l.mu.Lock()
	l.begun = true
	l.backlog.begin(initialWalk, snap)
	l.mu.Unlock()
	l.signal()
}

// walkAgain tells the handler all objects there are, as a resync.
func (l *listener) walkAgain(snap *snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.begin(resyncWalk, snap)
}

// push leaves changes for the handler. Before begin there is no need: it tells everything.
func (l *listener) push(changes []change) {
	l.mu.Lock()
	if l.begun {
		for _, c := range changes {
			l.backlog.push(c)
		}
	}
	l.reportLocked()
	l.mu.Unlock()
	l.signal()
}

// reportLocked tells how much the depth of the backlog has changed.
func (l *listener) reportLocked() {
	if l.queued == nil {
		return
	}
	depth := l.backlog.depth()
	l.queued.add(depth - l.reported)
	l.reported = depth
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls the handler until ctx is done or the listener is removed.
func (l *listener) run(ctx context.Context) {
	defer close(l.finished)
	var resync <-chan time.Time
	if l.resync > 0 {
		ticker := time.NewTicker(l.resync)
		defer ticker.Stop()
		resync = ticker.C
	}
	batch := make([]notification, 0, 2*deliverAtOnce)
	for {
		if batch = l.take(batch[:0]); len(batch) > 0 {
			if !l.deliver(ctx, batch) {
				return
			}
			clear(batch)
			continue
		}
		select {
		case <-l.wake:
		case <-resync:
			l.beginResync(l)
		case <-l.removed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// take takes the next notifications, and notes that those taken before have been told.
func (l *listener) take(batch []notification) []notification {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun && l.backlog.synced() {
		l.markSyncedLocked()
	}
	batch = l.backlog.take(batch, deliverAtOnce)
	l.told += int64(len(batch))
	l.since = time.Time{}
	if len(batch) > 0 {
		l.since = time.Now()
	}
	l.reportLocked()
	return batch
}

func (l *listener) markSyncedLocked() {
	if !clientcache.IsDone(l.HasSyncedChecker()) {
		close(l.syncDone)
	}
}

// deliver calls the handler, and says whether to go on.
func (l *listener) deliver(ctx context.Context, batch []notification) bool {
	for i := range batch {
		select {
		case <-l.removed:
			return false
		case <-ctx.Done():
			return false
		default:
			l.call(ctx, &batch[i])
		}
	}
	return true
}

func (l *listener) call(ctx context.Context, n *notification) {
	// It ends the process, unless whoever embeds the informer has chosen otherwise.
	defer utilruntime.HandleCrashWithContext(ctx)
	if l.latency != nil {
		began := time.Now()
		defer func() { l.latency.Observe(time.Since(began).Seconds()) }()
	}
	switch n.kind {
	case added:
		l.handler.OnAdd(n.obj, n.initial)
	case updated:
		l.handler.OnUpdate(n.old, n.obj)
	case deleted:
		l.handler.OnDelete(n.obj)
	}
}

var _ clientcache.ResourceEventHandlerRegistration = (*listener)(nil)

// HasSynced says whether the handler has been told the whole initial list.
func (l *listener) HasSynced() bool { return clientcache.IsDone(l.HasSyncedChecker()) }

// HasSyncedChecker is done when HasSynced is true.
func (l *listener) HasSyncedChecker() clientcache.DoneChecker {
	return doneChecker{name: l.name, done: l.syncDone}
}

// ShutdownChan is closed when the handler has been removed, or its informer has stopped, and it is
// not called any more. client-go's ShutDownEventHandler asks for it.
func (l *listener) ShutdownChan() <-chan struct{} { return l.finished }

type doneChecker struct {
	name string
	done <-chan struct{}
}

func (c doneChecker) Name() string          { return c.name }
func (c doneChecker) Done() <-chan struct{} { return c.done }

// describe names a handler for the live view: by itself, if it is a fmt.Stringer.
func describe(handler clientcache.ResourceEventHandler) string {
	if named, ok := handler.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", handler)
}
