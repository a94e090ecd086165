// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/endpointslice/metrics"
	"k8s.io/utils/ptr"
)

func TestServicesWithoutSlices(t *testing.T) {
	tests := map[string]func(*v1.Service){
		"no selector":                     func(s *v1.Service) { s.Spec.Selector = nil },
		"ExternalName, selector, ports":   func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName },
		"ExternalName, selector":          func(s *v1.Service) { s.Spec.Type, s.Spec.Ports = v1.ServiceTypeExternalName, nil },
		"ExternalName, ports":             func(s *v1.Service) { s.Spec.Type, s.Spec.Selector = v1.ServiceTypeExternalName, nil },
		"ExternalName and nothing else":   func(s *v1.Service) { s.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName} },
		"in deletion, without any slices": func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: testNow} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newService("svc", change), newNode("node", "a"), newPod(0))
			if got := f.syncAll("svc"); len(got) != 0 {
				t.Errorf("requests %v, want none", got)
			}
		})
	}
}

// Nothing is remembered of a Service that is gone; its slices are left to the garbage collector.
func TestServiceMissing(t *testing.T) {
	f := newFixture(t, newService("svc", func(s *v1.Service) { s.Spec.Selector["tier"] = "x" }), newNode("node", "a"), newPod(0))
	f.syncAll("svc")
	slice := f.live("svc")[0]
	f.topologyCache.SetHints("ns/svc", discovery.AddressTypeIPv4, map[string]int{"a": 1})
	if err := f.Indexer(&v1.Service{}).Delete(newService("svc")); err != nil {
		t.Fatal(err)
	}
	if got := f.syncAll("svc"); len(got) != 0 {
		t.Errorf("requests %v, want none", got)
	}
	if len(f.triggerTimeTracker.ServiceStates) != 0 || f.slices.Tracker.Has(slice) || f.topologyCache.HasPopulatedHints("ns/svc") {
		t.Error("something is remembered of a service that is gone")
	}
}

func TestPlaceholder(t *testing.T) {
	f := newFixture(t, newService("svc", func(s *v1.Service) { s.Labels = map[string]string{"team": "a"} }), newNode("node", "a"))
	if got := f.syncAll("svc"); len(got) != 1 {
		t.Fatalf("requests %v, want one slice", got)
	}
	slice := f.live("svc")[0]
	want := map[string]string{"team": "a", discovery.LabelServiceName: "svc", discovery.LabelManagedBy: "endpointslice-controller.k8s.io"}
	if fmt.Sprint(slice.Labels) != fmt.Sprint(want) || slice.GenerateName != "svc-" || len(slice.Ports) != 0 || len(slice.Endpoints) != 0 {
		t.Errorf("placeholder %+v", slice)
	}
	if got := slice.Annotations[v1.EndpointsLastChangeTriggerTime]; got != testNow.UTC().Format(time.RFC3339Nano) {
		t.Errorf("trigger time %q, want the service's creation", got)
	}
	if owner := metav1.GetControllerOf(slice); owner == nil || owner.Kind != "Service" || owner.Name != "svc" {
		t.Errorf("owner %+v, want the service", owner)
	}
	if got := f.syncAll("svc"); len(got) != 0 {
		t.Errorf("requests %v for a placeholder that is there, want none", got)
	}
	f.add(newPod(0))
	if got := f.syncAll("svc"); len(got) != 1 || !strings.HasPrefix(got[0], "update") {
		t.Errorf("requests %v, want the placeholder to be used", got)
	}
}

