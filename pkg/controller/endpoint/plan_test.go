// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func planText(service *v1.Service, pods ...*v1.Pod) string {
	return text(makePlan(service, pods, nil, testNow).Subsets)
}

func TestWhichAddressesAreThere(t *testing.T) {
	const ready, not, none = "[:8080/http/TCP 10.1.0.1 ]", "[:8080/http/TCP !10.1.0.1 ]", ""
	tests := []struct {
		name    string
		service []func(*v1.Service)
		pod     []func(*v1.Pod)
		want    string
	}{
		{"running", nil, nil, ready},
		{"running, not ready", nil, []func(*v1.Pod){notReady}, not},
		{"no Ready condition", nil, []func(*v1.Pod){func(p *v1.Pod) { p.Status.Conditions = nil }}, not},
		{"running, in deletion", nil, []func(*v1.Pod){deleted}, none},
		{"unknown phase", nil, []func(*v1.Pod){inPhase(v1.PodUnknown)}, ready},
		{"unknown phase, in deletion", nil, []func(*v1.Pod){inPhase(v1.PodUnknown), deleted}, none},
		{"unknown phase, not ready", nil, []func(*v1.Pod){inPhase(v1.PodUnknown), notReady}, not},
		{"pending", nil, []func(*v1.Pod){inPhase(v1.PodPending)}, ready},
		{"pending, in deletion", nil, []func(*v1.Pod){inPhase(v1.PodPending), deleted}, none},
		{"pending, not ready", nil, []func(*v1.Pod){inPhase(v1.PodPending), notReady}, not},
		{"failed", nil, []func(*v1.Pod){inPhase(v1.PodFailed)}, none},
		{"failed, not ready", nil, []func(*v1.Pod){inPhase(v1.PodFailed), notReady}, none},
		{"succeeded", nil, []func(*v1.Pod){inPhase(v1.PodSucceeded)}, none},
		{"published", []func(*v1.Service){publish}, []func(*v1.Pod){notReady}, ready},
		{"published, in deletion", []func(*v1.Service){publish}, []func(*v1.Pod){notReady, deleted}, ready},
		{"published, unknown phase", []func(*v1.Service){publish}, []func(*v1.Pod){inPhase(v1.PodUnknown), notReady}, ready},
		{"published, unknown phase, in deletion", []func(*v1.Service){publish}, []func(*v1.Pod){inPhase(v1.PodUnknown), deleted}, ready},
		{"published, pending, in deletion", []func(*v1.Service){publish}, []func(*v1.Pod){inPhase(v1.PodPending), deleted}, ready},
		{"published, failed", []func(*v1.Service){publish}, []func(*v1.Pod){inPhase(v1.PodFailed)}, none},
		{"published, succeeded", []func(*v1.Service){publish}, []func(*v1.Pod){inPhase(v1.PodSucceeded)}, none},
		{"no address", nil, []func(*v1.Pod){func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }}, none},
		{"headless", []func(*v1.Service){headless}, nil, ready},
		{"headless without ports", []func(*v1.Service){headless, func(s *v1.Service) { s.Spec.Ports = nil }}, nil, "[10.1.0.1 ]"},
		{"no ports, not headless", []func(*v1.Service){func(s *v1.Service) { s.Spec.Ports = nil }}, nil, none},
		{"headless, no such port", []func(*v1.Service){headless, func(s *v1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("other") }}, nil, none},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := planText(newService(tc.service...), newPod(0, tc.pod...)); got != tc.want {
				t.Errorf("subsets %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhichFamily(t *testing.T) {
	v4, v6 := []v1.IPFamily{v1.IPv4Protocol}, []v1.IPFamily{v1.IPv6Protocol}
	v4Only := func(p *v1.Pod) { p.Status.PodIPs = p.Status.PodIPs[:1] }
	v6Only := func(p *v1.Pod) { p.Status.PodIPs = p.Status.PodIPs[1:]; p.Status.PodIP = p.Status.PodIPs[0].IP }
	v6First := func(p *v1.Pod) { slices.Reverse(p.Status.PodIPs); p.Status.PodIP = p.Status.PodIPs[0].IP }
	dual := func(*v1.Pod) {}
	tests := []struct {
		name      string
		families  []v1.IPFamily
		clusterIP string
		pod       func(*v1.Pod)
		want      string
	}{
		{"IPv4, pod of IPv4", v4, "10.0.0.1", v4Only, "10.1.0.1"},
		{"IPv4, pod of both", v4, "10.0.0.1", dual, "10.1.0.1"},
		{"IPv4, pod of both, IPv6 first", v4, "10.0.0.1", v6First, "10.1.0.1"},
		{"both, IPv6 first", []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol}, "fd01::1", dual, "fd00::1"},
		{"headless IPv4, pod of IPv4", v4, "None", v4Only, "10.1.0.1"},
		{"headless IPv4, pod of both", v4, "None", dual, "10.1.0.1"},
		{"IPv6, pod of both", v6, "fd01::1", dual, "fd00::1"},
		{"headless IPv6, pod of IPv6", v6, "None", v6Only, "fd00::1"},
		{"headless IPv6, pod of both", v6, "None", dual, "fd00::1"},
		{"IPv6, pod of IPv4", v6, "fd01::1", v4Only, ""},
		{"no family, IPv4 address", nil, "10.0.0.1", dual, "10.1.0.1"},
		{"no family, IPv6 address", nil, "fd01::1", dual, "fd00::1"},
		{"no family, no address of the pod", nil, "10.0.0.1", v6Only, ""},
		{"no family, headless, pod of IPv4", nil, "None", v4Only, "10.1.0.1"},
		{"no family, headless, pod of IPv6", nil, "None", v6Only, "fd00::1"},
		{"no family, headless, pod of both, IPv6 first", nil, "None", v6First, "fd00::1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			service := newService(func(s *v1.Service) { s.Spec.IPFamilies, s.Spec.ClusterIP = tc.families, tc.clusterIP })
			got := ""
			if address, err := addressFor(service, newPod(0, tc.pod)); err == nil {
				got = address.IP
			}
			if got != tc.want {
				t.Errorf("address %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAddressRefersToItsPod(t *testing.T) {
	service := newService(headless)
	address, err := addressFor(service, newPod(0, func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "web-0", "svc" }))
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.EndpointAddress{IP: "10.1.0.1", Hostname: "web-0", NodeName: ptr.To("node"), TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "pod-0", UID: "pod-uid-0"}}
	if diff := cmp.Diff(want, address); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	address, err = addressFor(service, newPod(0, func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "web-0", "other" }))
	if err != nil || address.Hostname != "" {
		t.Errorf("hostname %q of a pod in another subdomain (%v)", address.Hostname, err)
	}
}

func TestPorts(t *testing.T) {
	port := func(name string, target intstr.IntOrString, protocol v1.Protocol) v1.ServicePort {
		return v1.ServicePort{Name: name, Port: 80, TargetPort: target, Protocol: protocol}
	}
	named := func(number int32) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "web", ContainerPort: number, Protocol: v1.ProtocolTCP}}
		}
	}
	tests := []struct {
		name  string
		ports []v1.ServicePort
		pods  []*v1.Pod
		want  []string // sorted
	}{
		{"UDP", []v1.ServicePort{port("a", intstr.FromInt32(53), v1.ProtocolUDP)}, newPods(0, 1), []string{"[:53/a/UDP 10.1.0.1 ]"}},
		{"SCTP", []v1.ServicePort{port("a", intstr.FromInt32(53), v1.ProtocolSCTP)}, newPods(0, 1), []string{"[:53/a/SCTP 10.1.0.1 ]"}},
		{"several protocols, same port", []v1.ServicePort{port("a", intstr.FromInt32(53), v1.ProtocolTCP), port("b", intstr.FromInt32(53), v1.ProtocolUDP)}, newPods(0, 2),
			[]string{"2 ports 10.1.0.1 10.1.0.2 "}},
		{"named, other numbers", []v1.ServicePort{port("a", intstr.FromString("web"), v1.ProtocolTCP)}, []*v1.Pod{newPod(0, named(81)), newPod(1, named(82))},
			[]string{"[:81/a/TCP 10.1.0.1 ]", "[:82/a/TCP 10.1.0.2 ]"}},
		{"named, one has it not", []v1.ServicePort{port("a", intstr.FromString("web"), v1.ProtocolTCP), port("b", intstr.FromInt32(90), v1.ProtocolTCP)}, []*v1.Pod{newPod(0, named(81)), newPod(1)},
			[]string{"[:81/a/TCP 10.1.0.1 ]", "[:90/b/TCP 10.1.0.1 10.1.0.2 ]"}},
		{"named, of another protocol", []v1.ServicePort{port("a", intstr.FromString("web"), v1.ProtocolUDP)}, []*v1.Pod{newPod(0, named(81))}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, subset := range makePlan(newService(func(s *v1.Service) { s.Spec.Ports = tc.ports }), tc.pods, nil, testNow).Subsets {
				if len(subset.Ports) == 2 {
					subset.Ports = nil
					s := text([]v1.EndpointSubset{subset})
					got = append(got, "2 ports "+s[1:len(s)-1])
					continue
				}
				got = append(got, text([]v1.EndpointSubset{subset}))
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("subsets %q, want %q", got, tc.want)
			}
		})
	}
	for _, protocol := range []*string{nil, ptr.To("http")} {
		want := v1.EndpointPort{Name: "a", Port: 8080, Protocol: v1.ProtocolTCP, AppProtocol: protocol}
		if got := endpointPort(&v1.ServicePort{Name: "a", Port: 80, Protocol: v1.ProtocolTCP, AppProtocol: protocol}, 8080); !cmp.Equal(got, want) {
			t.Errorf("port %+v, want %+v", got, want)
		}
	}
}

