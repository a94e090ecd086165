// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
)

// queuedAfter lets time pass and returns the Services that are in the queue then. A timer puts them
// there in a goroutine, and a last one after them.
func (f *fixture) queuedAfter(d time.Duration) []string {
	f.t.Helper()
	last := cache.ObjectName{Namespace: "ns", Name: "~last"}
	f.services.AddAfter(last, d)
	f.clock.Step(d)
	names := []string{}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		names = append(names, f.queued()...)
		if i := slices.Index(names, last.Name); i >= 0 {
			return slices.Sorted(slices.Values(slices.Delete(names, i, i+1)))
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("queued %v, and nothing after them", names)
		}
	}
}

func (f *fixture) wantQueued(when string, want ...string) {
	f.t.Helper()
	if got := f.queued(); !slices.Equal(got, append([]string{}, want...)) {
		f.t.Errorf("%s: queued %v, want %v", when, got, want)
	}
}

func TestServiceEvents(t *testing.T) {
	f := newFixture(t)
	h := selectorindex.ServiceHandler(name, f.selectors, f.services)
	service, edited := newService("svc"), newService("svc", func(s *v1.Service) { s.ResourceVersion, s.Spec.Selector = "2", map[string]string{"app": "db"} })
	pod := selectorindex.PodHandler(name, f.pods)
	h.OnAdd(service, true)
	f.wantQueued("initial", "svc")
	pod.OnAdd(newPod(0), false)
	f.wantQueued("pod of an initial service", "svc")
	h.OnUpdate(service, edited)
	f.wantQueued("edited", "svc")
	pod.OnAdd(newPod(0), false)
	f.wantQueued("pod that is selected no longer")
	h.OnDelete(edited)
	f.wantQueued("deleted", "svc")
	h.OnAdd(service, false)
	f.wantQueued("added", "svc")
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/svc", Obj: service})
	pod.OnAdd(newPod(0), false)
	f.wantQueued("deleted, its deletion missed", "svc")
}

func TestPodEvents(t *testing.T) {
	f := newFixture(t, newService("web"), newService("db", func(s *v1.Service) { s.Spec.Selector = map[string]string{"app": "db"} }),
		newService("both", func(s *v1.Service) { s.Spec.Selector = map[string]string{"stack": "x"} }),
		newService("manual", func(s *v1.Service) { s.Spec.Selector = nil }))
	h := selectorindex.PodHandler(name, f.pods)
	web := newPod(0, func(p *v1.Pod) { p.Labels["stack"], p.ResourceVersion = "x", "1" })
	db := newPod(0, func(p *v1.Pod) { p.Labels, p.ResourceVersion = map[string]string{"app": "db", "stack": "x"}, "2" })
	h.OnAdd(web, true)
	f.wantQueued("initial: the services' own first syncs see it")
	h.OnAdd(web, false)
	f.wantQueued("added", "both", "web")
	h.OnUpdate(web, db)
	f.wantQueued("labels: those that select it no longer or newly", "db", "web")
	notReady(db)
	h.OnUpdate(web, db)
	f.wantQueued("labels and readiness: all", "both", "db", "web")
	h.OnUpdate(web, newPod(0, func(p *v1.Pod) {
		p.Labels["stack"], p.ResourceVersion, p.Annotations = "x", "3", map[string]string{"a": "b"}
	}))
	f.wantQueued("annotation")
	h.OnDelete(db)
	f.wantQueued("deleted", "both", "db")
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/pod-0", Obj: web})
	f.wantQueued("deleted, its deletion missed", "both", "web")
}

// The first change goes out at once, and those of the period after it together.
func TestPodEventsAreBatched(t *testing.T) {
	f := newBatchingFixture(t, 10*time.Second, newService("web"))
	h := selectorindex.PodHandler(name, f.pods)
	h.OnAdd(newPod(0), false)
	f.wantQueued("first change", "web")
	h.OnAdd(newPod(1), false)
	h.OnDelete(newPod(0))
	f.wantQueued("more changes")
	f.clock.Step(9 * time.Second)
	h.OnUpdate(newPod(1), newPod(1, notReady, func(p *v1.Pod) { p.ResourceVersion = "2" }))
	f.wantQueued("and more")
	if got := f.queuedAfter(time.Second); !slices.Equal(got, []string{"web"}) {
		t.Errorf("queued %v after the period, want web once", got)
	}
	selectorindex.ServiceHandler(name, f.selectors, f.services).OnUpdate(newService("web"), newService("web", func(s *v1.Service) { s.ResourceVersion = "2" }))
	f.wantQueued("a change of the service does not wait", "web")
}