func TestEndpoints(t *testing.T) {
	ipv6 := func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol} }
	publish := func(s *v1.Service) { s.Spec.PublishNotReadyAddresses = true }
	dual := func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} }
	phase := func(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }
	sameIP := func(p *v1.Pod) { p.Status.PodIPs = []v1.PodIP{{IP: "10.1.0.9"}} }
	ghost := func(p *v1.Pod) { p.Spec.NodeName = "ghost" }
	tests := []struct {
		name    string
		service []func(*v1.Service)
		pods    []*v1.Pod
		want    []string
		fails   bool
	}{
		{"IPv4 of several addresses", nil, []*v1.Pod{newPod(0)}, []string{"10.1.0.1 pod-0 ready serving"}, false},
		{"IPv6 of several addresses", []func(*v1.Service){ipv6}, []*v1.Pod{newPod(0)}, []string{"fd00::1 pod-0 ready serving"}, false},
		{"dual stack", []func(*v1.Service){dual}, []*v1.Pod{newPod(0)}, []string{"10.1.0.1 pod-0 ready serving", "fd00::1 pod-0 ready serving"}, false},
		{"not ready", nil, []*v1.Pod{newPod(0, notReady)}, []string{"10.1.0.1 pod-0"}, false},
		{"not ready, published", []func(*v1.Service){publish}, []*v1.Pod{newPod(0, notReady)}, []string{"10.1.0.1 pod-0 ready"}, false},
		{"terminating", nil, []*v1.Pod{newPod(0, terminating)}, []string{"10.1.0.1 pod-0 serving terminating"}, false},
		{"not ready and terminating", nil, []*v1.Pod{newPod(0, notReady, terminating)}, []string{"10.1.0.1 pod-0 terminating"}, false},
		{"terminating, published", []func(*v1.Service){publish}, []*v1.Pod{newPod(0, terminating)}, []string{"10.1.0.1 pod-0 ready serving terminating"}, false},
		{"finished and ready with the same IP", nil, []*v1.Pod{newPod(0, sameIP, phase(v1.PodFailed)), newPod(1, sameIP, phase(v1.PodSucceeded)), newPod(2, sameIP)},
			[]string{"10.1.0.9 pod-2 ready serving"}, false},
		{"two ready with the same IP", nil, []*v1.Pod{newPod(0, sameIP), newPod(1, sameIP)}, []string{"10.1.0.9 pod-0 ready serving", "10.1.0.9 pod-1 ready serving"}, false},
		{"other labels", nil, []*v1.Pod{newPod(0), newPod(1, func(p *v1.Pod) { p.Labels = map[string]string{"app": "db"} })}, []string{"10.1.0.1 pod-0 ready serving"}, false},
		{"other namespace", nil, []*v1.Pod{newPod(0, func(p *v1.Pod) { p.Namespace = "other" })}, []string{}, false},
		{"no address yet", nil, []*v1.Pod{newPod(0, func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil })}, []string{}, false},
		{"unknown node", nil, []*v1.Pod{newPod(0), newPod(1, ghost)}, []string{"10.1.0.1 pod-0 ready serving"}, true},
		{"unknown node, published", []func(*v1.Service){publish}, []*v1.Pod{newPod(0, ghost)}, []string{"10.1.0.1 pod-0 ready serving"}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, newService("svc", tc.service...), newNode("node", "a"))
			for _, pod := range tc.pods {
				f.add(pod)
			}
			err := f.sync(t.Context(), cache.ObjectName{Namespace: "ns", Name: "svc"})
			if (err != nil) != tc.fails {
				t.Errorf("sync: %v, want a failure: %t", err, tc.fails)
			}
			found := f.live("svc")
			if got := shown(found); !slices.Equal(got, tc.want) {
				t.Errorf("endpoints %q, want %q", got, tc.want)
			}
			for _, slice := range found {
				for _, e := range slice.Endpoints {
					if strings.Contains(e.Addresses[0], ":") != (slice.AddressType == discovery.AddressTypeIPv6) {
						t.Errorf("%s in a slice of type %s", e.Addresses[0], slice.AddressType)
					}
				}
			}
		})
	}
}

// BC071: a headless Service without ports is quiet once its slice is right.
func TestHeadlessWithoutPortsIsQuiet(t *testing.T) {
	f := newFixture(t, newNode("node", "a"), newPod(0), newPod(1), newService("svc", func(s *v1.Service) {
		s.Spec.ClusterIP, s.Spec.Ports = v1.ClusterIPNone, nil
	}))
	f.syncAll("svc")
	slice := f.live("svc")[0]
	if _, headless := slice.Labels[v1.IsHeadlessService]; !headless || len(slice.Ports) != 0 || len(slice.Endpoints) != 2 {
		t.Errorf("slice %+v, want a headless one with two endpoints and no ports", slice)
	}
	if got := f.syncAll("svc"); len(got) != 0 {
		t.Errorf("requests %v, want none", got)
	}
}

