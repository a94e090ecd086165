// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
)

func TestServicesWithoutEndpoints(t *testing.T) {
	for name, change := range map[string]func(*v1.Service){
		"no selector":                   func(s *v1.Service) { s.Spec.Selector = nil },
		"ExternalName, selector, ports": func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName },
		"ExternalName, selector":        func(s *v1.Service) { s.Spec.Type, s.Spec.Ports = v1.ServiceTypeExternalName, nil },
		"ExternalName, ports":           func(s *v1.Service) { s.Spec.Type, s.Spec.Selector = v1.ServiceTypeExternalName, nil },
		"ExternalName and nothing else": func(s *v1.Service) { s.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 0, newService(change), newPod(0))
			f.wantRequests("without endpoints")
			f.add(&v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}, Subsets: []v1.EndpointSubset{{Addresses: []v1.EndpointAddress{{IP: "192.0.2.1"}}}}})
			f.wantRequests("with endpoints of somebody else")
		})
	}
}

func TestCreateUpdateAndNothing(t *testing.T) {
	f := newFixture(t, 0, newService())
	f.wantRequests("no pods", "create endpoints svc")
	f.add(newPod(0), newPod(1, notReady), newPod(2, func(p *v1.Pod) { p.Labels = map[string]string{"app": "db"} }), newPod(3, func(p *v1.Pod) { p.Namespace = "other" }))
	f.wantRequests("pods", "update endpoints svc")
	if got, want := text(f.live().Subsets), "[:8080/http/TCP 10.1.0.1 !10.1.0.2 ]"; got != want {
		t.Errorf("subsets %q, want %q", got, want)
	}
	f.wantRequests("nothing new")
	_ = f.Indexer(&v1.Pod{}).Update(newPod(0, func(p *v1.Pod) { p.ResourceVersion = "99999" }))
	f.wantRequests("a pod's resourceVersion")
	f.wantQueued("its own writes")
}

// An empty selector that is there selects everything.
func TestEmptySelector(t *testing.T) {
	f := newFixture(t, 0, newService(func(s *v1.Service) { s.Spec.Selector = map[string]string{} }), newPod(0), newPod(1, notReady),
		newPod(2, func(p *v1.Pod) { p.Labels = nil }), newPod(3, func(p *v1.Pod) { p.Namespace = "other" }))
	f.sync()
	if got, want := text(f.live().Subsets), "[:8080/http/TCP 10.1.0.1 10.1.0.3 !10.1.0.2 ]"; got != want {
		t.Errorf("subsets %q, want %q", got, want)
	}
}

func TestPortsComeAndGo(t *testing.T) {
	service := newService()
	f := newFixture(t, 0, service, newPod(0))
	f.sync()
	service.Spec.Ports[0].Name = "web"
	f.wantRequests("port renamed", "update endpoints svc")
	service.Spec.Ports = nil
	f.wantRequests("no ports", "update endpoints svc")
	if got := f.live().Subsets; len(got) != 0 {
		t.Errorf("subsets %q, want none", text(got))
	}
}

func TestServiceGone(t *testing.T) {
	f := newFixture(t, 0, newService(), newPod(0))
	f.sync()
	_ = f.Indexer(&v1.Service{}).Delete(newService())
	if err := f.syncService(t.Context(), svcKey); err != nil {
		t.Fatal(err)
	}
	if err := f.syncService(t.Context(), svcKey); err != nil {
		t.Fatal(err)
	}
	if got := f.Requests(); !slices.Equal(got, []string{"delete endpoints svc"}) {
		t.Errorf("requests %v, want one deletion while the cache does not show it", got)
	}
	f.Deliver("endpoints", f.endpointsHandler())
	f.wantRequests("the endpoints are gone, too")
	if len(f.triggerTimeTracker.ServiceStates) != 0 {
		t.Error("something is remembered of a service that is gone")
	}
}

func TestDeletionFails(t *testing.T) {
	f := newFixture(t, 0, &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}})
	fail := true
	f.Client.PrependReactor("delete", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fail, nil, apierrors.NewInternalError(errors.New("no"))
	})
	if err := f.syncService(t.Context(), svcKey); err == nil {
		t.Error("the sync succeeded")
	}
	fail = false
	f.Requests()
	f.wantRequests("again", "delete endpoints svc")
}

