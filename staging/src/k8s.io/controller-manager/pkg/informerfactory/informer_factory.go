// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informerfactory joins a typed and a metadata informer factory, so that no resource is cached twice: what
// the typed factory knows comes from there, also for those who would be content with the metadata.
package informerfactory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
)

// InformerFactory makes informers for resources that are known only at run time.
type InformerFactory interface {
	// ForResource returns the informer of a resource. Its objects are typed or PartialObjectMetadata; read them by
	// meta.Accessor.
	ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error)
	// Start starts the informers that were asked for and does not wait for them.
	Start(stopCh <-chan struct{})
}

// NewInformerFactory joins two factories.
func NewInformerFactory(typed informers.SharedInformerFactory, metadata metadatainformer.SharedInformerFactory) InformerFactory {
	return &informerFactory{typed: typed, metadata: metadata}
}

type informerFactory struct {
	typed    informers.SharedInformerFactory
	metadata metadatainformer.SharedInformerFactory
}

func (f *informerFactory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	// The typed factory fails for resources that it has no type for, and for no other reason.
	if informer, err := f.typed.ForResource(resource); err == nil {
		return informer, nil
	}
	return f.metadata.ForResource(resource), nil
}

func (f *informerFactory) Start(stopCh <-chan struct{}) {
	f.typed.Start(stopCh)
	f.metadata.Start(stopCh)
}