func TestMaxEndpointsPerSlice(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"))
	for i := range 250 {
		f.add(newPod(i))
	}
	if got := f.syncAll("svc"); len(got) != 3 {
		t.Errorf("%d requests, want three slices", len(got))
	}
	sizes := []int{}
	for _, slice := range f.live("svc") {
		sizes = append(sizes, len(slice.Endpoints))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int{50, 100, 100}) {
		t.Errorf("slices of %v endpoints, want 100, 100 and 50", sizes)
	}
}

// Slices of other Services, controllers and namespaces are left alone; those in deletion count as
// gone; those that a Service of the same name left behind are deleted.
func TestWhichSlicesCount(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"), newPod(0))
	f.syncAll("svc")
	mine := f.live("svc")[0]
	other := func(name string, change func(*discovery.EndpointSlice)) *discovery.EndpointSlice {
		slice := mine.DeepCopy()
		slice.Name, slice.UID = name, ""
		change(slice)
		return slice
	}
	f.add(
		other("of-another-service", func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelServiceName] = "svc2" }),
		other("of-another-controller", func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelManagedBy] = "me" }),
		other("of-no-controller", func(s *discovery.EndpointSlice) { delete(s.Labels, discovery.LabelManagedBy) }),
		other("elsewhere", func(s *discovery.EndpointSlice) { s.Namespace = "other" }),
		other("in-deletion", func(s *discovery.EndpointSlice) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: testNow}, []string{"example.com/held"}
		}),
	)
	if got := f.syncAll("svc"); len(got) != 0 {
		t.Errorf("requests %v, want none", got)
	}
	f.add(other("left-behind", func(s *discovery.EndpointSlice) { s.OwnerReferences[0].UID = "old" }))
	if got := f.syncAll("svc"); !slices.Equal(got, []string{"delete endpointslices left-behind"}) {
		t.Errorf("requests %v, want the slice of the old service deleted", got)
	}
}

// A family that the Service has no more takes its slices with it.
func TestFamilyGoes(t *testing.T) {
	service := newService("svc", func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} })
	f := newFixture(t, service, newNode("node", "a"), newPod(0))
	if got := f.syncAll("svc"); len(got) != 2 {
		t.Fatalf("requests %v, want two slices", got)
	}
	service.Spec.IPFamilies = service.Spec.IPFamilies[:1]
	if got := f.syncAll("svc"); len(got) != 1 || !strings.HasPrefix(got[0], "delete") {
		t.Errorf("requests %v, want one deletion", got)
	}
	if got := f.syncAll("svc"); len(got) != 0 {
		t.Errorf("requests %v, want none", got)
	}
}

// What was edited by hand is put right: labels, endpoints, ports.
func TestHandEditedSliceIsRepaired(t *testing.T) {
	edits := map[string]func(*discovery.EndpointSlice){
		"label":     func(s *discovery.EndpointSlice) { s.Labels["extra"] = "x" },
		"condition": func(s *discovery.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) },
		"address":   func(s *discovery.EndpointSlice) { s.Endpoints[0].Addresses = []string{"192.0.2.1"} },
		"addresses": func(s *discovery.EndpointSlice) { s.Endpoints[0].Addresses = []string{"192.0.2.2", "192.0.2.1"} },
		"ports":     func(s *discovery.EndpointSlice) { s.Ports = s.Ports[:1] },
		"endpoints": func(s *discovery.EndpointSlice) { s.Endpoints = nil },
		"zone":      func(s *discovery.EndpointSlice) { s.Endpoints[0].Zone = nil },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newNode("node", "a"), newPod(0), newService("svc", func(s *v1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, v1.ServicePort{Name: "metrics", Port: 81, TargetPort: intstr.FromInt32(81), Protocol: v1.ProtocolTCP})
			}))
			f.syncAll("svc")
			want := f.live("svc")[0]
			edited := want.DeepCopy()
			edit(edited)
			if _, err := f.Client.DiscoveryV1().EndpointSlices("ns").Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			f.Requests()
			f.Deliver("endpointslices", f.onSlices)
			shown := f.Indexer(edited).List()[0].(*discovery.EndpointSlice).DeepCopy()
			if got := f.syncAll("svc"); len(got) != 1 {
				t.Errorf("requests %v, want one", got)
			}
			got := f.live("svc")[0]
			if fmt.Sprint(got.Labels) != fmt.Sprint(want.Labels) || fmt.Sprint(got.Endpoints) == fmt.Sprint(shown.Endpoints) && name != "label" && name != "ports" || len(got.Ports) != 2 {
				t.Errorf("slice %+v, want %+v", got, want)
			}
		})
	}
}

