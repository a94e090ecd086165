// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"
)

// metaOf returns the metadata of what is cached; nil if it has none.
func metaOf(obj any) metav1.Object {
	switch o := obj.(type) {
	case metav1.Object:
		return o
	case metav1.ObjectMetaAccessor:
		if m := o.GetObjectMeta(); m != nil {
			return m
		}
	}
	if m, err := meta.Accessor(obj); err == nil {
		return m
	}
	return nil
}

func uidOf(obj any) types.UID {
	if m := metaOf(obj); m != nil {
		return m.GetUID()
	}
	return ""
}

func versionOf(obj any) string {
	if m := metaOf(obj); m != nil {
		return m.GetResourceVersion()
	}
	return ""
}

// keyOf is namespace/name, or the name alone of what has no namespace, also for tombstones.
func keyOf(obj any) (string, error) {
	if m, ok := obj.(metav1.Object); ok {
		return clientcache.MetaObjectToName(m).String(), nil
	}
	return clientcache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}