func TestSliceEvents(t *testing.T) {
	f := newFixture(t, newService("svc"), newNode("node", "a"), newPod(0))
	f.syncAll("svc")
	f.wantQueued("own creation")
	own := f.live("svc")[0]
	change := func(edit func(s *discovery.EndpointSlice)) *discovery.EndpointSlice {
		slice := own.DeepCopy()
		slice.ResourceVersion = own.ResourceVersion + "0"
		edit(slice)
		return slice
	}
	after := func(what string, want ...string) {
		t.Helper()
		f.wantQueued(what + ": not at once")
		if got := f.queuedAfter(endpointSliceChangeMinSyncDelay); !slices.Equal(got, want) {
			t.Errorf("%s: queued %v, want %v", what, got, want)
		}
	}
	f.onSlices.OnUpdate(own, change(func(s *discovery.EndpointSlice) { s.Generation++ }))
	after("edited by hand", "svc")
	f.onSlices.OnUpdate(own, change(func(s *discovery.EndpointSlice) { s.Annotations = nil }))
	after("annotation edited by hand")
	f.onSlices.OnUpdate(own, change(func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelServiceName] = "other" }))
	after("given to another service", "other", "svc")
	f.slices.Tracker.Update(own)
	f.onSlices.OnUpdate(own, change(func(s *discovery.EndpointSlice) { delete(s.Labels, discovery.LabelManagedBy) }))
	after("taken from the controller", "svc")
	f.onSlices.OnUpdate(change(func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelManagedBy] = "me" }), own)
	after("given to the controller", "svc")
	f.onSlices.OnAdd(change(func(s *discovery.EndpointSlice) { s.UID = "made-by-hand" }), false)
	after("made by hand", "svc")
	f.onSlices.OnAdd(change(func(s *discovery.EndpointSlice) { s.UID, s.Labels[discovery.LabelManagedBy] = "x", "me" }), false)
	after("made by another controller")
	f.onSlices.OnAdd(own, true)
	f.wantQueued("initial", "svc")
	f.slices.Tracker.Update(own)
	f.onSlices.OnDelete(own)
	after("deleted by hand", "svc")
	f.onSlices.OnDelete(own)
	after("deleted by hand, and not written since the start", "svc")
}

// The controller's own deletions enqueue nothing.
func TestOwnDeletionIsExpected(t *testing.T) {
	service := newService("svc", func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} })
	f := newFixture(t, service, newNode("node", "a"), newPod(0))
	f.syncAll("svc")
	service.Spec.IPFamilies = service.Spec.IPFamilies[:1]
	f.syncAll("svc")
	if got := f.queuedAfter(time.Minute); len(got) != 0 {
		t.Errorf("queued %v after its own deletion, want nothing", got)
	}
	if len(f.live("svc")) != 1 {
		t.Error("the slice was not deleted")
	}
}

func node(name, zone, cpu string, ready bool) *v1.Node {
	n := newNode(name, zone)
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
	if cpu != "" {
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	}
	if zone == "" {
		n.Labels = nil
	}
	return n
}

// Which Services' hints are looked at again when nodes change.
func TestNodeTopologyDistribution(t *testing.T) {
	even := []*v1.Node{node("a", "zone-a", "1", true), node("b", "zone-b", "1", true)}
	tests := []struct {
		name   string
		nodes  []*v1.Node
		hints  map[string]int
		queued bool
	}{
		{"empty", nil, nil, false},
		{"lopsided", even, map[string]int{"zone-a": 5, "zone-b": 1}, true},
		{"one zone is not ready", []*v1.Node{node("a", "zone-a", "1", true), node("b", "zone-b", "1", false)}, map[string]int{"zone-a": 1, "zone-b": 2}, true},
		{"even zones, uneven endpoints, within the threshold", even, map[string]int{"zone-a": 6, "zone-b": 5}, false},
		{"node without zone", []*v1.Node{node("a", "zone-a", "1", true), node("b", "", "1", true)}, map[string]int{"zone-a": 5, "zone-b": 5}, true},
		{"node without cpu", []*v1.Node{node("a", "zone-a", "1", true), node("b", "zone-b", "", true)}, map[string]int{"zone-a": 5, "zone-b": 5}, true},
		{"even zones, uneven endpoints, beyond the threshold", even, map[string]int{"zone-a": 6, "zone-b": 4}, true},
		{"three uneven zones, matching endpoints", []*v1.Node{node("a", "zone-a", "2", true), node("b", "zone-b", "1", true), node("c", "zone-c", "1", true)},
			map[string]int{"zone-a": 20, "zone-b": 10, "zone-c": 10}, false},
		{"three uneven zones, a few too few", []*v1.Node{node("a", "zone-a", "2", true), node("b", "zone-b", "1", true), node("c", "zone-c", "1", true)},
			map[string]int{"zone-a": 10, "zone-b": 20, "zone-c": 10}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			for _, n := range tc.nodes {
				f.add(n)
			}
			if tc.hints != nil {
				f.topologyCache.SetHints("ns/svc", discovery.AddressTypeIPv4, tc.hints)
			}
			f.nodeHandler().OnDelete(newNode("x", "x"))
			want := []string{}
			if tc.queued {
				want = append(want, "svc")
			}
			f.wantQueued("nodes changed", want...)
		})
	}
}

