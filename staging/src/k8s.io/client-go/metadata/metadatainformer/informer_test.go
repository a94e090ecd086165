// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package metadatainformer

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clientmetadatainformer "k8s.io/client-go/metadata/metadatainformer"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
)

func object(kind, namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

func newClient(t *testing.T) *metadatafake.FakeMetadataClient {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return metadatafake.NewSimpleMetadataClient(scheme, object("Widget", "a", "w"), object("Widget", "b", "w"), object("Gadget", "a", "g"))
}

func TestFactory(t *testing.T) {
	var f clientmetadatainformer.SharedInformerFactory = NewFilteredSharedInformerFactory(newClient(t), 0, "a", nil)
	forWidgets, forGadgets := f.ForResource(widgets), f.ForResource(gadgets)
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	f.Start(ctx.Done())
	if synced := f.WaitForCacheSync(ctx.Done()); !synced[widgets] || !synced[gadgets] {
		t.Fatalf("synced: %v", synced)
	}
	if f.ForResource(widgets).Informer() != forWidgets.Informer() {
		t.Error("a second informer for widgets")
	}
	if all, err := forWidgets.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
		t.Errorf("widgets: %v, %v, want that of namespace a", all, err)
	}
	if _, err := forGadgets.Lister().ByNamespace("a").Get("g"); err != nil {
		t.Error(err)
	}
}

// An informer that is stopped releases its goroutine at once, and its objects once nobody holds it;
// the others go on; and the resource can be had again.
func TestStopInformer(t *testing.T) {
	f := NewSharedInformerFactory(newClient(t), 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	gadgetInformer := f.ForResource(gadgets).Informer()
	held := func() weak.Pointer[cache.Informer] {
		informer := f.ForResource(widgets).Informer()
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		f.StopInformer(widgets)
		if !informer.IsStopped() {
			t.Error("it still runs")
		}
		return weak.Make(informer.(*cache.Informer))
	}()
	for deadline := time.Now().Add(30 * time.Second); held.Value() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the informer is still held")
		}
		runtime.GC()
	}
	if f.HasInformer(widgets) || gadgetInformer.IsStopped() {
		t.Error("widgets should be gone, gadgets should not")
	}
	f.StopInformer(widgets) // There is none.

	again := f.ForResource(widgets)
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	if all, err := again.Lister().List(labels.Everything()); err != nil || len(all) != 2 {
		t.Errorf("widgets: %v, %v, want 2", all, err)
	}
	if statuses := f.Statuses(time.Now()); len(statuses) != 2 || statuses[1].Resource != "metadata/widgets.example.com" {
		t.Errorf("statuses %+v", statuses)
	}
}

// An informer that somebody listens to is not released.
func TestReleaseInformer(t *testing.T) {
	f := NewSharedInformerFactory(newClient(t), 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	informer := f.ForResource(widgets).Informer()
	registration, err := informer.AddEventHandler(clientcache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx.Done())
	f.ReleaseInformer(widgets)
	if informer.IsStopped() || !f.HasInformer(widgets) {
		t.Error("released although there is a handler")
	}
	if err := informer.RemoveEventHandler(registration); err != nil {
		t.Fatal(err)
	}
	f.ReleaseInformer(widgets)
	f.ReleaseInformer(gadgets)
	if !informer.IsStopped() || f.HasInformer(widgets) {
		t.Error("not released")
	}
}
