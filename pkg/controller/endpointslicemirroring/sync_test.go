// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func withSelector(s *v1.Service) { s.Spec.Selector = map[string]string{"a": "b"} }

// What is not mirrored, and has its slices deleted when it was.
func TestWhatIsMirrored(t *testing.T) {
	skip := func(value string) func(*fixture) {
		return func(f *fixture) {
			endpoints := newEndpoints(subset([]int32{80}, "10.0.0.1"))
			endpoints.Labels = map[string]string{discovery.LabelSkipMirror: value}
			_ = f.Indexer(endpoints).Update(endpoints)
		}
	}
	tests := []struct {
		name   string
		change func(*fixture)
		want   string
	}{
		{"as it is", func(*fixture) {}, ""},
		{"skip label true", skip("true"), "delete"},
		{"skip label false", skip("false"), "update"},
		{"no service", func(f *fixture) { _ = f.Indexer(&v1.Service{}).Delete(newService()) }, "delete"},
		{"service with a selector", func(f *fixture) { _ = f.Indexer(&v1.Service{}).Update(newService(withSelector)) }, "delete"},
		{"no endpoints", func(f *fixture) { _ = f.Indexer(&v1.Endpoints{}).Delete(newEndpoints()) }, "delete"},
		{"no addresses", func(f *fixture) { _ = f.Indexer(&v1.Endpoints{}).Update(newEndpoints()) }, "delete"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1")))
			f.wantRequests("at first", "create")
			tc.change(f)
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			f.wantRequests(tc.name, want...)
			f.wantRequests("again")
			f.wantQueued("its own writes")
		})
	}
}

func TestSlicesOfOthersAreLeftAlone(t *testing.T) {
	f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1")))
	f.sync()
	mine := f.live()[0]
	for i, change := range []func(*discovery.EndpointSlice){
		func(s *discovery.EndpointSlice) { s.Namespace = "other" },
		func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelServiceName] = "svc2" },
		func(s *discovery.EndpointSlice) {
			s.Labels[discovery.LabelManagedBy] = "endpointslice-controller.k8s.io"
		},
		func(s *discovery.EndpointSlice) { delete(s.Labels, discovery.LabelManagedBy) },
		func(s *discovery.EndpointSlice) { delete(s.Labels, discovery.LabelServiceName) },
	} {
		slice := mine.DeepCopy()
		slice.Name, slice.UID = fmt.Sprint("other-", i), ""
		change(slice)
		f.Add(slice)
	}
	_ = f.Indexer(&v1.Endpoints{}).Delete(newEndpoints())
	f.wantRequests("endpoints deleted", "delete")
}

func TestTooManyAddresses(t *testing.T) {
	addresses := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
		}
		return all
	}
	for n, want := range map[int]string{
		1000: "",
		1001: "Warning TooManyAddressesToMirror A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped",
	} {
		f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, addresses(n)...)))
		f.wantRequests("at first", "create")
		if got := len(f.live()[0].Endpoints); got != 1000 {
			t.Errorf("%d endpoints, want 1000", got)
		}
		event := ""
		if len(f.recorder.Events) > 0 {
			event = <-f.recorder.Events
		}
		if event != want {
			t.Errorf("event %q, want %q", event, want)
		}
	}
	f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1", "x")))
	f.sync()
	if got, want := <-f.recorder.Events, "Warning InvalidIPAddress Skipped 1 invalid IP addresses when mirroring to EndpointSlices"; got != want || len(f.recorder.Events) != 0 {
		t.Errorf("event %q, want %q alone", got, want)
	}
}