// The cached slice stays as it is whatever the order of what was put in by hand.
func TestCachedSlicesAreNotSorted(t *testing.T) {
	for _, slice := range []*discovery.EndpointSlice{
		{Ports: []discovery.EndpointPort{{Name: ptr.To("b")}, {Name: ptr.To("a")}}},
		{Endpoints: []discovery.Endpoint{{Addresses: []string{"2", "1"}}}},
	} {
		given := protect([]*discovery.EndpointSlice{slice})[0]
		if len(given.Ports) > 0 {
			slices.Reverse(given.Ports)
			if *slice.Ports[0].Name != "b" {
				t.Error("the ports of the cached slice were changed")
			}
			continue
		}
		slices.Sort(given.Endpoints[0].Addresses)
		if slice.Endpoints[0].Addresses[0] != "2" {
			t.Error("the addresses of the cached slice were changed")
		}
	}
}

// The library's reconciler sorts what it is given.
func TestSyncLeavesTheCachedSliceAsItIs(t *testing.T) {
	f := newFixture(t, newNode("node", "a"), newPod(0), newService("svc", func(s *v1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, v1.ServicePort{Name: "metrics", Port: 81, TargetPort: intstr.FromInt32(81), Protocol: v1.ProtocolTCP})
	}))
	f.syncAll("svc")
	for range 2 { // one of the two orders is not the library's
		edited := f.live("svc")[0]
		slices.Reverse(edited.Ports)
		if _, err := f.Client.DiscoveryV1().EndpointSlices("ns").Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.Deliver("endpointslices", f.onSlices)
		cached := f.Indexer(edited).List()[0].(*discovery.EndpointSlice)
		before := cached.DeepCopy()
		f.syncAll("svc")
		if !apiequality.Semantic.DeepEqual(cached, before) {
			t.Errorf("the cached slice was changed to %+v, from %+v", cached, before)
		}
	}
}

func syncs(t *testing.T, result string) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(metrics.EndpointSliceSyncs.WithLabelValues(result))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// A cache that lags behind neither duplicates nor loses a slice, and the event that it catches up
// with brings the Service back.
func TestStaleCache(t *testing.T) {
	f := newFixture(t, newService("svc"), newService("other"), newNode("node", "a"), newPod(0))
	f.syncAll("other") // an informer's cache has a version from its first list on
	key := cache.ObjectName{Namespace: "ns", Name: "svc"}
	if err := f.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	f.add(newPod(1))
	f.Requests()
	stale := syncs(t, "stale")
	for range 2 {
		if err := f.sync(t.Context(), key); !errors.Is(err, errStale) {
			t.Fatalf("sync on a stale cache: %v, want errStale", err)
		}
	}
	if err := f.syncService(t.Context(), key); err == nil || syncs(t, "stale") != stale+1 {
		t.Errorf("%v; %v stale syncs counted, want one more than %v", err, syncs(t, "stale"), stale)
	}
	if got := f.Requests(); len(got) != 0 {
		t.Errorf("requests %v on a stale cache", got)
	}
	f.Deliver("endpointslices", f.onSlices)
	if got := f.queued(); !slices.Equal(got, []string{"svc"}) {
		t.Errorf("queued %v when the cache has caught up, want svc", got)
	}
	if got := f.syncAll("svc"); len(got) != 1 || !strings.HasPrefix(got[0], "update") {
		t.Errorf("requests %v, want one update", got)
	}
	if got := f.queued(); len(got) != 0 {
		t.Errorf("queued %v after its own write, want nothing", got)
	}
}

