// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	ourinformers "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// api is what discovery finds.
type api struct {
	discovery.ServerResourcesInterface
	// mu guards the following fields.
	mu        sync.Mutex
	resources []string // of group example.com; all verbs
	err       error
	asked     int
}

func (a *api) set(err error, resources ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.resources = err, resources
}

func (a *api) timesAsked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *api) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	list := &metav1.APIResourceList{GroupVersion: "example.com/v1"}
	for _, name := range a.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: name, Namespaced: true,
			Verbs: metav1.Verbs{"create", "delete", "list", "watch"}})
	}
	return []*metav1.APIResourceList{list}, a.err
}

func exampleResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: name}
}

// A standby has the informers of what discovery finds, no more and no less, and whoever takes it
// over finds them running.
func TestWarmer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typed := ourinformers.NewSharedInformerFactory(fake.NewClientset(), 0)
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		metadata := metadatainformer.NewSharedInformerFactory(metadatafake.NewSimpleMetadataClient(scheme), 0)
		background, stop := context.WithCancel(t.Context())
		defer metadata.Shutdown()
		defer stop()

		found := &api{resources: []string{"a", "b"}}
		w := &warmer{
			informers: &startUntil{informerfactory.NewInformerFactory(typed, metadata), background.Done()},
			discovery: found,
			wanted:    []func([]*metav1.APIResourceList) []schema.GroupVersionResource{garbagecollector.WatchedResources},
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			var running []string
			for _, name := range []string{"a", "b", "c"} {
				if i := metadata.Existing(exampleResource(name)); i != nil && i.HasSynced() {
					running = append(running, name)
				}
			}
			if diff := cmp.Diff(want, running); diff != "" {
				t.Errorf("%s: running informers (-want +got):\n%s", when, diff)
			}
		}
		standing, end := context.WithCancel(background)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.run(standing)
		}()

		expect("at the start", "a", "b")
		found.set(nil, "b", "c")
		expect("before discovery is asked again", "a", "b")
		time.Sleep(discoveryPeriod)
		expect("after a was removed and c made", "b", "c")
		found.set(errors.New("the API of b does not answer"), "c")
		time.Sleep(discoveryPeriod)
		expect("while discovery fails in part", "b", "c")
		found.set(nil, "b", "c")
		time.Sleep(discoveryPeriod)

		end()
		<-done
		asked := found.timesAsked()
		if _, err := metadata.Existing(exampleResource("b")).AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			t.Fatal(err)
		}
		go w.releaseAfter(background, takeOverTime)
		time.Sleep(takeOverTime - time.Nanosecond)
		expect("while controllers take over", "b", "c")
		time.Sleep(time.Nanosecond)
		expect("when no controller has taken c", "b")
		if found.timesAsked() != asked {
			t.Error("discovery is asked after the standby's end")
		}
	})
}

// What a standby warms is what the controllers watch themselves when they lead.
func TestDiscovers(t *testing.T) {
	events := metav1.APIResource{Name: "events", Kind: "Event", Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "list", "watch"}}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "list", "watch"}},
			{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"create", "delete", "list", "watch"}},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
			events,
		}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{events}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "malformed", Kind: "Malformed", Namespaced: true, Verbs: events.Verbs}}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "readonly", Kind: "ReadOnly", Namespaced: true, Verbs: metav1.Verbs{"delete", "list", "watch"}},
		}},
	}
	want := map[string][]string{
		names.GarbageCollectorController: {"nodes", "pods", "readonly"},
		names.ResourceQuotaController:    {"pods"},
	}
	for _, d := range NewControllerDescriptors() {
		if d.Discovers == nil {
			if want[d.Name] != nil {
				t.Errorf("%s discovers nothing", d.Name)
			}
			continue
		}
		resources := sets.New[string]()
		for _, gvr := range d.Discovers(lists) {
			resources.Insert(gvr.Resource)
		}
		if got := sets.List(resources); !slices.Equal(got, want[d.Name]) {
			t.Errorf("%s discovers %v, want %v", d.Name, got, want[d.Name])
		}
	}
}
