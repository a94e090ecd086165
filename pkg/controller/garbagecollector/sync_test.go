// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
)

// fakeDiscovery answers with lists and err.
type fakeDiscovery struct {
	discovery.ServerResourcesInterface
	mu    sync.Mutex
	lists []*metav1.APIResourceList
	err   error
}

func (f *fakeDiscovery) set(err error, lists ...*metav1.APIResourceList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists, f.err = lists, err
}

func (f *fakeDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists, f.err
}

func apiList(groupVersion string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: resources}
}

func apiResource(name, kind string, verbs ...string) metav1.APIResource {
	if len(verbs) == 0 {
		verbs = []string{"create", "delete", "get", "list", "watch"}
	}
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: verbs}
}

func TestGetDeletableResources(t *testing.T) {
	partial := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "apps", Version: "v1"}: errors.New("down")}}
	podList := apiList("v1", apiResource("pods", "Pod"), apiResource("bindings", "Binding", "create"), apiResource("componentstatuses", "ComponentStatus", "get", "list"))
	for name, tc := range map[string]struct {
		lists []*metav1.APIResourceList
		err   error
		want  []schema.GroupVersionResource
	}{
		"no error": {lists: []*metav1.APIResourceList{podList, apiList("apps/v1", apiResource("replicasets", "ReplicaSet"))}, want: []schema.GroupVersionResource{pods, sets}},
		"nonspecific failure, includes usable results":       {lists: []*metav1.APIResourceList{podList}, err: errors.New("internal"), want: []schema.GroupVersionResource{pods}},
		"partial discovery failure, includes usable results": {lists: []*metav1.APIResourceList{podList}, err: partial, want: []schema.GroupVersionResource{pods}},
		"discovery failure, no results":                      {err: errors.New("internal")},
	} {
		t.Run(name, func(t *testing.T) {
			client := &fakeDiscovery{lists: tc.lists, err: tc.err}
			got, err := GetDeletableResources(testLogger(t), client)
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if len(got) != len(tc.want) {
				t.Errorf("resources %v, want %v", got, tc.want)
			}
			for _, gvr := range tc.want {
				if _, ok := got[gvr]; !ok {
					t.Errorf("resources %v lack %v", got, gvr)
				}
			}
		})
	}
	if _, err := GetDeletableResources(testLogger(t), &fakeDiscovery{lists: []*metav1.APIResourceList{apiList("a/b/c", apiResource("x", "X"))}}); err == nil {
		t.Error("no error for a malformed group version")
	}
}

func TestMergeKnown(t *testing.T) {
	known := map[schema.GroupVersionResource]resource{pods: served[pods], sets: served[sets]}
	partial := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{sets.GroupVersion(): errors.New("down")}}
	for name, tc := range map[string]struct {
		err  error
		want []schema.GroupVersionResource
	}{
		"no error":         {want: []schema.GroupVersionResource{nodes}},
		"apps failed":      {err: fmt.Errorf("wrapped: %w", partial), want: []schema.GroupVersionResource{nodes, sets}},
		"something failed": {err: errors.New("internal"), want: []schema.GroupVersionResource{nodes, sets, pods}},
	} {
		found := map[schema.GroupVersionResource]resource{nodes: served[nodes]}
		mergeKnown(found, known, tc.err)
		if len(found) != len(tc.want) {
			t.Errorf("%s: %v", name, found)
		}
		for _, gvr := range tc.want {
			if _, ok := found[gvr]; !ok {
				t.Errorf("%s: %v lacks %v", name, found, gvr)
			}
		}
	}
}

// metadataOnly is an InformerFactory that knows no types.
type metadataOnly struct {
	metadatainformer.SharedInformerFactory
	broken   schema.GroupVersionResource
	released chan schema.GroupVersionResource
}

func (f metadataOnly) ReleaseInformer(gvr schema.GroupVersionResource) { f.released <- gvr }

func (f metadataOnly) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	if gvr == f.broken {
		return nil, errors.New("broken")
	}
	return f.SharedInformerFactory.ForResource(gvr), nil
}