// What the current Endpoints may look like without being written.
func TestWhatIsLeftAlone(t *testing.T) {
	pods := newPods(0, 3)
	right := func() *v1.Endpoints {
		current := makePlan(newService(), pods, nil, testNow)
		current.ResourceVersion = "7"
		return current
	}
	tests := []struct {
		name   string
		change func(*v1.Endpoints)
		write  bool
	}{
		{"identical", func(*v1.Endpoints) {}, false},
		{"unsorted", func(e *v1.Endpoints) { slices.Reverse(e.Subsets[0].Addresses) }, false},
		{"not packed", func(e *v1.Endpoints) {
			second := *e.Subsets[0].DeepCopy()
			e.Subsets[0].Addresses, second.Addresses = e.Subsets[0].Addresses[:1], second.Addresses[1:]
			e.Subsets = append(e.Subsets, second)
		}, false},
		{"resourceVersion of a pod", func(e *v1.Endpoints) { e.Subsets[0].Addresses[0].TargetRef.ResourceVersion = "3" }, false},
		{"another trigger time", func(e *v1.Endpoints) { e.Annotations[v1.EndpointsLastChangeTriggerTime] = "x" }, false},
		{"another annotation", func(e *v1.Endpoints) { e.Annotations["a"] = "b" }, false},
		{"headless label", func(e *v1.Endpoints) { e.Labels[v1.IsHeadlessService] = "" }, false},
		{"no subsets", func(e *v1.Endpoints) { e.Subsets = nil }, true},
		{"empty subsets", func(e *v1.Endpoints) { e.Subsets = []v1.EndpointSubset{} }, true},
		{"another address", func(e *v1.Endpoints) { e.Subsets[0].Addresses[1].IP = "10.9.9.9" }, true},
		{"another address that is not ready", func(e *v1.Endpoints) { e.Subsets[0].NotReadyAddresses = []v1.EndpointAddress{{IP: "10.9.9.9"}} }, true},
		{"another port", func(e *v1.Endpoints) { e.Subsets[0].Ports[0].Port++ }, true},
		{"another target", func(e *v1.Endpoints) { e.Subsets[0].Addresses[0].TargetRef.Name = "x" }, true},
		{"label more", func(e *v1.Endpoints) { e.Labels["a"] = "b" }, true},
		{"label of the controller missing", func(e *v1.Endpoints) { delete(e.Labels, LabelManagedBy) }, true},
		{"no labels", func(e *v1.Endpoints) { e.Labels = nil }, true},
		{"over capacity, it says", func(e *v1.Endpoints) { e.Annotations[v1.EndpointsOverCapacity] = "truncated" }, true},
		{"a warning, it says", func(e *v1.Endpoints) { e.Annotations[v1.EndpointsOverCapacity] = "warning" }, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			current := right()
			tc.change(current)
			before := current.DeepCopy()
			next := makePlan(newService(), pods, current, testNow)
			if (next != nil) != tc.write {
				t.Fatalf("written: %t, want %t", next != nil, tc.write)
			}
			if !cmp.Equal(current, before) {
				t.Error("the cached object was changed")
			}
			if next != nil && (!cmp.Equal(next.Subsets, right().Subsets) || !maps.Equal(next.Labels, right().Labels) || next.ResourceVersion != "7") {
				t.Errorf("written %+v, want %+v", next, right())
			}
		})
	}
}

