// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CustomKind describes a kind of a test's own, in version v1, whose objects may hold anything.
type CustomKind struct {
	Group, Plural, Kind string
	// Scalable adds the scale sub-resource, on spec.replicas, status.replicas and status.selector.
	Scalable bool
	// ClusterScoped ones are in no namespace.
	ClusterScoped bool
}

// Resource returns the kind's resource.
func (k CustomKind) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: "v1", Resource: k.Plural}
}

func (k CustomKind) definition() *unstructured.Unstructured {
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": map[string]any{
				"spec":   map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			},
		}},
	}
	if k.Scalable {
		version["subresources"] = map[string]any{"scale": map[string]any{
			"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
		}}
	}
	scope := "Namespaced"
	if k.ClusterScoped {
		scope = "Cluster"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.Plural + "." + k.Group},
		"spec": map[string]any{
			"group": k.Group, "scope": scope,
			"names":    map[string]any{"plural": k.Plural, "kind": k.Kind, "listKind": k.Kind + "List"},
			"versions": []any{version},
		},
	}}
}

// CustomResource makes the API server serve a kind until the end of the test, and returns the
// administrator's client of it once it is discovered and served.
func (e *Env) CustomResource(t testing.TB, kind CustomKind) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(e.Config())
	if err != nil {
		t.Fatal(err)
	}
	definition := kind.definition()
	if _, err := client.Resource(crdResource).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the definition of %s: %v", kind.Plural, err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		err := client.Resource(crdResource).Delete(ctx, definition.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting the definition of %s: %v", kind.Plural, err)
		}
	})
	custom := client.Resource(kind.Resource())
	e.WaitFor(t, kind.Plural+" to be served", cleanupTimeout, func(ctx context.Context) (bool, error) {
		if _, err := e.Client.Discovery().ServerResourcesForGroupVersion(kind.Resource().GroupVersion().String()); err != nil {
			return false, err
		}
		_, err := custom.List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	return custom
}
