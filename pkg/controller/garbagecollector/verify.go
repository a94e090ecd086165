// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	// pendingRecheck is how often those few look whether all first lists have come that wait for it.
	pendingRecheck = 200 * time.Millisecond
	// An owner that no informer shows is looked up again after firstCheck, then at doubling
	// intervals up to maxCheck.
	firstCheck, maxCheck = 100 * time.Millisecond, 2 * time.Minute
)

// lookups remembers the owners that were looked up and are gone, and keeps one owner from being
// looked up by two workers at a time: dependents in many namespaces may name one cluster-scoped
// owner before its scope is known.
type lookups struct {
	absent *lru.Cache

	// mu guards the following field.
	mu      sync.Mutex
	running map[identity]chan struct{}
}

func newLookups() *lookups {
	return &lookups{absent: lru.New(absentOwners), running: map[identity]chan struct{}{}}
}

// do calls lookup unless the owner is known to be absent or becomes so meanwhile.
func (l *lookups) do(ctx context.Context, id identity, lookup func() (*metav1.PartialObjectMetadata, error)) (*metav1.PartialObjectMetadata, error) {
	for {
		l.mu.Lock()
		if _, gone := l.absent.Get(id); gone {
			l.mu.Unlock()
			return nil, nil
		}
		running := l.running[id]
		if running == nil {
			break
		}
		l.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	done := make(chan struct{})
	l.running[id] = done
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.running, id)
		close(done)
	}()
	found, err := lookup()
	if err == nil && found == nil {
		l.absent.Add(id, struct{}{})
	}
	return found, err
}

// verify looks up an owner that no informer shows.
func (gc *GarbageCollector) verify(ctx context.Context, id identity, version string) error {
	b := gc.builder
	if m := b.monitorOf(id.kind); m != nil {
		// First parked, then looked at: the monitor becomes ready, then looks whether one is parked.
		m.parked.Store(true)
		if rest := b.pending(m); rest > 0 {
			return worker.RequeueAfter(rest)
		}
		if m.get(id.namespace, id.name, id.uid) != nil {
			return nil // Its change is in the queue of the graph.
		}
	}
	gvr, namespaced, err := gc.resourceOf(id.kind.GroupKind, version)
	if meta.IsNoMatchError(err) {
		klog.FromContext(ctx).V(5).Info("Unable to get REST mapping for an owner, its dependents stay", "owner", id)
		return worker.RequeueAfter(checkAfter(b.graph.unverified(id)))
	}
	if err != nil {
		return fmt.Errorf("unable to get REST mapping for %s: %w", id, err)
	}
	target := id
	switch {
	case !namespaced:
		target.namespace = ""
	case id.namespace == "":
		b.graph.setInvalid(id)
		return worker.Terminal(fmt.Errorf("cluster-scoped objects cannot refer to namespaced owners: %s is no valid owner, its dependents stay", id))
	}
	found, err := gc.lookups.do(ctx, target, func() (*metav1.PartialObjectMetadata, error) { return gc.getLive(ctx, gvr, target) })
	if err != nil {
		return fmt.Errorf("looking up owner %s: %w", id, err)
	}
	if found == nil {
		b.enqueue(b.graph.notFound(id))
		return nil
	}
	o := objectOf(id, found)
	e, checks := b.graph.found(id, o.deleting, o.foreground)
	b.enqueue(e)
	if checks == 0 {
		return nil // Observed meanwhile, or nobody refers to it any longer.
	}
	return worker.RequeueAfter(checkAfter(checks))
}

// checkAfter returns the wait after so many look-ups.
func checkAfter(checks int) time.Duration {
	if checks > 12 {
		return maxCheck
	}
	return min(firstCheck<<max(checks-1, 0), maxCheck)
}

// resourceOf returns the resource of a kind, in the version of the reference if it is served, else
// in another: whether an object exists does not depend on the version.
func (gc *GarbageCollector) resourceOf(gk schema.GroupKind, version string) (schema.GroupVersionResource, bool, error) {
	mapping, err := gc.mapper.RESTMapping(gk, version)
	if meta.IsNoMatchError(err) {
		mapping, err = gc.mapper.RESTMapping(gk)
	}
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// getLive reads an object's metadata from the API server. nil without an error: it does not exist,
// or its name belongs to another one by now.
func (gc *GarbageCollector) getLive(ctx context.Context, gvr schema.GroupVersionResource, id identity) (*metav1.PartialObjectMetadata, error) {
	obj, err := gc.metadataClient.Resource(gvr).Namespace(id.namespace).Get(ctx, id.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, nil
	case err != nil:
		// A 404 that is not about the object says that the resource is not served just now.
		return nil, err
	case obj.UID != id.uid:
		return nil, nil
	}
	return obj, nil
}