func TestRepairsAreNoFasterThanASecondNorThanBatches(t *testing.T) {
	for batchPeriod, want := range map[time.Duration]time.Duration{0: time.Second, time.Millisecond: time.Second, time.Minute: time.Minute} {
		if got := repairDelay(batchPeriod); got != want {
			t.Errorf("batches of %v: repair after %v, want %v", batchPeriod, got, want)
		}
	}
}

func TestNodeEvents(t *testing.T) {
	base := func() *v1.Node { return node("node", "a", "1", true) }
	tests := []struct {
		name     string
		change   func(*v1.Node)
		all, own bool
	}{
		{"heartbeat", func(n *v1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(testNow) }, false, false},
		{"annotation", func(n *v1.Node) { n.Annotations = map[string]string{"a": "b"} }, false, false},
		{"not ready", func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionUnknown }, true, false},
		{"no conditions", func(n *v1.Node) { n.Status.Conditions = nil }, true, false},
		{"zone", func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "b" }, true, true},
		{"no zone", func(n *v1.Node) { n.Labels = nil }, true, true},
		{"cpu", func(n *v1.Node) { n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("2") }, true, false},
		{"control plane", func(n *v1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }, true, false},
		{"other label", func(n *v1.Node) { n.Labels["x"] = "y" }, false, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, newService("web"), newPod(0))
			f.topologyCache.SetHints("ns/overloaded", discovery.AddressTypeIPv4, map[string]int{"a": 9})
			cur := base()
			cur.ResourceVersion = "2"
			tc.change(cur)
			f.nodeHandler().OnUpdate(base(), cur)
			want := []string{}
			if tc.all {
				want = append(want, "overloaded")
			}
			if tc.own {
				want = append(want, "web")
			}
			f.wantQueued(tc.name, want...)
		})
	}
}

// BC075: a node that was not known brings the Services of its Pods back; the first list does not.
func TestNodeAppears(t *testing.T) {
	f := newFixture(t, newService("web"), newPod(0, func(p *v1.Pod) { p.Spec.NodeName = "ghost" }))
	f.nodeHandler().OnAdd(newNode("ghost", "a"), true)
	f.wantQueued("initial")
	f.nodeHandler().OnAdd(newNode("other", "a"), false)
	f.wantQueued("a node without pods")
	f.nodeHandler().OnAdd(newNode("ghost", "a"), false)
	f.wantQueued("the pod's node", "web")
}

// Hints follow the annotation and trafficDistribution.
func TestHints(t *testing.T) {
	objects := func(service *v1.Service) *fixture {
		f := newFixture(t, service, node("node-0", "zone-a", "1", true), node("node-1", "zone-b", "1", true))
		for i := range 4 {
			f.add(newPod(i, func(p *v1.Pod) { p.Spec.NodeName = fmt.Sprint("node-", i%2) }))
		}
		if err := f.setNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.syncAll("svc")
		return f
	}
	hints := func(f *fixture) string {
		text := ""
		for _, e := range f.live("svc")[0].Endpoints {
			if e.Hints != nil && len(e.Hints.ForZones) == 1 && *e.Zone == e.Hints.ForZones[0].Name {
				text += "zone "
			}
			if e.Hints != nil && len(e.Hints.ForNodes) == 1 && *e.NodeName == e.Hints.ForNodes[0].Name {
				text += "node "
			}
		}
		return text
	}
	distribution := func(value string) func(*v1.Service) {
		return func(s *v1.Service) { s.Spec.TrafficDistribution = &value }
	}
	annotated := newService("svc", func(s *v1.Service) { s.Annotations = map[string]string{v1.AnnotationTopologyMode: "Auto"} })
	f := objects(annotated)
	if got := hints(f); got != "zone zone zone zone " {
		t.Errorf("topology-mode Auto: hints %q", got)
	}
	if got := <-f.recorder.Events; got != "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4" {
		t.Errorf("event %q", got)
	}
	annotated.Annotations = nil
	f.syncAll("svc")
	if got := hints(f); got != "" {
		t.Errorf("annotation gone: hints %q", got)
	}
	if got := <-f.recorder.Events; got != "Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled, addressType: IPv4" {
		t.Errorf("event %q", got)
	}
	for value, want := range map[string]string{
		v1.ServiceTrafficDistributionPreferClose:    "zone zone zone zone ",
		v1.ServiceTrafficDistributionPreferSameZone: "zone zone zone zone ",
		v1.ServiceTrafficDistributionPreferSameNode: "zone node zone node zone node zone node ",
		"example.com/other":                         "",
	} {
		if got := hints(objects(newService("svc", distribution(value)))); got != want {
			t.Errorf("trafficDistribution %s: hints %q, want %q", value, got, want)
		}
	}
}