// A Service that carries the label itself must not have its Endpoints written over and over.
func TestHeadlessLabelOfTheServiceIsNoReasonToWrite(t *testing.T) {
	service, pods := newService(), newPods(0, 1)
	service.Labels = map[string]string{v1.IsHeadlessService: "mine"}
	current := makePlan(service, pods, nil, testNow)
	current.ResourceVersion = "7"
	if next := makePlan(service, pods, current, testNow); next != nil {
		t.Errorf("written again: %+v", next)
	}
}

func TestLabelsAndAnnotations(t *testing.T) {
	service := newService(headless, func(s *v1.Service) { s.Labels = map[string]string{"team": "a"} })
	plan := makePlan(service, newPods(0, 1), nil, testNow)
	if want := map[string]string{"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller", v1.IsHeadlessService: ""}; !maps.Equal(plan.Labels, want) {
		t.Errorf("labels %v, want %v", plan.Labels, want)
	}
	if want := map[string]string{v1.EndpointsLastChangeTriggerTime: testNow.UTC().Format(time.RFC3339Nano)}; !maps.Equal(plan.Annotations, want) {
		t.Errorf("annotations %v, want %v", plan.Annotations, want)
	}
	// The service loses its label, the old time is overwritten, or cleared when there is none.
	service.Labels, service.Spec.ClusterIP = nil, "10.0.0.1"
	plan.Annotations["mine"] = "kept"
	next := makePlan(service, newPods(0, 2), plan, testNow.Add(time.Second))
	if want := map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}; !maps.Equal(next.Labels, want) {
		t.Errorf("labels %v, want %v", next.Labels, want)
	}
	if want := map[string]string{"mine": "kept", v1.EndpointsLastChangeTriggerTime: testNow.Add(time.Second).UTC().Format(time.RFC3339Nano)}; !maps.Equal(next.Annotations, want) {
		t.Errorf("annotations %v, want %v", next.Annotations, want)
	}
	next = makePlan(service, newPods(0, 3), next, time.Time{})
	if want := map[string]string{"mine": "kept"}; !maps.Equal(next.Annotations, want) {
		t.Errorf("annotations %v, want %v", next.Annotations, want)
	}
}

