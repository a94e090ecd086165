// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	slicetesting "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice/testing"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testNow = time.Unix(1_000_000, 0)

// fixture is a controller whose caches the test fills by hand.
type fixture struct {
	*Controller
	*slicetesting.World
	t        *testing.T
	recorder *record.FakeRecorder
	clock    *clocktesting.FakeClock
	onSlices cache.ResourceEventHandler
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	return newBatchingFixture(t, 0, objects...)
}

func newBatchingFixture(t *testing.T, batchPeriod time.Duration, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{World: slicetesting.New(), t: t, recorder: record.NewFakeRecorder(100), clock: clocktesting.NewFakeClock(testNow)}
	from := sources{
		pods: f.Informers.Core().V1().Pods(), services: f.Informers.Core().V1().Services(),
		nodes: f.Informers.Core().V1().Nodes(), slices: f.Informers.Discovery().V1().EndpointSlices(),
	}
	f.Controller = newController(t.Context(), from, f.Client, options{
		maxEndpointsPerSlice: 100, batchPeriod: batchPeriod, clock: f.clock, recorder: f.recorder,
	})
	f.onSlices = f.slices.Handler(name, f.services, repairDelay(batchPeriod))
	f.add(objects...)
	t.Cleanup(func() { f.Run(t.Context(), 1) }) // ends the queues' goroutines: the context is done by now
	return f
}

// add puts objects into the API server and the caches, and Services into the index.
func (f *fixture) add(objects ...runtime.Object) {
	f.Add(objects...)
	for _, obj := range objects {
		if service, ok := obj.(*v1.Service); ok {
			f.selectors.Set(service)
		}
	}
}

// syncAll syncs a Service, shows the caches what was written, and returns the requests.
func (f *fixture) syncAll(service string) []string {
	f.t.Helper()
	if err := f.sync(f.t.Context(), cache.ObjectName{Namespace: "ns", Name: service}); err != nil {
		f.t.Fatal(err)
	}
	requests := f.Requests()
	f.Deliver("endpointslices", f.onSlices)
	return requests
}

// live returns the slices of a Service that the API server has, by their names.
func (f *fixture) live(service string) []*discovery.EndpointSlice {
	f.t.Helper()
	list, err := f.Client.DiscoveryV1().EndpointSlices("ns").List(f.t.Context(), metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
	if err != nil {
		f.t.Fatal(err)
	}
	var found []*discovery.EndpointSlice
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	f.Client.ClearActions()
	return found
}

// queued takes all Services out of the queue, those that changes of Pods and nodes concern among
// them, and returns their names.
func (f *fixture) queued() []string {
	f.t.Helper()
	drain(f.t, f.pods)
	drain(f.t, f.nodes)
	names := []string{}
	f.syncHandler = func(_ context.Context, key cache.ObjectName) error {
		names = append(names, key.Name)
		return nil
	}
	defer func() { f.syncHandler = f.syncService }()
	drain(f.t, f.services)
	slices.Sort(names)
	return names
}

func drain[K comparable](t *testing.T, w *worker.Worker[K]) {
	t.Helper()
	for w.Len() > 0 {
		w.ProcessNextItem(t.Context())
	}
}

func newService(name string, change ...func(*v1.Service)) *v1.Service {
	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(testNow)},
		Spec: v1.ServiceSpec{
			Selector:   map[string]string{"app": "web"},
			ClusterIP:  "10.0.0.10",
			IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			Ports:      []v1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: v1.ProtocolTCP}},
		},
	}
	for _, c := range change {
		c(service)
	}
	return service
}

func newNode(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}}}
}

// newPod returns a Pod number i that is ready, on node, with an address of both families.
func newPod(i int, change ...func(*v1.Pod)) *v1.Pod {
	v4, v6 := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), fmt.Sprintf("fd00::%x", i+1)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i), Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "main"}}},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: v4, PodIPs: []v1.PodIP{{IP: v4}, {IP: v6}},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func notReady(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }

func terminating(pod *v1.Pod) {
	pod.DeletionTimestamp = &metav1.Time{Time: testNow}
	pod.Finalizers = []string{"example.com/held"}
}

// shown describes the endpoints of slices, sorted: address, target, and what holds of it.
func shown(found []*discovery.EndpointSlice) []string {
	all := []string{}
	for _, slice := range found {
		for _, e := range slice.Endpoints {
			text := fmt.Sprintf("%s %s", e.Addresses[0], e.TargetRef.Name)
			for condition, holds := range map[string]*bool{"1ready": e.Conditions.Ready, "2serving": e.Conditions.Serving, "3terminating": e.Conditions.Terminating} {
				if holds == nil {
					text += " no " + condition[1:]
				}
			}
			if *e.Conditions.Ready {
				text += " ready"
			}
			if *e.Conditions.Serving {
				text += " serving"
			}
			if *e.Conditions.Terminating {
				text += " terminating"
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}
