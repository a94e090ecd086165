// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	clientcache "k8s.io/client-go/tools/cache"
)

// Group is a set of informers, one per key, and runs them: what informer factories are made of. The
// zero value is an empty group.
type Group[K comparable] struct {
	// mu guards the following fields.
	mu           sync.Mutex
	members      map[K]*member
	shuttingDown bool
	// running waits for the informers that were started.
	running sync.WaitGroup
}

type member struct {
	informer clientcache.SharedIndexInformer
	cancel   context.CancelFunc // nil before it is started
	stopped  chan struct{}
}

// Get returns the informer of the key, which create makes if there is none.
func (g *Group[K]) Get(key K, create func() clientcache.SharedIndexInformer) clientcache.SharedIndexInformer {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[key]
	if m == nil {
		m = &member{informer: create(), stopped: make(chan struct{})}
		if g.members == nil {
			g.members = map[K]*member{}
		}
		g.members[key] = m
	}
	return m.informer
}

// Has says whether the key has an informer.
func (g *Group[K]) Has(key K) bool { return g.Peek(key) != nil }

// Peek returns the informer of the key, nil if there is none.
func (g *Group[K]) Peek(key K) clientcache.SharedIndexInformer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[key]; m != nil {
		return m.informer
	}
	return nil
}

// Start runs the informers that were not started yet, until ctx is done. It does not wait for them.
// After Shutdown it does nothing.
func (g *Group[K]) Start(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shuttingDown {
		return
	}
	for _, m := range g.members {
		if m.cancel != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		m.cancel = cancel
		g.running.Go(func() {
			defer close(m.stopped)
			defer cancel()
			m.informer.RunWithContext(ctx)
		})
	}
}

// Stop stops the informer of the key, waits until it has stopped, and forgets it: a later Get makes
// another. It must not be called by a handler of that informer.
func (g *Group[K]) Stop(key K) {
	g.mu.Lock()
	m := g.members[key]
	delete(g.members, key)
	g.mu.Unlock()
	if m != nil && m.cancel != nil {
		m.cancel()
		<-m.stopped
	}
}

// Release stops and forgets the informer of the key, as Stop does, if nobody listens to it.
func (g *Group[K]) Release(key K) {
	g.mu.Lock()
	m := g.members[key]
	g.mu.Unlock()
	if m == nil {
		return
	}
	if informer, ok := m.informer.(*Informer); ok && informer.handlerCount() == 0 {
		g.Stop(key)
	}
}

// Shutdown lets no more informers start, and waits until those that run have stopped: their contexts
// must be done, or become so.
func (g *Group[K]) Shutdown() {
	g.mu.Lock()
	g.shuttingDown = true
	g.mu.Unlock()
	g.running.Wait()
}

// WaitForSync waits until the started informers have filled their stores or ctx is done, and says
// which have.
func (g *Group[K]) WaitForSync(ctx context.Context) map[K]bool {
	synced := map[K]bool{}
	for key, informer := range g.started() {
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-ctx.Done():
		}
		synced[key] = informer.HasSynced()
	}
	return synced
}

func (g *Group[K]) started() map[K]clientcache.SharedIndexInformer {
	g.mu.Lock()
	defer g.mu.Unlock()
	started := map[K]clientcache.SharedIndexInformer{}
	for key, m := range g.members {
		if m.cancel != nil {
			started[key] = m.informer
		}
	}
	return started
}

// Statuses returns what the started informers of this package are doing, in the order of their names.
func (g *Group[K]) Statuses(now time.Time) []Status {
	var statuses []Status
	for _, informer := range g.started() {
		if i, ok := informer.(*Informer); ok {
			statuses = append(statuses, i.Status(now))
		}
	}
	slices.SortFunc(statuses, func(a, b Status) int { return cmp.Compare(a.Resource, b.Resource) })
	return statuses
}
