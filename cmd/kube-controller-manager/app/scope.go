// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// informerScope is one controller's hold on the informers that all controllers share. It remembers
// the event handlers that the controller adds, so that they can be taken off again when it has
// failed and is built anew, and it contains a panic in a handler, which would otherwise end the
// process: the controller has missed an event then, so failed is called to have it rebuilt.
type informerScope struct {
	controller string // its name
	failed     func(error)

	// mu guards the following fields.
	mu       sync.Mutex
	closed   bool
	handlers []registration
}

type registration struct {
	informer cache.SharedIndexInformer
	handle   cache.ResourceEventHandlerRegistration
}

// close takes the controller's handlers off the informers. Calling it again does nothing.
func (s *informerScope) close() error {
	s.mu.Lock()
	handlers := s.handlers
	s.closed, s.handlers = true, nil
	s.mu.Unlock()

	var errs []error
	for _, r := range handlers {
		errs = append(errs, r.informer.RemoveEventHandler(r.handle))
	}
	return errors.Join(errs...)
}

func (s *informerScope) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *informerScope) wrap(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	return &scopedInformer{SharedIndexInformer: informer, scope: s}
}

func (s *informerScope) added(informer cache.SharedIndexInformer, handle cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, registration{informer, handle})
	return handle, nil
}

func (s *informerScope) removed(handle cache.ResourceEventHandlerRegistration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = slices.DeleteFunc(s.handlers, func(r registration) bool { return r.handle == handle })
}

// scopedInformer is a shared informer on which handlers are added in a scope.
type scopedInformer struct {
	cache.SharedIndexInformer
	scope *informerScope
}

func (i *scopedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandler(&scopedHandler{handler, i.scope})
	return i.scope.added(i.SharedIndexInformer, handle, err)
}

func (i *scopedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(&scopedHandler{handler, i.scope}, resync)
	return i.scope.added(i.SharedIndexInformer, handle, err)
}

func (i *scopedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandlerWithOptions(&scopedHandler{handler, i.scope}, options)
	return i.scope.added(i.SharedIndexInformer, handle, err)
}

// RemoveEventHandler forgets the handler, too: controllers come and go on resources that do.
func (i *scopedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	i.scope.removed(handle)
	return i.SharedIndexInformer.RemoveEventHandler(handle)
}

// scopedHandler passes events on while its scope is open, and survives a panic.
type scopedHandler struct {
	handler cache.ResourceEventHandler
	scope   *informerScope
}

// String names the handler on the informers' debug page.
func (h *scopedHandler) String() string { return h.scope.controller }

func (h *scopedHandler) OnAdd(obj any, isInInitialList bool) {
	h.guard(func() { h.handler.OnAdd(obj, isInInitialList) })
}

func (h *scopedHandler) OnUpdate(oldObj, newObj any) {
	h.guard(func() { h.handler.OnUpdate(oldObj, newObj) })
}

func (h *scopedHandler) OnDelete(obj any) {
	h.guard(func() { h.handler.OnDelete(obj) })
}

func (h *scopedHandler) guard(deliver func()) {
	if h.scope.isClosed() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.scope.failed(&panicError{where: "event handler", value: p, stack: debug.Stack()})
		}
	}()
	deliver()
}

// panicError is a panic that was contained.
type panicError struct {
	where string
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic in its %s: %v", e.where, e.value) }

// scopedFactory is a shared informer factory as one controller sees it.
type scopedFactory struct {
	informers.SharedInformerFactory
	scope *informerScope
}

func (f *scopedFactory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.scope.wrap(f.SharedInformerFactory.InformerFor(obj, newFunc))
}

func (f *scopedFactory) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	informer, err := f.SharedInformerFactory.ForResource(gvr)
	if err != nil {
		return nil, err
	}
	return &scopedGenericInformer{informer, f.scope}, nil
}

// The group accessors repeat client-go's, so that what they return asks this factory for informers.

func (f *scopedFactory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}
func (f *scopedFactory) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(f, "", nil)
}
func (f *scopedFactory) Apps() apps.Interface                 { return apps.New(f, "", nil) }
func (f *scopedFactory) Autoscaling() autoscaling.Interface   { return autoscaling.New(f, "", nil) }
func (f *scopedFactory) Batch() batch.Interface               { return batch.New(f, "", nil) }
func (f *scopedFactory) Certificates() certificates.Interface { return certificates.New(f, "", nil) }
func (f *scopedFactory) Coordination() coordination.Interface { return coordination.New(f, "", nil) }
func (f *scopedFactory) Core() core.Interface                 { return core.New(f, "", nil) }
func (f *scopedFactory) Discovery() discovery.Interface       { return discovery.New(f, "", nil) }
func (f *scopedFactory) Events() events.Interface             { return events.New(f, "", nil) }
func (f *scopedFactory) Extensions() extensions.Interface     { return extensions.New(f, "", nil) }
func (f *scopedFactory) Flowcontrol() flowcontrol.Interface   { return flowcontrol.New(f, "", nil) }
func (f *scopedFactory) Lifecycle() lifecycle.Interface       { return lifecycle.New(f, "", nil) }
func (f *scopedFactory) Networking() networking.Interface     { return networking.New(f, "", nil) }
func (f *scopedFactory) Node() node.Interface                 { return node.New(f, "", nil) }
func (f *scopedFactory) Policy() policy.Interface             { return policy.New(f, "", nil) }
func (f *scopedFactory) Rbac() rbac.Interface                 { return rbac.New(f, "", nil) }
func (f *scopedFactory) Resource() resource.Interface         { return resource.New(f, "", nil) }
func (f *scopedFactory) Scheduling() scheduling.Interface     { return scheduling.New(f, "", nil) }
func (f *scopedFactory) Storage() storage.Interface           { return storage.New(f, "", nil) }
func (f *scopedFactory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, "", nil)
}

// scopedMetadataFactory is the object-or-metadata factory as one controller sees it.
type scopedMetadataFactory struct {
	informerfactory.InformerFactory
	scope *informerScope
}

func (f *scopedMetadataFactory) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	informer, err := f.InformerFactory.ForResource(gvr)
	if err != nil {
		return nil, err
	}
	return &scopedGenericInformer{informer, f.scope}, nil
}

// ReleaseInformer implements informerfactory.Releaser.
func (f *scopedMetadataFactory) ReleaseInformer(gvr schema.GroupVersionResource) {
	release(f.InformerFactory, gvr)
}

// release gives up an informer, if the factory can.
func release(f informerfactory.InformerFactory, gvr schema.GroupVersionResource) {
	if releaser, ok := f.(informerfactory.Releaser); ok {
		releaser.ReleaseInformer(gvr)
	}
}

type scopedGenericInformer struct {
	informers.GenericInformer
	scope *informerScope
}

func (i *scopedGenericInformer) Informer() cache.SharedIndexInformer {
	return i.scope.wrap(i.GenericInformer.Informer())
}

// inScope returns the context as one controller sees it: its informers remember what it adds.
func (cc ControllerContext) inScope(scope *informerScope) ControllerContext {
	cc.InformerFactory = &scopedFactory{cc.InformerFactory, scope}
	cc.ObjectOrMetadataInformerFactory = &scopedMetadataFactory{cc.ObjectOrMetadataInformerFactory, scope}
	return cc
}