// BC078: hand edits of the mirror are undone.
func TestHandEditedMirror(t *testing.T) {
	f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1", "!10.0.0.2"), subset([]int32{81}, "10.0.0.1", "10.0.0.2")))
	f.sync()
	want := text(f.live())
	for i, edit := range []func(*discovery.EndpointSlice){
		func(s *discovery.EndpointSlice) { s.Endpoints[0].Addresses = []string{"192.0.2.1"} },
		func(s *discovery.EndpointSlice) { s.Ports = nil },
		func(s *discovery.EndpointSlice) { s.Labels["x"] = "y" },
	} {
		slice := f.live()[0]
		edit(slice)
		if _, err := f.Client.DiscoveryV1().EndpointSlices("ns").Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.Requests()
		f.Deliver("endpointslices", f.onSlices)
		f.wantQueued("edited", "svc")
		f.wantRequests("edited", "update")
		if got := text(f.live()); !slices.Equal(got, want) {
			t.Errorf("edit %d: slices %q, want %q", i, got, want)
		}
	}
	slice := f.live()[0]
	if err := f.Client.DiscoveryV1().EndpointSlices("ns").Delete(t.Context(), slice.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(slice.UID))}); err != nil {
		t.Fatal(err)
	}
	f.Requests()
	f.Deliver("endpointslices", f.onSlices)
	f.wantQueued("deleted", "svc")
	f.wantRequests("deleted", "create")
}

func TestStaleCache(t *testing.T) {
	f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1")), &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}})
	if err := f.syncEndpoints(t.Context(), svcKey); err != nil {
		t.Fatal(err)
	}
	f.Requests()
	_ = f.Indexer(&v1.Endpoints{}).Update(newEndpoints(subset([]int32{80}, "10.0.0.2")))
	if err := f.syncEndpoints(t.Context(), svcKey); err == nil || len(f.Requests()) != 0 {
		t.Errorf("sync on a stale cache: %v, want it to wait", err)
	}
	f.Deliver("endpointslices", f.onSlices)
	f.wantQueued("the cache has caught up", "svc")
	f.wantRequests("again", "update")
}

func TestFailedWrites(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("no"))
	terminating := apierrors.NewForbidden(discovery.Resource("endpointslices"), "x", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
	other := newEndpoints(subset([]int32{80}, "10.0.0.2"))
	tests := []struct {
		name, verb string
		err        error
		change     func(*fixture)
		want       string
	}{
		{"create", "create", internal, nil, "failed to create EndpointSlice for Endpoints ns/svc: " + internal.Error()},
		{"create, namespace terminating", "create", terminating, nil, ""},
		{"update", "update", internal, func(f *fixture) { _ = f.Indexer(other).Update(other) }, "failed to update %s EndpointSlice for Endpoints ns/svc: " + internal.Error()},
		{"update, conflict", "update", apierrors.NewConflict(discovery.Resource("endpointslices"), "x", errors.New("changed")), func(f *fixture) { _ = f.Indexer(other).Update(other) }, "sync again after 1s"},
		{"delete of one", "delete", internal, func(f *fixture) { _ = f.Indexer(other).Update(newEndpoints()) }, "failed to delete %s EndpointSlice for Endpoints ns/svc: " + internal.Error()},
		{"delete of all", "delete", internal, func(f *fixture) { _ = f.Indexer(other).Delete(other) }, "error(s) deleting 1/1 EndpointSlices for ns/svc Endpoints, including: " + internal.Error()},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1")))
			want := tc.want
			if tc.change != nil {
				f.sync()
				tc.change(f)
				if name := f.live()[0].Name; slices.Contains([]string{"update", "delete of one"}, tc.name) {
					want = fmt.Sprintf(tc.want, name)
				}
			}
			fail := true
			f.Client.PrependReactor(tc.verb, "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) { return fail, nil, tc.err })
			got := ""
			if err := f.syncEndpoints(t.Context(), svcKey); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("error %q, want %q", got, want)
			}
			fail = false
			f.Requests()
			f.wantRequests("again", tc.verb)
		})
	}
}

