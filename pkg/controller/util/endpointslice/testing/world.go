// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

// Package testing plays the API server and the watch for unit tests of controllers that write
// EndpointSlices or Endpoints: a fake client that numbers what is written, and caches that show it
// when the test says so.
package testing

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// World is a fake API server and the caches of what is in it. It is for one goroutine.
type World struct {
	Client    *fake.Clientset
	Informers informers.SharedInformerFactory

	version int
	pending []change
}

// change is what a watch has yet to show.
type change struct {
	resource string
	old, cur metav1.Object // cur is nil when old was deleted, old when cur was created
}

// New returns an empty World.
func New() *World {
	client := fake.NewClientset()
	w := &World{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)}
	for _, resource := range []string{"endpointslices", "endpoints"} {
		client.PrependReactor("create", resource, w.create)
		client.PrependReactor("update", resource, w.update)
		client.PrependReactor("delete", resource, w.delete)
	}
	return w
}

// Add puts objects into the API server and into the caches.
func (w *World) Add(objects ...runtime.Object) {
	for _, obj := range objects {
		accessor := must(meta.Accessor(obj))
		w.version++
		accessor.SetResourceVersion(strconv.Itoa(w.version))
		if accessor.GetUID() == "" {
			accessor.SetUID(types.UID(fmt.Sprint("uid-", w.version)))
		}
		if err := w.Client.Tracker().Add(obj.DeepCopyObject()); err != nil {
			panic(err)
		}
		if err := w.Indexer(obj).Add(obj); err != nil {
			panic(err)
		}
	}
	w.Client.ClearActions()
}

// Indexer returns the cache of an object's kind.
func (w *World) Indexer(obj runtime.Object) cache.Indexer {
	core := w.Informers.Core().V1()
	switch obj.(type) {
	case *v1.Pod:
		return core.Pods().Informer().GetIndexer()
	case *v1.Service:
		return core.Services().Informer().GetIndexer()
	case *v1.Node:
		return core.Nodes().Informer().GetIndexer()
	case *v1.Endpoints:
		return core.Endpoints().Informer().GetIndexer()
	case *discovery.EndpointSlice:
		return w.Informers.Discovery().V1().EndpointSlices().Informer().GetIndexer()
	}
	panic(fmt.Sprintf("no cache of %T", obj))
}

// Deliver shows the caches, and then the handler if there is one, what was written to a resource.
func (w *World) Deliver(resource string, handler cache.ResourceEventHandler) {
	var later []change
	for _, c := range w.pending {
		if c.resource != resource {
			later = append(later, c)
			continue
		}
		w.show(c)
		switch {
		case handler == nil:
		case c.old == nil:
			handler.OnAdd(c.cur, false)
		case c.cur == nil:
			handler.OnDelete(c.old)
		default:
			handler.OnUpdate(c.old, c.cur)
		}
	}
	w.pending = later
}

func (w *World) show(c change) {
	last := c.cur
	if last == nil {
		last = c.old
	}
	obj, ok := last.(runtime.Object)
	if !ok {
		panic(fmt.Sprintf("%T is no object", last))
	}
	apply := w.Indexer(obj).Update
	if c.cur == nil {
		apply = w.Indexer(obj).Delete
	}
	if err := apply(last); err != nil {
		panic(err)
	}
}

// Requests lists the writes since the last call, as "verb resource name".
func (w *World) Requests() []string {
	var all []string
	for _, action := range w.Client.Actions() {
		request := action.GetVerb() + " " + action.GetResource().Resource
		switch a := action.(type) {
		case clienttesting.DeleteAction:
			request += " " + a.GetName()
		case clienttesting.CreateAction: // and UpdateAction, which has the same method
			request += " " + must(meta.Accessor(a.GetObject())).GetName()
		}
		all = append(all, request)
	}
	w.Client.ClearActions()
	return all
}

func (w *World) create(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok {
		return false, nil, nil
	}
	obj := must(meta.Accessor(create.GetObject()))
	w.version++
	if obj.GetName() == "" {
		obj.SetName(fmt.Sprint(obj.GetGenerateName(), w.version))
	}
	obj.SetUID(types.UID(fmt.Sprint("uid-", w.version)))
	obj.SetNamespace(action.GetNamespace())
	obj.SetGeneration(1)
	obj.SetResourceVersion(strconv.Itoa(w.version))
	w.pending = append(w.pending, change{resource: action.GetResource().Resource, cur: clone(obj)})
	return false, nil, nil
}

func (w *World) update(action clienttesting.Action) (bool, runtime.Object, error) {
	update, ok := action.(clienttesting.UpdateAction)
	if !ok {
		return false, nil, nil
	}
	obj := must(meta.Accessor(update.GetObject()))
	old, err := w.Client.Tracker().Get(action.GetResource(), action.GetNamespace(), obj.GetName())
	if err != nil {
		return true, nil, err
	}
	live := must(meta.Accessor(old))
	if obj.GetResourceVersion() != live.GetResourceVersion() {
		return true, nil, fmt.Errorf("update of %s under resourceVersion %q, which is %q", obj.GetName(), obj.GetResourceVersion(), live.GetResourceVersion())
	}
	w.version++
	obj.SetGeneration(live.GetGeneration() + 1)
	obj.SetResourceVersion(strconv.Itoa(w.version))
	w.pending = append(w.pending, change{resource: action.GetResource().Resource, old: clone(live), cur: clone(obj)})
	return false, nil, nil
}

func (w *World) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion, ok := action.(clienttesting.DeleteAction)
	if !ok {
		return false, nil, nil
	}
	old, err := w.Client.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.GetName())
	if err != nil {
		return true, nil, err
	}
	live := must(meta.Accessor(old))
	preconditions := deletion.GetDeleteOptions().Preconditions
	if preconditions == nil || preconditions.UID == nil || *preconditions.UID != live.GetUID() {
		return true, nil, fmt.Errorf("deletion of %s without its UID", deletion.GetName())
	}
	w.version++
	gone := clone(live)
	gone.SetResourceVersion(strconv.Itoa(w.version))
	w.pending = append(w.pending, change{resource: action.GetResource().Resource, old: gone})
	return false, nil, nil
}

func clone(obj metav1.Object) metav1.Object {
	original, ok := obj.(runtime.Object)
	if !ok {
		panic(fmt.Sprintf("%T is no object", obj))
	}
	return must(meta.Accessor(original.DeepCopyObject()))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
