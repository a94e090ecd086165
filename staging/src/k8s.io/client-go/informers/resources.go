// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds are the kinds of the API that can be listed, by resource. The names of the built-in
// resources all follow from those of their kinds.
var kinds = sync.OnceValue(func() map[schema.GroupVersionResource]schema.GroupVersionKind {
	all := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if !scheme.Scheme.Recognizes(listKind(gvk)) {
			continue
		}
		obj, err := scheme.Scheme.New(gvk)
		if err != nil {
			continue
		}
		if _, ok := obj.(metav1.Object); ok {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			all[resource] = gvk
		}
	}
	return all
})

func listKind(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	return gvk.GroupVersion().WithKind(gvk.Kind + "List")
}

// resourceOf returns the resource of an object of the API.
func resourceOf(obj runtime.Object) (schema.GroupVersionResource, bool) {
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	for _, gvk := range gvks {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		if kinds()[resource] == gvk {
			return resource, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// objectOf returns an empty object of a resource of the API; nil if there is no such resource.
func objectOf(resource schema.GroupVersionResource) runtime.Object {
	gvk, ok := kinds()[resource]
	if !ok {
		return nil
	}
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil
	}
	return obj
}

// isGenerated says whether newFunc is one of client-go's generated accessors, for which this factory
// makes informers of its own.
func isGenerated(newFunc internalinterfaces.NewInformerFunc) bool {
	name := goruntime.FuncForPC(reflect.ValueOf(newFunc).Pointer()).Name()
	return strings.HasPrefix(name, "k8s.io/client-go/informers/") && strings.HasSuffix(name, ".defaultInformer-fm")
}