// A cache that lags behind holds the Service back, and brings it back when it has caught up.
func TestStaleCache(t *testing.T) {
	f := newFixture(t, 0, newService(), &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, newPod(0))
	if err := f.syncService(t.Context(), svcKey); err != nil {
		t.Fatal(err)
	}
	f.add(newPod(1))
	if err := f.syncService(t.Context(), svcKey); err == nil || len(f.Requests()) != 0 {
		t.Errorf("sync on a stale cache: %v, want it to wait", err)
	}
	f.Deliver("endpoints", f.endpointsHandler())
	f.wantQueued("the cache has caught up", "svc")
	f.wantRequests("again", "update endpoints svc")
	f.wantQueued("its own write")
}

func TestFailedWrites(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("no"))
	terminating := apierrors.NewForbidden(resource, "svc", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
	requeued := "sync again after 1s"
	existing := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}}
	tests := []struct {
		name  string
		verb  string
		err   error
		want  string
		event string
	}{
		{"create", "create", internal, "creating endpoints: " + internal.Error(), "Warning FailedToCreateEndpoint Failed to create endpoint for service ns/svc: " + internal.Error()},
		{"create, namespace terminating", "create", terminating, "", ""},
		{"create, exists", "create", apierrors.NewAlreadyExists(resource, "svc"), requeued, ""},
		{"update", "update", internal, "updating endpoints: " + internal.Error(), "Warning FailedToUpdateEndpoint Failed to update endpoint ns/svc: " + internal.Error()},
		{"update, conflict", "update", apierrors.NewConflict(resource, "svc", errors.New("changed")), requeued, ""},
		{"update, gone", "update", apierrors.NewNotFound(resource, "svc"), requeued, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, 0, newService(), newPod(0))
			if tc.verb == "update" {
				f.add(existing.DeepCopy())
			}
			f.Client.PrependReactor(tc.verb, "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			got, event := "", ""
			if err := f.syncService(t.Context(), svcKey); err != nil {
				got = err.Error()
			}
			if len(f.recorder.Events) > 0 {
				event = <-f.recorder.Events
			}
			if got != tc.want || event != tc.event {
				t.Errorf("error %q, event %q; want %q, %q", got, event, tc.want, tc.event)
			}
		})
	}
}

func TestEndpointsEvents(t *testing.T) {
	f := newFixture(t, 0)
	h := f.endpointsHandler()
	endpoints := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}}
	lock := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lock", Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"}}}
	h.OnAdd(endpoints, true)
	f.wantQueued("there at the start", "svc")
	h.OnAdd(lock, true)
	f.wantQueued("lock of an old leader election")
	h.OnAdd(endpoints, false)
	h.OnUpdate(&v1.Endpoints{}, endpoints)
	f.wantQueued("added and updated")
	h.OnDelete(endpoints)
	f.wantQueued("deleted", "svc")
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/svc", Obj: endpoints})
	f.wantQueued("deleted, its deletion missed", "svc")
}

func TestPodAndServiceEvents(t *testing.T) {
	f := newFixture(t, 0)
	services, pods := selectorindex.ServiceHandler(name, f.selectors, f.services), selectorindex.PodHandler(name, f.pods)
	services.OnAdd(newService(), true)
	f.wantQueued("initial service", "svc")
	pods.OnAdd(newPod(0), true)
	f.wantQueued("initial pod")
	pods.OnAdd(newPod(0), false)
	f.wantQueued("pod", "svc")
	pods.OnUpdate(newPod(0), newPod(0, func(p *v1.Pod) { p.ResourceVersion, p.Spec.Hostname = "2", "x" }))
	f.wantQueued("hostname", "svc")
	pods.OnUpdate(newPod(0), newPod(0, func(p *v1.Pod) { p.ResourceVersion, p.Labels = "2", nil }))
	f.wantQueued("labels", "svc")
	pods.OnDelete(newPod(0))
	f.wantQueued("pod deleted", "svc")
	services.OnDelete(newService())
	f.wantQueued("service deleted", "svc")
	pods.OnAdd(newPod(1), false)
	f.wantQueued("pod of no service")
}

// The first change goes out at once, and those of the period after it together.
func TestPodEventsAreBatched(t *testing.T) {
	f := newFixture(t, time.Second, newService())
	h := selectorindex.PodHandler(name, f.pods)
	h.OnAdd(newPod(0), false)
	f.wantQueued("first change", "svc")
	h.OnAdd(newPod(1), false)
	h.OnDelete(newPod(0))
	f.wantQueued("more changes")
	f.clock.Step(time.Second)
	for deadline := time.Now().Add(30 * time.Second); f.services.Len() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the batch is not synced when the period is over")
		}
	}
	f.wantQueued("the period is over", "svc")
}
