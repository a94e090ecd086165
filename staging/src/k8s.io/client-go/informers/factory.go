// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// Factory makes one informer per type and runs them. It implements client-go's
// informers.SharedInformerFactory.
type Factory struct {
	client    kubernetes.Interface
	namespace string
	tweak     internalinterfaces.TweakListOptionsFunc
	transform clientcache.TransformFunc
	resync    time.Duration
	resyncOf  map[reflect.Type]time.Duration
	name      *clientcache.InformerName
	provider  clientcache.InformerMetricsProvider
	sources   SourceFunc
	informers cache.Group[reflect.Type]
}

var _ clientinformers.SharedInformerFactory = (*Factory)(nil)

// NewSharedInformerFactory returns a factory for all namespaces.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) *Factory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewSharedInformerFactoryWithOptions returns a factory. The default resync period is that of handlers
// that do not say one.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration, options ...SharedInformerOption) *Factory {
	f := &Factory{
		client:   client,
		resync:   defaultResync,
		resyncOf: map[reflect.Type]time.Duration{},
	}
	for _, option := range options {
		option(f)
	}
	return f
}

// InformerFor returns the informer of the object's type, and makes it if there is none. It is one of
// this module's for every type of the API, even though newFunc would make one of client-go's; a
// newFunc that is not client-go's own (one with a field selector, say) is respected, as are types
// that are not of the API.
func (f *Factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) clientcache.SharedIndexInformer {
	objType := reflect.TypeOf(obj)
	return f.informers.Get(objType, func() clientcache.SharedIndexInformer {
		resync, ok := f.resyncOf[objType]
		if !ok {
			resync = f.resync
		}
		return f.newInformer(obj, newFunc, resync)
	})
}

func (f *Factory) newInformer(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc, resync time.Duration) clientcache.SharedIndexInformer {
	resource, known := resourceOf(obj)
	if !known || newFunc != nil && !isGenerated(newFunc) {
		informer := newFunc(f.client, resync)
		if f.transform != nil {
			// It fails only for an informer that runs, which a new one does not.
			_ = informer.SetTransform(f.transform)
		}
		return informer
	}
	opts := cache.Options{
		Description:  describe(resource),
		ResyncPeriod: resync,
		Indexers:     clientcache.Indexers{clientcache.NamespaceIndex: clientcache.MetaNamespaceIndexFunc},
		Transform:    f.transform,
	}
	if f.name != nil {
		opts.Metrics = cache.NewMetrics(f.provider, f.name.WithResource(resource))
	}
	return cache.NewInformer(f.source(resource), obj, opts)
}

// describe names a resource as users do: pods, deployments.apps.
func describe(resource schema.GroupVersionResource) string { return resource.GroupResource().String() }

func (f *Factory) source(resource schema.GroupVersionResource) cache.Source {
	if f.sources != nil {
		if source := f.sources(resource, f.namespace); source != nil {
			return Tweaked(source, f.tweak)
		}
	}
	return clientSource(f.client, resource, f.namespace, f.tweak)
}

// ForResource returns the informer of a resource of the API.
func (f *Factory) ForResource(resource schema.GroupVersionResource) (clientinformers.GenericInformer, error) {
	obj := objectOf(resource)
	if obj == nil {
		return nil, fmt.Errorf("no informer found for %v", resource)
	}
	return Generic(f.InformerFor(obj, nil), resource.GroupResource()), nil
}

// HasInformer says whether the resource has an informer already.
func (f *Factory) HasInformer(resource schema.GroupVersionResource) bool {
	obj := objectOf(resource)
	return obj != nil && f.informers.Has(reflect.TypeOf(obj))
}

// Existing returns the informer of the resource if there is one already; else nil.
func (f *Factory) Existing(resource schema.GroupVersionResource) clientcache.SharedIndexInformer {
	obj := objectOf(resource)
	if obj == nil {
		return nil
	}
	return f.informers.Peek(reflect.TypeOf(obj))
}

// InformerName is the name of the informers in their metrics; nil if they have none.
func (f *Factory) InformerName() *clientcache.InformerName { return f.name }

// Start is StartWithContext, until stopCh is closed.
func (f *Factory) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext runs the informers that have been asked for since the last call, until ctx is
// done. It does not wait for them. After Shutdown it does nothing.
func (f *Factory) StartWithContext(ctx context.Context) { f.informers.Start(ctx) }

// Shutdown lets no more informers start, and waits until those that run have stopped: their contexts
// must be done, or become so.
func (f *Factory) Shutdown() { f.informers.Shutdown() }

// WaitForCacheSync waits until the started informers have filled their caches or stopCh is closed,
// and says which have.
func (f *Factory) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	return f.informers.WaitForSync(wait.ContextForChannel(stopCh))
}

// WaitForCacheSyncWithContext waits until the started informers have filled their caches or ctx is
// done, and says which have.
func (f *Factory) WaitForCacheSyncWithContext(ctx context.Context) clientcache.SyncResult {
	result := clientcache.SyncResult{Synced: f.informers.WaitForSync(ctx)}
	for _, synced := range result.Synced {
		if !synced {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

// Statuses returns what the informers are doing, in the order of their names.
func (f *Factory) Statuses(now time.Time) []cache.Status { return f.informers.Statuses(now) }

// Generic returns an informer with a lister of its objects.
func Generic(informer clientcache.SharedIndexInformer, resource schema.GroupResource) clientinformers.GenericInformer {
	return genericInformer{informer: informer, resource: resource}
}

type genericInformer struct {
	informer clientcache.SharedIndexInformer
	resource schema.GroupResource
}

func (i genericInformer) Informer() clientcache.SharedIndexInformer { return i.informer }

func (i genericInformer) Lister() clientcache.GenericLister {
	return clientcache.NewGenericLister(i.informer.GetIndexer(), i.resource)
}
