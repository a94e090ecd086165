// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	slicetesting "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testNow = time.Unix(1_000_000, 0)
	svcKey  = cache.ObjectName{Namespace: "ns", Name: "svc"}
)

// fixture is a controller whose caches the test fills by hand.
type fixture struct {
	*Controller
	*slicetesting.World
	t        *testing.T
	recorder *record.FakeRecorder
	clock    *clocktesting.FakeClock
	onSlices cache.ResourceEventHandler
}

func newFixture(t *testing.T, batchPeriod time.Duration, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{World: slicetesting.New(), t: t, recorder: record.NewFakeRecorder(100), clock: clocktesting.NewFakeClock(testNow)}
	core := f.Informers.Core().V1()
	f.Controller = newController(t.Context(), sources{endpoints: core.Endpoints(), slices: f.Informers.Discovery().V1().EndpointSlices(), services: core.Services()}, f.Client,
		options{maxPerSubset: 1000, batchPeriod: batchPeriod, clock: f.clock, recorder: f.recorder})
	f.onSlices = f.slices.Handler(name, f.worker, batchPeriod)
	f.Add(objects...)
	t.Cleanup(func() { f.Run(t.Context(), 1) }) // ends the queue's goroutines: the context is done by now
	return f
}

// sync syncs the Endpoints, shows the caches what was written, and returns the requests without
// the names that the API server makes.
func (f *fixture) sync() []string {
	f.t.Helper()
	if err := f.syncEndpoints(f.t.Context(), svcKey); err != nil {
		f.t.Fatal(err)
	}
	var verbs []string
	for _, request := range f.Requests() {
		verbs = append(verbs, strings.Fields(request)[0])
	}
	f.Deliver("endpointslices", f.onSlices)
	return verbs
}

func (f *fixture) wantRequests(when string, want ...string) {
	f.t.Helper()
	if got := f.sync(); !slices.Equal(got, want) {
		f.t.Errorf("%s: requests %v, want %v", when, got, want)
	}
}

// live returns the slices that the API server has.
func (f *fixture) live() []*discovery.EndpointSlice {
	f.t.Helper()
	list, err := f.Client.DiscoveryV1().EndpointSlices("ns").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Client.ClearActions()
	var found []*discovery.EndpointSlice
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found
}

func (f *fixture) wantQueued(when string, want ...string) {
	f.t.Helper()
	names := []string{}
	f.syncHandler = func(_ context.Context, key cache.ObjectName) error {
		names = append(names, key.Name)
		return nil
	}
	defer func() { f.syncHandler = f.syncEndpoints }()
	for f.worker.Len() > 0 {
		f.worker.ProcessNextItem(f.t.Context())
	}
	if !slices.Equal(names, append([]string{}, want...)) {
		f.t.Errorf("%s: queued %v, want %v", when, names, want)
	}
}

func newService(change ...func(*v1.Service)) *v1.Service {
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}}
	for _, c := range change {
		c(service)
	}
	return service
}

func newEndpoints(subsets ...v1.EndpointSubset) *v1.Endpoints {
	return &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc", UID: "endpoints"}, Subsets: subsets}
}

// subset returns a subset: ports, then addresses, and with a ! those that are not ready.
func subset(ports []int32, addresses ...string) v1.EndpointSubset {
	var s v1.EndpointSubset
	for _, port := range ports {
		s.Ports = append(s.Ports, v1.EndpointPort{Name: fmt.Sprint("port-", port), Port: port, Protocol: v1.ProtocolTCP})
	}
	for _, address := range addresses {
		if ip, notReady := strings.CutPrefix(address, "!"); notReady {
			s.NotReadyAddresses = append(s.NotReadyAddresses, v1.EndpointAddress{IP: ip})
			continue
		}
		s.Addresses = append(s.Addresses, v1.EndpointAddress{IP: address})
	}
	return s
}

// text describes slices, sorted: type, ports, endpoints, and with a ! those that are not ready.
func text(found []*discovery.EndpointSlice) []string {
	all := []string{}
	for _, slice := range found {
		var ports, endpoints []string
		for _, port := range slice.Ports {
			ports = append(ports, fmt.Sprint(*port.Port))
		}
		for _, e := range slice.Endpoints {
			mark := ""
			if !*e.Conditions.Ready {
				mark = "!"
			}
			endpoints = append(endpoints, mark+e.Addresses[0])
		}
		slices.Sort(ports)
		all = append(all, fmt.Sprintf("%s %s: %s", slice.AddressType, strings.Join(ports, ","), strings.Join(endpoints, " ")))
	}
	slices.Sort(all)
	return all
}
