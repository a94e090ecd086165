// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// This file is the informer as a sink of its reflector: what is listed and watched goes into the
// store, and what thereby changes goes to the listeners. All of it runs on the reflector's goroutine.

var _ sink = (*Informer)(nil)

// apply takes in what a watch has sent.
func (i *Informer) apply(events []Event) {
	i.mutate(func(tx *transaction) {
		for n := range events {
			e := &events[n]
			tx.saw(e.ResourceVersion)
			if e.Type == watch.Bookmark {
				continue
			}
			obj, key, ok := i.prepare(e.Object)
			switch {
			case !ok:
			case e.Type == watch.Deleted:
				tx.remove(key, obj)
			default:
				tx.put(key, obj, e.Size)
				i.mutations.add(obj)
			}
		}
	})
}

// mutate changes the store and tells the listeners.
func (i *Informer) mutate(change func(tx *transaction)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changes = i.store.update(i.changes[:0], change)
	i.metrics.reached(i.store.LastStoreSyncResourceVersion())
	if len(i.changes) == 0 {
		return
	}
	for _, l := range i.listeners {
		l.push(i.changes)
	}
	if cap(i.changes) > maxBatch {
		i.changes = nil // What a list has grown is given back.
		return
	}
	clear(i.changes)
}

// prepare returns an object as it is stored, and its key.
func (i *Informer) prepare(raw any) (obj any, key string, ok bool) {
	obj = raw
	if i.transform != nil {
		transformed, err := i.transform(raw)
		if err != nil {
			// The object itself is better than none.
			klog.Background().Error(err, "Failed to transform an object, it is cached as it is", "resource", i.description)
		} else {
			obj = transformed
		}
	}
	key, err := keyOf(obj)
	if err != nil {
		klog.Background().Error(err, "Left out what has no name", "resource", i.description, "type", fmt.Sprintf("%T", obj))
		return nil, "", false
	}
	return obj, key, true
}

// list begins to take in a list.
func (i *Informer) list(afresh bool) listing {
	return &staging{informer: i, present: i.store.snapshot(), afresh: afresh, seen: map[string]struct{}{}}
}

// staging holds a list until it is complete. Of an object that has not changed it keeps only the
// key, so that a new list of a full store costs little memory.
type staging struct {
	informer *Informer
	present  *snapshot
	afresh   bool
	seen     map[string]struct{}
	items    []staged
}

type staged struct {
	key string
	Item
}

func (s *staging) add(item Item) {
	key, err := keyOf(item.Object)
	if err != nil {
		klog.Background().Error(err, "Left out what has no name", "resource", s.informer.description, "type", fmt.Sprintf("%T", item.Object))
		return
	}
	if have := s.present.objects.find(hashOf(key), key); have != nil {
		key = have.key
		if !s.afresh && sameState(have.value.obj, item.Object) {
			s.seen[key] = struct{}{}
			return
		}
	}
	s.seen[key] = struct{}{}
	s.items = append(s.items, staged{key, item})
}

// sameState says whether two objects are the same one at the same version.
func sameState(a, b any) bool {
	x, y := metaOf(a), metaOf(b)
	return x != nil && y != nil && x.GetResourceVersion() != "" &&
		x.GetResourceVersion() == y.GetResourceVersion() && x.GetUID() == y.GetUID()
}

// commit makes the list the content of the store, in one step.
func (s *staging) commit(version string, lost bool) {
	i := s.informer
	i.mutate(func(tx *transaction) {
		for l := range tx.objects.trie.all() {
			if _, ok := s.seen[l.key]; !ok {
				tx.remove(l.key, nil)
			}
		}
		for _, item := range s.items {
			if obj, key, ok := i.prepare(item.Object); ok {
				tx.put(key, obj, item.Size)
				i.mutations.add(obj)
			}
		}
		if version != "" {
			tx.next.version = version
		}
	})
	if lost {
		i.store.waiters.lost()
	}
	i.markSynced()
}

// markSynced begins to tell the listeners what there is, after the first list.
func (i *Informer) markSynced() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.HasSynced() {
		return
	}
	close(i.synced)
	for _, l := range i.listeners {
		l.begin(i.store.snapshot())
	}
}

// failed tells whoever wants to know that a list or watch has failed.
func (i *Informer) failed(ctx context.Context, err error) {
	if i.onError != nil {
		i.onError(ctx, i.reflector(), err)
		return
	}
	logger := klog.FromContext(ctx)
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		logger.V(4).Info("Watch has expired", "err", err)
	default:
		logger.Error(err, "List or watch failed, trying again")
	}
}

// reflector returns what client-go passes to a watch error handler. It can be asked for its names.
func (i *Informer) reflector() *clientcache.Reflector {
	return clientcache.NewReflectorWithOptions(unaskable{}, i.example, clientcache.NewStore(keyOf), clientcache.ReflectorOptions{
		Name:            i.description,
		TypeDescription: i.description,
	})
}