func TestOverCapacity(t *testing.T) {
	tests := []struct {
		name            string
		ready, notReady int
		annotation      string // of the current Endpoints
		wantReady       int
		wantNotReady    int
		truncated       bool
	}{
		{"nothing", 0, 0, "", 0, 0, false},
		{"at capacity", 1000, 0, "", 1000, 0, false},
		{"at capacity, not all ready", 400, 600, "truncated", 400, 600, false},
		{"beyond, fewer are ready", 500, 600, "", 500, 500, true},
		{"beyond, just so many are ready", 1000, 100, "", 1000, 0, true},
		{"beyond, more are ready", 1100, 50, "", 1000, 0, true},
		{"beyond, it was a warning", 1001, 0, "warning", 1000, 0, true},
		{"not any more", 900, 0, "truncated", 900, 0, false},
		{"not any more, it was a warning", 1000, 0, "warning", 1000, 0, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var current *v1.Endpoints
			if tc.annotation != "" {
				current = &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.EndpointsOverCapacity: tc.annotation}}}
			}
			pods := append(newPods(0, tc.ready), newPods(tc.ready, tc.ready+tc.notReady, notReady)...)
			plan := makePlan(newService(), pods, current, testNow)
			ready, notReady := count(plan.Subsets)
			if ready != tc.wantReady || notReady != tc.wantNotReady {
				t.Errorf("%d ready and %d not, want %d and %d", ready, notReady, tc.wantReady, tc.wantNotReady)
			}
			value, annotated := plan.Annotations[v1.EndpointsOverCapacity]
			if annotated != tc.truncated || annotated && value != "truncated" {
				t.Errorf("annotation %q, want it: %t", value, tc.truncated)
			}
			if again := makePlan(newService(), pods, plan, testNow.Add(time.Hour)); again != nil {
				t.Error("written again although nothing has changed")
			}
		})
	}
}

func count(subsets []v1.EndpointSubset) (ready, notReady int) {
	for _, subset := range subsets {
		ready += len(subset.Addresses)
		notReady += len(subset.NotReadyAddresses)
	}
	return ready, notReady
}

// Truncation keeps just as many as fit, ready ones first, and no subset is left empty.
func TestTruncateKeepsWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var subsets []v1.EndpointSubset
		for i := range rapid.IntRange(1, 6).Draw(t, "subsets") {
			subset := v1.EndpointSubset{Ports: []v1.EndpointPort{{Port: int32(i)}}}
			for j := range rapid.IntRange(0, 900).Draw(t, "ready") {
				subset.Addresses = append(subset.Addresses, v1.EndpointAddress{IP: fmt.Sprint("r", j)})
			}
			for j := range rapid.IntRange(0, 900).Draw(t, "not ready") {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, v1.EndpointAddress{IP: fmt.Sprint("n", j)})
			}
			if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
				subsets = append(subsets, subset)
			}
		}
		ready, notReady := count(subsets)
		got, over := truncate(subsets)
		gotReady, gotNotReady := count(got)
		if over != (ready+notReady > maxCapacity) {
			t.Fatalf("over capacity: %t with %d addresses", over, ready+notReady)
		}
		if gotReady != min(ready, maxCapacity) || gotNotReady != min(notReady, maxCapacity-gotReady) {
			t.Fatalf("%d ready and %d not are kept of %d and %d", gotReady, gotNotReady, ready, notReady)
		}
		for _, subset := range got {
			if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
				t.Fatal("a subset without addresses, which the API server refuses")
			}
		}
	})
}
