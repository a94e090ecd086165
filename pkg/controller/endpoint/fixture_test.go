// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
}

func newFixture(t *testing.T, batchPeriod time.Duration, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{World: slicetesting.New(), t: t, recorder: record.NewFakeRecorder(100), clock: clocktesting.NewFakeClock(testNow)}
	core := f.Informers.Core().V1()
	f.Controller = newController(t.Context(), sources{pods: core.Pods(), services: core.Services(), endpoints: core.Endpoints()}, f.Client,
		options{batchPeriod: batchPeriod, clock: f.clock, recorder: f.recorder})
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

var svcKey = cache.ObjectName{Namespace: "ns", Name: "svc"}

// sync syncs the Service, shows the caches what was written, and returns the requests.
func (f *fixture) sync() []string {
	f.t.Helper()
	if err := f.syncService(f.t.Context(), svcKey); err != nil {
		f.t.Fatal(err)
	}
	requests := f.Requests()
	f.Deliver("endpoints", f.endpointsHandler())
	return requests
}

func (f *fixture) wantRequests(when string, want ...string) {
	f.t.Helper()
	if got := f.sync(); !slices.Equal(got, want) {
		f.t.Errorf("%s: requests %v, want %v", when, got, want)
	}
}

// live returns the Endpoints that the API server has.
func (f *fixture) live() *v1.Endpoints {
	f.t.Helper()
	endpoints, err := f.Client.CoreV1().Endpoints("ns").Get(f.t.Context(), "svc", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Client.ClearActions()
	return endpoints
}

// queued takes all Services out of the queue, those that changes of Pods concern among them.
func (f *fixture) queued() []string {
	f.t.Helper()
	drain(f.t, f.pods)
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

func (f *fixture) wantQueued(when string, want ...string) {
	f.t.Helper()
	if got := f.queued(); !slices.Equal(got, append([]string{}, want...)) {
		f.t.Errorf("%s: queued %v, want %v", when, got, want)
	}
}

func drain[K comparable](t *testing.T, w *worker.Worker[K]) {
	t.Helper()
	for w.Len() > 0 {
		w.ProcessNextItem(t.Context())
	}
}

func newService(change ...func(*v1.Service)) *v1.Service {
	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc", CreationTimestamp: metav1.NewTime(testNow)},
		Spec: v1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, ClusterIP: "10.0.0.10", IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			Ports: []v1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: v1.ProtocolTCP}},
		},
	}
	for _, c := range change {
		c(service)
	}
	return service
}

// newPod returns a Pod number i that is ready, with an address of both families.
func newPod(i int, change ...func(*v1.Pod)) *v1.Pod {
	v4, v6 := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), fmt.Sprintf("fd00::%x", i+1)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("pod-uid-", i)), Labels: map[string]string{"app": "web"}},
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

func newPods(from, to int, change ...func(*v1.Pod)) []*v1.Pod {
	var pods []*v1.Pod
	for i := from; i < to; i++ {
		pods = append(pods, newPod(i, change...))
	}
	return pods
}

func notReady(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }

func deleted(pod *v1.Pod) {
	pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: testNow}, []string{"example.com/held"}
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

func publish(s *v1.Service) { s.Spec.PublishNotReadyAddresses = true }

func headless(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone }

// text describes subsets: ports, addresses, and with a ! those that are not ready.
func text(subsets []v1.EndpointSubset) string {
	all := ""
	for _, subset := range subsets {
		all += "["
		for _, port := range subset.Ports {
			all += fmt.Sprintf(":%d/%s/%s ", port.Port, port.Name, port.Protocol)
		}
		for _, a := range subset.Addresses {
			all += a.IP + " "
		}
		for _, a := range subset.NotReadyAddresses {
			all += "!" + a.IP + " "
		}
		all += "]"
	}
	return all
}
