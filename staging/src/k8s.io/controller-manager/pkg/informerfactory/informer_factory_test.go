// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informerfactory

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A typed resource is cached once, by the typed factory; any other by its metadata.
func TestInformerFactory(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	widget := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"},
	}
	metadataClient := metadatafake.NewSimpleMetadataClient(scheme, widget)
	typedClient := fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}})
	typed := informers.NewSharedInformerFactory(typedClient, 0)
	metadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	f := NewInformerFactory(typed, metadata)

	forDeployments, err := f.ForResource(deployments)
	if err != nil {
		t.Fatal(err)
	}
	forWidgets, err := f.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	typedDeployments := typed.Apps().V1().Deployments().Informer()
	again, err := f.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	defer func() {
		cancel()
		typed.Shutdown()
		metadata.Shutdown()
	}()
	if !cache.WaitForCacheSync(ctx.Done(), typedDeployments.HasSynced, forDeployments.Informer().HasSynced, forWidgets.Informer().HasSynced, again.Informer().HasSynced) {
		t.Fatal("not synced")
	}
	if obj, err := forDeployments.Lister().ByNamespace("ns").Get("d"); err != nil {
		t.Error(err)
	} else if _, ok := obj.(*appsv1.Deployment); !ok {
		t.Errorf("deployment is a %T", obj)
	}
	if obj, err := forWidgets.Lister().ByNamespace("ns").Get("w"); err != nil {
		t.Error(err)
	} else if _, ok := obj.(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("widget is a %T", obj)
	}
	if typed, metadata := watches(typedClient.Actions(), deployments), watches(metadataClient.Actions(), deployments); typed != 1 || metadata != 0 {
		t.Errorf("deployments: %d typed and %d metadata watches, want 1 and 0", typed, metadata)
	}
	if n := watches(metadataClient.Actions(), widgets); n != 1 {
		t.Errorf("widgets: %d watches, want 1", n)
	}
}

// knowing is a typed factory that knows what it was asked for.
type knowing struct {
	informers.SharedInformerFactory
	has map[schema.GroupVersionResource]bool
}

func (f *knowing) HasInformer(resource schema.GroupVersionResource) bool { return f.has[resource] }

// releasing is a metadata factory that can release an informer.
type releasing struct {
	metadatainformer.SharedInformerFactory
	released []schema.GroupVersionResource
}

func (f *releasing) ReleaseInformer(resource schema.GroupVersionResource) {
	f.released = append(f.released, resource)
}

// What nobody has asked for in full is held as metadata, also if it has a type; and can be released.
func TestMetadataUnlessTyped(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	typed := &knowing{informers.NewSharedInformerFactory(fake.NewClientset(), 0), map[schema.GroupVersionResource]bool{deployments: true}}
	metadata := &releasing{SharedInformerFactory: metadatainformer.NewSharedInformerFactory(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), 0)}
	f := NewInformerFactory(typed, metadata)

	forDeployments, err := f.ForResource(deployments)
	if err != nil {
		t.Fatal(err)
	}
	if forDeployments.Informer().GetIndexer() != typed.Apps().V1().Deployments().Informer().GetIndexer() {
		t.Error("deployments are not from the typed informer")
	}
	forSecrets, err := f.ForResource(secrets)
	if err != nil {
		t.Fatal(err)
	}
	if forSecrets.Informer() != metadata.ForResource(secrets).Informer() {
		t.Error("secrets, of which only the metadata is wanted, are not from the metadata informer")
	}
	f.(Releaser).ReleaseInformer(secrets)
	if len(metadata.released) != 1 || metadata.released[0] != secrets {
		t.Errorf("released: %v", metadata.released)
	}
}

func watches(actions []clienttesting.Action, resource schema.GroupVersionResource) (n int) {
	for _, a := range actions {
		if a.GetVerb() == "watch" && a.GetResource() == resource {
			n++
		}
	}
	return n
}
