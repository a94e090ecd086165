// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informerfactory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Existing is a factory that can be asked for an informer without making it. The factories of this project can be.
type Existing interface {
	// Existing returns the informer of the resource if there is one already; else nil.
	Existing(resource schema.GroupVersionResource) cache.SharedIndexInformer
}

// Contents counts the objects of a namespace in the informers that factories have made for whatever purpose.
type Contents []Existing

// Count returns how many objects of the resource are in the namespace. known is false when no informer of the
// resource has synced.
func (c Contents) Count(resource schema.GroupVersionResource, namespace string) (count int, known bool) {
	for _, factory := range c {
		informer := factory.Existing(resource)
		if informer == nil || !informer.HasSynced() || informer.IsStopped() {
			continue
		}
		if keys, err := informer.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace); err == nil {
			return len(keys), true
		}
	}
	return 0, false
}