// Resources come and go; discovery may fail, in part or as a whole; one that cannot be listed holds
// up no other.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		owner := ref("v1", "Pod", "ghost", "ghost")
		object := func(apiVersion, kind, name string) *metav1.PartialObjectMetadata {
			return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u-" + "x", OwnerReferences: []metav1.OwnerReference{owner}}}
		}
		client := metadatafake.NewSimpleMetadataClient(scheme, object("v1", "Pod", "p"))
		client.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("conversion webhook is dead")
		})
		ctx, cancel := context.WithCancel(t.Context())
		factory := metadatainformer.NewSharedInformerFactory(client, 0)
		started, released := make(chan struct{}), make(chan schema.GroupVersionResource, 10)
		gc, err := NewGarbageCollector(ctx, fake.NewClientset(), client, newMapper(), DefaultIgnoredResources(), metadataOnly{SharedInformerFactory: factory, broken: nodes, released: released}, started)
		if err != nil {
			t.Fatal(err)
		}
		disco := &fakeDiscovery{}
		disco.set(errors.New("down"))
		var wg sync.WaitGroup
		wg.Go(func() { gc.Run(ctx, 2, 30*time.Second) })
		wg.Go(func() { gc.Sync(ctx, disco, 30*time.Second) })
		defer func() {
			cancel()
			wg.Wait()
			factory.Shutdown()
		}()
		watched := func() string {
			var s []string
			for _, m := range gc.builder.allMonitors() {
				s = append(s, m.gvr.Resource)
			}
			slices.Sort(s)
			return strings.Join(s, " ")
		}
		expect := func(what, want string) {
			t.Helper()
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if got := watched(); got != want {
				t.Errorf("%s: watches %q, want %q", what, got, want)
			}
		}
		syncErrors := func() float64 {
			v, err := testutil.GetCounterMetricValue(registeredMetrics().syncErrors)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}

		before := syncErrors()
		expect("nothing discovered", "")
		if syncErrors() == before {
			t.Error("an empty discovery is not counted")
		}
		if gc.IsSynced(testLogger(t)) {
			t.Error("synced without monitors")
		}
		core := apiList("v1", apiResource("pods", "Pod"), apiResource("events", "Event"))
		disco.set(nil, core)
		expect("pods discovered", "pods")
		if gc.IsSynced(testLogger(t)) {
			t.Error("synced before the informers may start")
		}
		close(started)
		disco.set(nil, core, apiList("example.com/v1", apiResource("widgets", "Widget")))
		expect("widgets discovered", "pods widgets")
		deleted := func() bool {
			return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool {
				d, ok := a.(clienttesting.DeleteActionImpl)
				return ok && d.Name == "p" && d.DeleteOptions.Preconditions.UID != nil
			})
		}
		if !deleted() {
			t.Error("p was not collected while widgets cannot be listed")
		}

		before = syncErrors()
		expect("later", "pods widgets")
		if syncErrors() == before {
			t.Error("a resource that cannot be listed is not counted")
		}
		labels := map[string]string{"group": "example.com", "version": "v1", "resource": "widgets"}
		if v, err := testutil.GetGaugeMetricValue(registeredMetrics().unsynced.With(labels)); err != nil || v != 1 {
			t.Errorf("gauge of widgets %v, %v", v, err)
		}
		if rec := (resourceReport{gc.builder}).Record(); rec.FailingCount != 1 || !strings.Contains(rec.Failing[0].LastError, "conversion webhook is dead") {
			t.Errorf("record %+v", rec)
		}

		failed := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{widgets.GroupVersion(): errors.New("down")}}
		disco.set(failed, core)
		expect("discovery of widgets fails", "pods widgets")
		before = syncErrors()
		disco.set(nil, core, apiList("v1", metav1.APIResource{Name: "nodes", Kind: "Node", Verbs: []string{"delete", "list", "watch"}}))
		expect("widgets are gone, nodes have no informer", "pods")
		if after := syncErrors(); after == before {
			t.Error("a resource that cannot be watched is not counted")
		}
		if !gc.IsSynced(testLogger(t)) {
			t.Error("not synced")
		}
		if len(released) != 1 || <-released != widgets {
			t.Error("the informer of widgets, and no other, should have been given up")
		}
	})
}

// A resource whose first list comes while another one is asked why its own does not is not told to be
// without one, which nothing would take back.
func TestReportUnsyncedOvertaken(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	b := newGraphBuilder(client, newMapper(), nil, nil, nil, clock.RealClock{})
	defer func() {
		cancel()
		b.Run(ctx)
		b.attemptToDelete.Run(ctx, 1)
		b.attemptToOrphan.Run(ctx, 1)
	}()
	add := func(name string) *monitor {
		gvr := schema.GroupVersionResource{Group: "overtaken.example.com", Version: "v1", Resource: name}
		m := &monitor{resource: resource{gvr: gvr}, since: time.Now().Add(-time.Hour)}
		m.informer = cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
		b.monitors[gvr] = m
		return m
	}
	gauge := func(m *monitor) float64 {
		g := b.metrics.unsynced.WithLabelValues(m.gvr.Group, m.gvr.Version, m.gvr.Resource)
		v, err := testutil.GetGaugeMetricValue(g)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	slow, late := add("a"), add("b")
	client.PrependReactor("list", "a", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := b.syncChange(ctx, change{monitor: late, marker: true}); err != nil {
			t.Error(err)
		}
		return true, nil, errors.New("down")
	})
	(&GarbageCollector{builder: b}).reportUnsynced(ctx)
	if got := gauge(slow); got != 1 {
		t.Errorf("gauge of the resource that cannot be listed: %v, want 1", got)
	}
	if got := gauge(late); got != 0 {
		t.Errorf("gauge of the resource whose list has come: %v, want 0", got)
	}
}

