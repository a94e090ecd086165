// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informerfactory joins a typed and a metadata informer factory, so that no resource is cached twice: a
// resource that has a typed informer comes from there, also for those who would be content with the metadata, and a
// resource that nobody reads in full is held as metadata only.
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

// asked is a factory that knows which informers were asked for. The factories of this project do; client-go's do not.
type asked interface {
	HasInformer(resource schema.GroupVersionResource) bool
}

// Releaser is a factory that can give up one informer, where the others go on. What NewInformerFactory returns is one.
type Releaser interface {
	// ReleaseInformer stops the informer of the resource if nobody listens to it. ForResource makes a new one.
	ReleaseInformer(resource schema.GroupVersionResource)
}

// NewInformerFactory joins two factories. Whoever wants a typed informer should have asked for it before anyone asks
// here for that resource: one that exists as metadata already is not made to be typed.
//
// If the typed factory cannot tell what it was asked for, all resources that have a type are held in full.
func NewInformerFactory(typed informers.SharedInformerFactory, metadata metadatainformer.SharedInformerFactory) InformerFactory {
	return &informerFactory{typed: typed, metadata: metadata}
}

type informerFactory struct {
	typed    informers.SharedInformerFactory
	metadata metadatainformer.SharedInformerFactory
}

func (f *informerFactory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	if typed, ok := f.typed.(asked); ok && !typed.HasInformer(resource) {
		return f.metadata.ForResource(resource), nil
	}
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

// ReleaseInformer gives up the informer of a resource that is gone: if it is held as metadata, and nobody listens to
// it any more, it is stopped and what it holds is freed. It does nothing if the factory cannot.
func (f *informerFactory) ReleaseInformer(resource schema.GroupVersionResource) {
	if metadata, ok := f.metadata.(Releaser); ok {
		metadata.ReleaseInformer(resource)
	}
}