func TestMetrics(t *testing.T) {
	f := newFixture(t, 0, newService(), newEndpoints(subset([]int32{80}, "10.0.0.1", "10.0.0.2"), subset([]int32{81}, "fd00::1")))
	changes := func(operation string) float64 {
		value, err := testutil.GetCounterMetricValue(f.metrics.EndpointSliceChanges.WithLabelValues(operation))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	created, deleted := changes("create"), changes("delete")
	f.sync()
	if got := changes("create") - created; got != 2 {
		t.Errorf("%v creations counted, want 2", got)
	}
	for gauge, want := range map[*k8smetrics.GaugeVec]float64{f.metrics.EndpointsDesired: 3, f.metrics.NumEndpointSlices: 2, f.metrics.DesiredEndpointSlices: 2} {
		if got, err := testutil.GetGaugeMetricValue(gauge.WithLabelValues()); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", gauge.FQName(), got, err, want)
		}
	}
	_ = f.Indexer(&v1.Endpoints{}).Delete(newEndpoints())
	f.sync()
	if got := changes("delete") - deleted; got != 2 {
		t.Errorf("%v deletions counted, want 2", got)
	}
	if count, err := testutil.GetHistogramMetricCount(f.metrics.EndpointsSyncDuration.WithLabelValues()); err != nil || count < 2 {
		t.Errorf("%d durations (%v), want 2 at least", count, err)
	}
}

func TestEvents(t *testing.T) {
	f := newFixture(t, 0)
	endpoints, services := f.endpointsHandler(), f.serviceHandler()
	mirrored, skipped := newEndpoints(), newEndpoints()
	skipped.Labels, skipped.ResourceVersion = map[string]string{discovery.LabelSkipMirror: "true"}, "2"
	endpoints.OnAdd(mirrored, true)
	f.wantQueued("initial", "svc")
	endpoints.OnAdd(skipped, true)
	endpoints.OnAdd(skipped, false)
	f.wantQueued("not mirrored")
	endpoints.OnAdd(mirrored, false)
	f.wantQueued("added", "svc")
	endpoints.OnUpdate(mirrored, skipped)
	f.wantQueued("not mirrored any more", "svc")
	endpoints.OnUpdate(skipped, mirrored)
	f.wantQueued("mirrored from now on", "svc")
	stillSkipped := skipped.DeepCopy()
	stillSkipped.ResourceVersion = "3"
	endpoints.OnUpdate(skipped, stillSkipped)
	endpoints.OnDelete(skipped)
	f.wantQueued("not mirrored, updated and deleted")
	endpoints.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/svc", Obj: mirrored})
	f.wantQueued("deleted, its deletion missed", "svc")

	plain, selecting := newService(), newService(withSelector)
	selecting.ResourceVersion = "2"
	edited := newService(func(s *v1.Service) { s.ResourceVersion, s.Labels = "3", map[string]string{"a": "b"} })
	services.OnAdd(plain, true)
	f.wantQueued("initial service", "svc")
	services.OnAdd(selecting, true)
	services.OnAdd(selecting, false)
	services.OnUpdate(plain, edited)
	services.OnDelete(selecting)
	f.wantQueued("services with a selector, and one without that keeps it so")
	services.OnAdd(plain, false)
	f.wantQueued("service added", "svc")
	services.OnUpdate(plain, selecting)
	f.wantQueued("service with a selector from now on", "svc")
	services.OnUpdate(selecting, plain)
	f.wantQueued("service without a selector from now on", "svc")
	services.OnDelete(plain)
	f.wantQueued("service deleted", "svc")
	f.onSlices.OnAdd(&discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Labels: map[string]string{
		discovery.LabelServiceName: "svc", discovery.LabelManagedBy: controllerName}}}, true)
	f.wantQueued("initial slice", "svc")
}

// The first change goes out at once, and those of the period after it together.
func TestEventsAreBatched(t *testing.T) {
	f := newFixture(t, time.Second)
	h := f.endpointsHandler()
	h.OnAdd(newEndpoints(), false)
	f.wantQueued("first change", "svc")
	h.OnDelete(newEndpoints())
	h.OnAdd(newEndpoints(), false)
	f.wantQueued("more changes")
	f.clock.Step(time.Second)
	for deadline := time.Now().Add(30 * time.Second); f.worker.Len() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the batch is not synced when the period is over")
		}
	}
	f.wantQueued("the period is over", "svc")
}
