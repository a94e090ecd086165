// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Sources makes sources that share one table. Its methods are what informer factories ask for a
// source; they may be called concurrently.
type Sources struct {
	client rest.Interface
	kinds  *Kinds
	table  *Table
	types  map[schema.GroupVersionResource]runtime.Object
}

// NewSources makes sources that send their requests through the client; any one of the API server's
// will do: a clientset's CoreV1().RESTClient(), say. The table may be that of other sources.
func NewSources(client rest.Interface, kinds *Kinds, table *Table) *Sources {
	s := &Sources{client: client, kinds: kinds, table: table, types: map[schema.GroupVersionResource]runtime.Object{}}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if obj, ok := reflect.New(typ).Interface().(object); ok {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			s.types[resource] = obj
		}
	}
	return s
}

// Typed returns a source of the objects of a resource of Kubernetes. It is nil for a resource that
// client-go's scheme does not know, or that protobuf cannot encode.
func (s *Sources) Typed(resource schema.GroupVersionResource, namespace string) cache.Source {
	obj := s.types[resource]
	if obj == nil {
		return nil
	}
	kind, err := s.kinds.For(obj)
	if err != nil {
		return nil
	}
	return NewSource(s.client, resource, namespace, kind, s.table)
}

// Metadata returns a source of the metadata of a resource's objects, whatever they are.
func (s *Sources) Metadata(resource schema.GroupVersionResource, namespace string) cache.Source {
	return NewSource(s.client, resource, namespace, s.kinds.Metadata(), s.table)
}