// A slice whose deletion was requested is not deleted or filled again while the cache shows it.
func TestDeletedSliceIsStillShown(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"))
	for i := range 150 {
		f.add(newPod(i))
	}
	f.syncAll("svc")
	for i := range 150 {
		_ = f.Indexer(&v1.Pod{}).Delete(newPod(i))
	}
	f.add(newPod(200))
	key := cache.ObjectName{Namespace: "ns", Name: "svc"}
	if err := f.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := f.Requests(); len(got) != 2 {
		t.Fatalf("requests %v, want an update and a deletion", got)
	}
	// The update is shown, the deletion not yet.
	indexer := f.Indexer(&discovery.EndpointSlice{})
	before := indexer.List()
	f.Deliver("endpointslices", nil)
	for _, obj := range before {
		if _, exists, _ := indexer.Get(obj); !exists {
			slice := obj.(*discovery.EndpointSlice).DeepCopy()
			slice.ResourceVersion = indexer.LastStoreSyncResourceVersion()
			_ = indexer.Add(slice)
		}
	}
	f.add(newPod(201))
	if err := f.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := f.Requests(); len(got) != 1 || !strings.HasPrefix(got[0], "update") {
		t.Errorf("requests %v, want one update of the slice that stays", got)
	}
}

// A write that a stale cache misled is refused by the API server, and is no failure of the Service.
func TestConflict(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"), newPod(0))
	f.syncAll("svc")
	f.Client.PrependReactor("update", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(discovery.Resource("endpointslices"), "x", errors.New("changed"))
	})
	f.add(newPod(1))
	if err := f.sync(t.Context(), cache.ObjectName{Namespace: "ns", Name: "svc"}); !errors.Is(err, errStale) {
		t.Errorf("sync: %v, want errStale", err)
	}
	if len(f.recorder.Events) != 0 {
		t.Errorf("event %q, want none", <-f.recorder.Events)
	}
}

func TestFailedWriteIsAnEvent(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"), newPod(0))
	f.Client.PrependReactor("create", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("no"))
	})
	failed := syncs(t, "error")
	if err := f.syncService(t.Context(), cache.ObjectName{Namespace: "ns", Name: "svc"}); err == nil || syncs(t, "error") != failed+1 {
		t.Errorf("sync: %v, and %v counted; want one failure", err, syncs(t, "error")-failed)
	}
	want := "Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service ns/svc: failed to create EndpointSlice for Service ns/svc: Internal error occurred: no"
	if got := <-f.recorder.Events; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

func TestNamespaceTerminating(t *testing.T) {
	f := newFixture(t, newService("svc"))
	f.Client.PrependReactor("create", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(discovery.Resource("endpointslices"), "x", errors.New("terminating"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
		return true, nil, err
	})
	succeeded := syncs(t, "success")
	if err := f.syncService(t.Context(), cache.ObjectName{Namespace: "ns", Name: "svc"}); err != nil || syncs(t, "success") != succeeded+1 {
		t.Errorf("sync: %v, want none", err)
	}
}

// The last change's time goes into the slice, and out again when a later change has none.
func TestTriggerTime(t *testing.T) {
	at := func(d time.Duration) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(testNow.Add(d)) }
	}
	f := newFixture(t, newService("svc"), newNode("node", "a"), newPod(0, at(time.Second)))
	trigger := func() string {
		f.syncAll("svc")
		return f.live("svc")[0].Annotations[v1.EndpointsLastChangeTriggerTime]
	}
	if got, want := trigger(), testNow.UTC().Format(time.RFC3339Nano); got != want {
		t.Errorf("trigger time %q, want the service's creation %q", got, want)
	}
	f.add(newPod(1, at(2*time.Second)), newPod(2, at(3*time.Second)))
	if got, want := trigger(), testNow.Add(2*time.Second).UTC().Format(time.RFC3339Nano); got != want {
		t.Errorf("trigger time %q, want the first change %q", got, want)
	}
	_ = f.Indexer(&v1.Pod{}).Delete(newPod(1))
	if got := trigger(); got != "" {
		t.Errorf("trigger time %q of a deletion, want none", got)
	}
}