// A panic in one round of discovery ends neither the process nor the rounds.
func TestSyncSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context())
		defer c.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		disco := &panickingDiscovery{}
		c.gc.Sync(ctx, disco, 30*time.Second)
		if disco.calls != 4 {
			t.Errorf("discovery was asked %d times, want 4", disco.calls)
		}
	})
}

type panickingDiscovery struct {
	discovery.ServerResourcesInterface
	calls int
}

func (d *panickingDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	d.calls++
	panic("broken")
}

func TestDefaultIgnoredResources(t *testing.T) {
	want := map[schema.GroupResource]struct{}{{Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}}
	if got := DefaultIgnoredResources(); !maps.Equal(got, want) {
		t.Errorf("ignored %v", got)
	}
}

// chains: a <- b <- c, x <- y; alone has no edges; missing is only referred to.
func dotGraph() *testGraph {
	g := newTestGraph()
	g.upsert(object{id: g.pod("a"), deleting: true, foreground: true})
	g.upsert(object{id: g.pod("b"), owners: []metav1.OwnerReference{podRef("a")}})
	g.upsert(object{id: g.pod("c"), owners: []metav1.OwnerReference{podRef("b")}})
	g.upsert(object{id: g.pod("x")})
	g.upsert(object{id: g.pod("y"), owners: []metav1.OwnerReference{podRef("x"), podRef("missing")}})
	g.upsert(object{id: g.pod("alone")})
	g.notFound(g.pod("missing"))
	return g
}

func TestSnapshot(t *testing.T) {
	g := dotGraph()
	for _, tc := range []struct{ uids, want string }{
		{"", "a b c missing x y"}, // drop-no-ref, missing, two chains
		{"a", "a b c"},            // two-chains-from-owner
		{"c", "a b c"},            // two-chains-from-child
		{"y", "missing x y"},
		{"c x", "a b c x y"}, // two-chains-choose-both
		{"alone", "alone"},
		{"nobody", ""},
	} {
		var got []string
		var uids []identity
		for _, uid := range strings.Fields(tc.uids) {
			uids = append(uids, g.pod(uid))
		}
		for _, n := range g.snapshot(uidsOf(uids)...) {
			got = append(got, n.id.name)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q: %v, want %s", tc.uids, got, tc.want)
		}
	}
}

func TestGraphPage(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rs := c.create(set("r\"s"), nil)
		c.create(pod("p"), nil, rs)
		c.create(pod("alone"), nil)
		c.settle()
		get := func(method, target string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			c.gc.DebuggingHandler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
			return w
		}
		w := get(http.MethodGet, "/graph")
		want := `strict digraph full {
  // Node definitions.
  0 [
    label="uid=uid-1\nnamespace=ns\nname=r\"s\nReplicaSet.v1/apps\n"
    group="apps"
    version="v1"
    kind="ReplicaSet"
    namespace="ns"
    name="r\"s"
    uid="uid-1"
    missing="false"
    beingDeleted="false"
    deletingDependents="false"
    virtual="false"
  ];
  1 [
    label="uid=uid-2\nnamespace=ns\nname=p\nPod.v1/\n"
    group=""
    version="v1"
    kind="Pod"
    namespace="ns"
    name="p"
    uid="uid-2"
    missing="false"
    beingDeleted="false"
    deletingDependents="false"
    virtual="false"
  ];

  // Edge definitions.
  1 -> 0;
}
`
		if got := w.Body.String(); got != want {
			t.Errorf("graph:\n%s\nwant:\n%s", got, want)
		}
		if got := w.Header().Get("Content-Type"); got != "text/vnd.graphviz" {
			t.Errorf("content type %s", got)
		}
		if got := get(http.MethodGet, "/graph?uid=uid-3").Body.String(); strings.Count(got, "label") != 1 {
			t.Errorf("graph of one: %s", got)
		}
		if got := get(http.MethodPost, "/graph").Code; got != http.StatusMethodNotAllowed {
			t.Errorf("POST gives %d", got)
		}
	})
}

func uidsOf(ids []identity) (uids []types.UID) {
	for _, id := range ids {
		uids = append(uids, id.uid)
	}
	return uids
}
