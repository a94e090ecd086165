// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers/internalinterfaces"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// SharedInformerOption configures a Factory.
type SharedInformerOption func(*Factory)

// SourceFunc says where the objects of a resource come from, in one namespace unless that is empty.
// Nil: from the client.
type SourceFunc func(resource schema.GroupVersionResource, namespace string) cache.Source

// WithSources lets objects come from elsewhere than the client.
func WithSources(sources SourceFunc) SharedInformerOption {
	return func(f *Factory) { f.sources = sources }
}

// WithNamespace restricts all informers to a namespace.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *Factory) { f.namespace = namespace }
}

// WithTweakListOptions changes the options of each list and watch.
func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(f *Factory) { f.tweak = tweak }
}

// WithTransform changes each object before it is cached.
func WithTransform(transform clientcache.TransformFunc) SharedInformerOption {
	return func(f *Factory) { f.transform = transform }
}

// WithCustomResyncConfig sets the resync periods of the types of these objects.
func WithCustomResyncConfig(periods map[metav1.Object]time.Duration) SharedInformerOption {
	return func(f *Factory) {
		for obj, period := range periods {
			f.resyncOf[reflect.TypeOf(obj)] = period
		}
	}
}

// WithInformerName names the informers in their metrics.
func WithInformerName(name *clientcache.InformerName) SharedInformerOption {
	return func(f *Factory) { f.name = name }
}

// WithMetricsProvider says where informers that have a name measure.
func WithMetricsProvider(provider clientcache.InformerMetricsProvider) SharedInformerOption {
	return func(f *Factory) { f.provider = provider }
}
