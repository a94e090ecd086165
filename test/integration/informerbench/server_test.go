// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

func TestMain(m *testing.M) { framework.Main(m) }

// fixture is a server with objects of its own, some pods, and a custom resource.
type fixture struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	sources *wire.Sources
	kinds   *wire.Kinds
	meta    metadata.Interface
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := asManager(framework.New(t).Config())
	f := &fixture{kinds: wire.NewKinds()}
	var err error
	if f.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if f.meta, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if f.dynamic, err = dynamic.NewForConfig(framework.New(t).Config()); err != nil {
		t.Fatal(err)
	}
	f.sources = wire.NewSources(f.client.CoreV1().RESTClient(), f.kinds, wire.NewTable())
	return f
}

func (f *fixture) createPods(t *testing.T, n int) {
	t.Helper()
	if err := createPods(t.Context(), f.client, n, t.Logf); err != nil {
		t.Fatal(err)
	}
}

// createWidgets defines a custom resource and creates objects of it.
func (f *fixture) createWidgets(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := f.dynamic.Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"big": strings.Repeat("x", 1000)},
		"metadata": map[string]any{"name": "one", "labels": map[string]any{"a": "b"}},
	}}
	framework.New(t).WaitFor(t, "the custom resource to be served", time.Minute, func(ctx context.Context) (bool, error) {
		_, err := f.dynamic.Resource(widgets).Create(ctx, widget, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
}

// resources are those that can be listed and watched.
func (f *fixture) resources(t *testing.T) []schema.GroupVersionResource {
	t.Helper()
	lists, err := f.client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists))
	if err != nil {
		t.Fatal(err)
	}
	var all []schema.GroupVersionResource
	for resource := range found {
		all = append(all, resource)
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	if len(all) < 40 {
		t.Fatalf("only %d resources", len(all))
	}
	return all
}

// byKey indexes objects by name, without what changes by itself between two reads.
func byKey(t *testing.T, objects []runtime.Object) map[string]runtime.Object {
	t.Helper()
	index := map[string]runtime.Object{}
	for _, obj := range objects {
		m, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		index[m.GetNamespace()+"/"+m.GetName()+" "+m.GetResourceVersion()] = obj
	}
	return index
}

// initial reads the objects by a streaming list.
func initial(t *testing.T, source cache.Source) []runtime.Object {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	timeout, yes := int64(60), true
	reader, err := source.Watch(ctx, metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var objects []runtime.Object
	for {
		event, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.InitialEventsEnd {
			return objects
		}
		if event.Type == watch.Added {
			objects = append(objects, event.Object)
		}
	}
}

func listed(t *testing.T, source cache.Source) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for opts := (metav1.ListOptions{Limit: 7}); ; {
		page, err := source.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			objects = append(objects, item.Object)
		}
		if page.Continue == "" {
			return objects
		}
		opts.Continue = page.Continue
	}
}

// compare says how the two reads differ in the objects that both have seen in the same version.
func compare(t *testing.T, how string, want, got []runtime.Object) {
	t.Helper()
	wanted, same := byKey(t, want), 0
	for key, obj := range byKey(t, got) {
		other, ok := wanted[key]
		if !ok {
			continue
		}
		same++
		if !reflect.DeepEqual(other, obj) {
			t.Errorf("%s: %s differs (-want +got):\n%s", how, key, cmp.Diff(other, obj))
		}
	}
	// A lease or two may have been renewed between the reads.
	if same < len(wanted)-5 || len(got) < len(want)-5 {
		t.Errorf("%s: %d objects of %d are the same; the server has %d", how, same, len(got), len(want))
	}
}

// TestEveryResource reads all that a server has, by list and by streaming list, and compares it with
// what client-go's decoder makes of the same server's answer.
func TestEveryResource(t *testing.T) {
	f := newFixture(t)
	f.createPods(t, 30)
	some := 0
	for _, resource := range f.resources(t) {
		source := f.sources.Typed(resource, "")
		if source == nil {
			continue
		}
		t.Run(resource.GroupResource().String(), func(t *testing.T) {
			root := "/apis/" + resource.Group + "/" + resource.Version
			if resource.Group == "" {
				root = "/api/" + resource.Version
			}
			raw, err := f.client.CoreV1().RESTClient().Get().AbsPath(root, resource.Resource).SetHeader("Accept", "application/vnd.kubernetes.protobuf").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := meta.ExtractList(list)
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range want {
				source.(*wire.Source).Kind().Trim(obj)
			}
			compare(t, "list", want, listed(t, source))
			compare(t, "watch", want, initial(t, source))
			some += len(want)
		})
	}
	if some < 100 {
		t.Errorf("only %d objects were compared", some)
	}
}

// TestMetadataOfEveryResource does so for metadata, custom resources included.
func TestMetadataOfEveryResource(t *testing.T) {
	f := newFixture(t)
	f.createPods(t, 30)
	f.createWidgets(t)
	for _, resource := range append(f.resources(t), widgets) {
		t.Run(resource.GroupResource().String(), func(t *testing.T) {
			list, err := f.meta.Resource(resource).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if resource == widgets && len(list.Items) != 1 {
				t.Errorf("%d widgets", len(list.Items))
			}
			var want []runtime.Object
			for i := range list.Items {
				list.Items[i].ManagedFields = nil
				// What a client makes of a missing type is its own affair.
				list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
				want = append(want, &list.Items[i])
			}
			source := f.sources.Metadata(resource, "")
			compare(t, "list", want, listed(t, source))
			compare(t, "watch", want, initial(t, source))
		})
	}
}

// TestLifeOfAPod follows the events of a watch, from creation to deletion, and then asks for a version
// that is gone.
func TestLifeOfAPod(t *testing.T) {
	f := newFixture(t)
	namespace := framework.New(t).Namespace(t, "wire")
	source := f.sources.Typed(podsResource, namespace)
	page, err := source.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	timeout := int64(60)
	reader, err := source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	pods := f.client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A"}}}}}}
	created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patched, err := pods.Patch(t.Context(), "p", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "p", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	kind := source.(*wire.Source).Kind()
	for _, want := range []cache.Event{
		{Type: watch.Added, Item: cache.Item{Object: created}}, {Type: watch.Modified, Item: cache.Item{Object: patched}}, {Type: watch.Deleted},
	} {
		event, err := reader.Next()
		// A deletion may first be told as a change.
		for err == nil && (event.Type == watch.Bookmark || event.Type == watch.Modified && want.Type == watch.Deleted) {
			event, err = reader.Next()
		}
		if err != nil || event.Type != want.Type || event.ResourceVersion != event.Object.(*corev1.Pod).ResourceVersion {
			t.Fatalf("event %s of version %s, error %v, wanted %s", event.Type, event.ResourceVersion, err, want.Type)
		}
		if want.Object == nil {
			continue
		}
		kind.Trim(want.Object)
		want.Object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if diff := cmp.Diff(want.Object, event.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Type, diff)
		}
	}
	gone, err := source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: &timeout})
	if err == nil {
		defer gone.Close()
		_, err = gone.Next()
	}
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a version that is gone: %v", err)
	}
}
