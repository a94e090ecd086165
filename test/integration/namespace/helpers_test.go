// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package namespace runs the namespace-controller against a real API server.
package namespace

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/kcm-dev/kcm/pkg/controller/namespace"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

const (
	serviceAccount = "namespace-controller"
	finalizer      = "example.com/hold"
	timeout        = 60 * time.Second
)

var (
	customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices     = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	widgets         = schema.GroupVersionResource{Group: "kcm.example.com", Version: "v1", Resource: "widgets"}
)

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	framework.Main(m)
}

// start runs the namespace-controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) {
	t.Helper()
	c := env.Controllers(t, opts)
	client := c.Client(serviceAccount)
	metadataClient, err := metadata.NewForConfig(c.Config(serviceAccount))
	if err != nil {
		t.Fatal(err)
	}
	controller := namespace.NewNamespaceController(c.Ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		c.Informers.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	c.Run("namespace-controller", func(ctx context.Context) { controller.Run(ctx, 10) })
}

func deleteNamespace(t *testing.T, env *framework.Env, ns string) {
	t.Helper()
	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func waitGone(t *testing.T, env *framework.Env, ns string) {
	t.Helper()
	env.WaitFor(t, "namespace "+ns+" to go", timeout, func(ctx context.Context) (bool, error) {
		live, err := env.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("conditions: %s", describe(live))
	})
}

func describe(ns *corev1.Namespace) string {
	var texts []string
	for _, c := range ns.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(texts, "; ")
}

// waitConditions waits until all five conditions are there, those in bad are True with a message that
// contains the text, and the others are False.
func waitConditions(t *testing.T, env *framework.Env, ns string, bad map[corev1.NamespaceConditionType]string) {
	t.Helper()
	env.WaitFor(t, fmt.Sprintf("conditions %v", bad), timeout, func(ctx context.Context) (bool, error) {
		live, err := env.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if len(live.Status.Conditions) != 5 {
			return false, fmt.Errorf("conditions: %s", describe(live))
		}
		for _, c := range live.Status.Conditions {
			text, isBad := bad[c.Type]
			if isBad != (c.Status == corev1.ConditionTrue) || !strings.Contains(c.Message, text) {
				return false, fmt.Errorf("conditions: %s", describe(live))
			}
		}
		return true, nil
	})
}

func createConfigMap(t *testing.T, env *framework.Env, ns, name string, finalizers ...string) {
	t.Helper()
	_, err := env.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func releaseConfigMap(t *testing.T, env *framework.Env, ns, name string) {
	t.Helper()
	_, err := env.Client.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func dynamicClient(t *testing.T, env *framework.Env) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// createObject creates a cluster-scoped object from JSON and deletes it at the end of the test.
func createObject(t *testing.T, env *framework.Env, gvr schema.GroupVersionResource, text string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	client := dynamicClient(t, env).Resource(gvr)
	if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// createWidgetKind makes the API server serve widgets, and waits until it does.
func createWidgetKind(t *testing.T, env *framework.Env) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client := env.CustomResource(t, framework.CustomKind{Group: widgets.Group, Plural: widgets.Resource, Kind: "Widget"})
	env.WaitFor(t, "widgets to be discovered", timeout, func(context.Context) (bool, error) {
		lists, err := env.Client.Discovery().ServerPreferredNamespacedResources()
		return slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
			return list.GroupVersion == widgets.GroupVersion().String()
		}), err
	})
	return client
}

func newWidget(name string, finalizers ...string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetAPIVersion(widgets.GroupVersion().String())
	w.SetKind("Widget")
	w.SetName(name)
	w.SetFinalizers(finalizers)
	return w
}
