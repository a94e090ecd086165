// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metadatainformer makes informers of the metadata of any resource, built-in or not. Its
// Factory implements client-go's metadatainformer.SharedInformerFactory, and can also stop one
// informer: that of a resource that is gone, say, because its CustomResourceDefinition is.
package metadatainformer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	clientmetadatainformer "k8s.io/client-go/metadata/metadatainformer"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// Factory makes one informer per resource and runs them.
type Factory struct {
	client    metadata.Interface
	namespace string
	tweak     clientmetadatainformer.TweakListOptionsFunc
	resync    time.Duration
	transform clientcache.TransformFunc
	sources   informers.SourceFunc
	informers cache.Group[schema.GroupVersionResource]
}

var _ clientmetadatainformer.SharedInformerFactory = (*Factory)(nil)

// SharedInformerOption configures a Factory.
type SharedInformerOption func(*Factory)

// WithTransform changes each object before it is cached.
func WithTransform(transform clientcache.TransformFunc) SharedInformerOption {
	return func(f *Factory) { f.transform = transform }
}

// WithNamespace restricts all informers to a namespace.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *Factory) { f.namespace = namespace }
}

// WithTweakListOptions changes the options of each list and watch.
func WithTweakListOptions(tweak clientmetadatainformer.TweakListOptionsFunc) SharedInformerOption {
	return func(f *Factory) { f.tweak = tweak }
}

// WithSources lets objects come from elsewhere than the client. They are PartialObjectMetadata.
func WithSources(sources informers.SourceFunc) SharedInformerOption {
	return func(f *Factory) { f.sources = sources }
}

// NewSharedInformerFactory returns a factory for all namespaces.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) *Factory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory for a namespace, and with options that tweak
// changes.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweak clientmetadatainformer.TweakListOptionsFunc) *Factory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweak))
}

// NewSharedInformerFactoryWithOptions returns a factory. The default resync period is that of handlers
// that do not say one.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration, options ...SharedInformerOption) *Factory {
	f := &Factory{client: client, resync: defaultResync}
	for _, option := range options {
		option(f)
	}
	return f
}

// ForResource returns the informer of a resource, and makes it if there is none.
func (f *Factory) ForResource(resource schema.GroupVersionResource) clientinformers.GenericInformer {
	informer := f.informers.Get(resource, func() clientcache.SharedIndexInformer {
		return cache.NewInformer(f.source(resource), &metav1.PartialObjectMetadata{}, cache.Options{
			Description:  "metadata/" + resource.GroupResource().String(),
			ResyncPeriod: f.resync,
			Indexers:     clientcache.Indexers{clientcache.NamespaceIndex: clientcache.MetaNamespaceIndexFunc},
			Transform:    f.transform,
		})
	})
	return informers.Generic(informer, resource.GroupResource())
}

func (f *Factory) source(resource schema.GroupVersionResource) cache.Source {
	var source cache.Source
	if f.sources != nil {
		source = f.sources(resource, f.namespace)
	}
	if source == nil {
		source = clientSource(f.client, resource, f.namespace)
	}
	return informers.Tweaked(source, f.tweak)
}

func clientSource(client metadata.Interface, resource schema.GroupVersionResource, namespace string) cache.Source {
	lw := &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).Namespace(namespace).List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(resource).Namespace(namespace).Watch(ctx, opts)
		},
	}
	return cache.NewListWatchSource(clientcache.ToListWatcherWithWatchListSemantics(lw, client))
}

// HasInformer says whether the resource has an informer already.
func (f *Factory) HasInformer(resource schema.GroupVersionResource) bool {
	return f.informers.Has(resource)
}

// Existing returns the informer of the resource if there is one already; else nil.
func (f *Factory) Existing(resource schema.GroupVersionResource) clientcache.SharedIndexInformer {
	return f.informers.Peek(resource)
}

// Start runs the informers that have been asked for since the last call, until stopCh is closed. It
// does not wait for them. After Shutdown it does nothing.
func (f *Factory) Start(stopCh <-chan struct{}) { f.informers.Start(wait.ContextForChannel(stopCh)) }

// StopInformer stops the informer of a resource and waits until it has stopped. Its memory is free
// once nobody holds it or its lister any more; ForResource makes a new one.
func (f *Factory) StopInformer(resource schema.GroupVersionResource) { f.informers.Stop(resource) }

// ReleaseInformer is StopInformer if nobody listens to the informer.
func (f *Factory) ReleaseInformer(resource schema.GroupVersionResource) {
	f.informers.Release(resource)
}

// Shutdown lets no more informers start, and waits until those that run have stopped: their stop
// channels must be closed, or become so.
func (f *Factory) Shutdown() { f.informers.Shutdown() }

// WaitForCacheSync waits until the started informers have filled their caches or stopCh is closed,
// and says which have.
func (f *Factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	return f.informers.WaitForSync(wait.ContextForChannel(stopCh))
}

// Statuses returns what the informers are doing, in the order of their names.
func (f *Factory) Statuses(now time.Time) []cache.Status { return f.informers.Statuses(now) }
