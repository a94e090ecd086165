// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func TestMirror(t *testing.T) {
	p80, p81, both := []int32{80}, []int32{81}, []int32{80, 81}
	tests := []struct {
		name    string
		subsets []v1.EndpointSubset
		want    []string
		skipped int
		invalid int
	}{
		{"no subsets", nil, []string{}, 0, 0},
		{"no addresses", []v1.EndpointSubset{subset(p80)}, []string{}, 0, 0},
		{"one address", []v1.EndpointSubset{subset(p80, "10.0.0.1")}, []string{"IPv4 80: 10.0.0.1"}, 0, 0},
		{"no ports", []v1.EndpointSubset{subset(nil, "10.0.0.1")}, []string{"IPv4 : 10.0.0.1"}, 0, 0},
		{"other port, other address", []v1.EndpointSubset{subset(p80, "10.0.0.1"), subset(p81, "10.0.0.2")}, []string{"IPv4 80: 10.0.0.1", "IPv4 81: 10.0.0.2"}, 0, 0},
		{"other port, same address", []v1.EndpointSubset{subset(p80, "10.0.0.1"), subset(p81, "10.0.0.1")}, []string{"IPv4 80,81: 10.0.0.1"}, 0, 0},
		{"same port, other address", []v1.EndpointSubset{subset(p80, "10.0.0.1"), subset(p80, "10.0.0.2")}, []string{"IPv4 80: 10.0.0.1 10.0.0.2"}, 0, 0},
		{"ready and not", []v1.EndpointSubset{subset(both, "10.0.0.1", "!10.0.0.2", "10.0.0.3")}, []string{"IPv4 80,81: 10.0.0.1 10.0.0.3 !10.0.0.2"}, 0, 0},
		{"not ready alone", []v1.EndpointSubset{subset(both, "!10.0.0.1", "!10.0.0.2")}, []string{"IPv4 80,81: !10.0.0.1 !10.0.0.2"}, 0, 0},
		{"ready in one subset, not in another", []v1.EndpointSubset{subset(p80, "10.0.0.1"), subset(p80, "!10.0.0.1")}, []string{"IPv4 80: !10.0.0.1"}, 0, 0},
		{"both families", []v1.EndpointSubset{subset(p80, "10.0.0.1", "fd00::1"), subset(p81, "fd00::2", "!10.0.0.2")},
			[]string{"IPv4 80: 10.0.0.1", "IPv4 81: !10.0.0.2", "IPv6 80: fd00::1", "IPv6 81: fd00::2"}, 0, 0},
		{"IPv6 alone", []v1.EndpointSubset{subset(p80, "fd00::1")}, []string{"IPv6 80: fd00::1"}, 0, 0},
		{"some are no addresses", []v1.EndpointSubset{subset(p80, "10.0.0.1", "x"), subset(p81, "10.0.0.300", "fd00::1")}, []string{"IPv4 80: 10.0.0.1", "IPv6 81: fd00::1"}, 2, 2},
		{"none are addresses", []v1.EndpointSubset{subset(p80, "x", "!y")}, []string{}, 2, 2},
		{"too many", []v1.EndpointSubset{subset(p80, "!10.0.0.9", "10.0.0.1", "10.0.0.2", "10.0.0.3"), subset(p81, "10.0.1.1", "!10.0.1.2", "!10.0.1.3", "!10.0.1.4")},
			[]string{"IPv4 80: 10.0.0.1 10.0.0.2 10.0.0.3", "IPv4 81: 10.0.1.1 !10.0.1.2 !10.0.1.3"}, 2, 0},
		{"too many, and some are none", []v1.EndpointSubset{subset(p80, "0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")}, []string{"IPv4 80: 10.0.0.1 10.0.0.2 10.0.0.3"}, 2, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			endpoints := newEndpoints(tc.subsets...)
			p := makePlan(endpoints, nil, 3)
			if got := text(p.create); !slices.Equal(got, tc.want) {
				t.Errorf("slices %q, want %q", got, tc.want)
			}
			if p.skipped != tc.skipped || p.invalid != tc.invalid {
				t.Errorf("%d skipped, %d invalid; want %d, %d", p.skipped, p.invalid, tc.skipped, tc.invalid)
			}
			for i, slice := range p.create {
				slice.Name, slice.GenerateName = fmt.Sprint("slice-", i), ""
			}
			again := makePlan(endpoints, p.create, 3)
			if len(again.create)+len(again.update)+len(again.remove)+again.added+again.updated+again.removed != 0 {
				t.Errorf("a second plan is not empty: %+v", again)
			}
			endpoints.DeletionTimestamp = &metav1.Time{}
			if p := makePlan(endpoints, nil, 3); len(p.create) != 0 {
				t.Error("slices are created for endpoints in deletion")
			}
		})
	}
}

// What of an existing slice calls for an update, and what is left alone.
func TestExistingSlice(t *testing.T) {
	endpoints := newEndpoints(subset([]int32{80}, "10.0.0.1", "10.0.0.2"))
	endpoints.Labels = map[string]string{"team": "a"}
	endpoints.Annotations = map[string]string{"note": "b", v1.LastAppliedConfigAnnotation: "{}", v1.EndpointsLastChangeTriggerTime: "2020"}
	tests := []struct {
		name   string
		change func(*discovery.EndpointSlice)
		update bool
	}{
		{"the same", func(*discovery.EndpointSlice) {}, false},
		{"other order", func(s *discovery.EndpointSlice) { slices.Reverse(s.Endpoints) }, false},
		{"its own trigger time", func(s *discovery.EndpointSlice) { s.Annotations[v1.EndpointsLastChangeTriggerTime] = "x" }, false},
		{"its own last-applied", func(s *discovery.EndpointSlice) { s.Annotations[v1.LastAppliedConfigAnnotation] = "x" }, false},
		{"an annotation more", func(s *discovery.EndpointSlice) { s.Annotations["x"] = "y" }, true},
		{"an annotation less", func(s *discovery.EndpointSlice) { s.Annotations = nil }, true},
		{"a label more", func(s *discovery.EndpointSlice) { s.Labels["x"] = "y" }, true},
		{"a label less", func(s *discovery.EndpointSlice) { delete(s.Labels, "team") }, true},
		{"owner of another UID", func(s *discovery.EndpointSlice) { s.OwnerReferences[0].UID = "old" }, true},
		{"no owner", func(s *discovery.EndpointSlice) { s.OwnerReferences = nil }, true},
		{"an endpoint more", func(s *discovery.EndpointSlice) {
			s.Endpoints = append(s.Endpoints, discovery.Endpoint{Addresses: []string{"10.0.0.3"}})
		}, true},
		{"an endpoint twice", func(s *discovery.EndpointSlice) { s.Endpoints = append(s.Endpoints, s.Endpoints[0]) }, true},
		{"an endpoint less", func(s *discovery.EndpointSlice) { s.Endpoints = s.Endpoints[:1] }, true},
		{"no endpoints", func(s *discovery.EndpointSlice) { s.Endpoints = nil }, true},
		{"an endpoint that is not ready", func(s *discovery.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) }, true},
		{"a zone", func(s *discovery.EndpointSlice) { s.Endpoints[0].Zone = ptr.To("a") }, true},
		{"other ports", func(s *discovery.EndpointSlice) { s.Ports = nil }, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			want := makePlan(endpoints, nil, 1000).create[0]
			existing := want.DeepCopy()
			existing.Name, existing.ResourceVersion, existing.UID = "slice", "7", "slice-uid"
			tc.change(existing)
			before := existing.DeepCopy()
			p := makePlan(endpoints, []*discovery.EndpointSlice{existing}, 1000)
			if len(p.create)+len(p.remove) != 0 || (len(p.update) == 1) != tc.update {
				t.Fatalf("%d creations, %d updates, %d deletions; want an update: %t", len(p.create), len(p.update), len(p.remove), tc.update)
			}
			if diff := cmp.Diff(before, existing); diff != "" {
				t.Errorf("the cached slice was changed:\n%s", diff)
			}
			if !tc.update {
				return
			}
			got := p.update[0]
			if got.Name != "slice" || got.ResourceVersion != "7" || got.UID != "slice-uid" {
				t.Errorf("the update of %s has version %q, UID %q", got.Name, got.ResourceVersion, got.UID)
			}
			if diff := cmp.Diff(want.Endpoints, got.Endpoints); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if !maps.Equal(got.Annotations, map[string]string{"note": "b"}) || !maps.Equal(got.Labels, want.Labels) || !cmp.Equal(got.OwnerReferences, want.OwnerReferences) {
				t.Errorf("metadata %+v", got.ObjectMeta)
			}
		})
	}
}

func TestNewEndpointSlice(t *testing.T) {
	endpoints := newEndpoints(subset([]int32{80}, "10.0.0.1"))
	endpoints.Labels = map[string]string{"team": "a", discovery.LabelServiceName: "x", discovery.LabelManagedBy: "y"}
	endpoints.Annotations = map[string]string{"note": "b", v1.LastAppliedConfigAnnotation: "", v1.EndpointsLastChangeTriggerTime: "2020"}
	endpoints.Subsets[0].Ports[0].AppProtocol = ptr.To("http")
	target := &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "p", UID: "u"}
	endpoints.Subsets[0].Addresses[0] = v1.EndpointAddress{IP: "10.0.0.1", Hostname: "web-0", NodeName: ptr.To("node"), TargetRef: target}
	want := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", GenerateName: "svc-",
			Labels:          map[string]string{"team": "a", discovery.LabelServiceName: "svc", discovery.LabelManagedBy: "endpointslicemirroring-controller.k8s.io"},
			Annotations:     map[string]string{"note": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Endpoints", Name: "svc", UID: "endpoints", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: ptr.To("port-80"), Port: ptr.To[int32](80), Protocol: ptr.To(v1.ProtocolTCP), AppProtocol: ptr.To("http")}},
		Endpoints: []discovery.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: discovery.EndpointConditions{Ready: ptr.To(true)},
			Hostname: ptr.To("web-0"), NodeName: ptr.To("node"), TargetRef: target,
		}},
	}
	if diff := cmp.Diff(want, makePlan(endpoints, nil, 1000).create[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Slices whose groups are gone take new groups of their family.
func TestRecycle(t *testing.T) {
	slice := func(name string, addressType discovery.AddressType) *discovery.EndpointSlice {
		return &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: addressType}
	}
	many := func(n int, prefix string, addressType discovery.AddressType) []*discovery.EndpointSlice {
		var all []*discovery.EndpointSlice
		for i := range n {
			name := ""
			if prefix != "" {
				name = fmt.Sprint(prefix, i)
			}
			all = append(all, slice(name, addressType))
		}
		return all
	}
	const v4, v6 = discovery.AddressTypeIPv4, discovery.AddressTypeIPv6
	tests := []struct {
		name                   string
		create, remove         []*discovery.EndpointSlice
		creates, updates, left int
	}{
		{"nothing", nil, nil, 0, 0, 0},
		{"one and one", many(1, "", v4), many(1, "d", v4), 0, 1, 0},
		{"two and one", many(2, "", v4), many(1, "d", v4), 1, 1, 0},
		{"one and two", many(1, "", v4), many(2, "d", v4), 0, 1, 1},
		{"one and one of each family", append(many(1, "", v4), many(1, "", v6)...), append(many(1, "d", v6), many(1, "e", v4)...), 0, 2, 0},
		{"of different families", many(1, "", v4), many(1, "d", v6), 1, 0, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := plan{create: tc.create, remove: tc.remove}
			p.recycle()
			if len(p.create) != tc.creates || len(p.update) != tc.updates || len(p.remove) != tc.left {
				t.Errorf("%d creations, %d updates, %d deletions; want %d, %d, %d", len(p.create), len(p.update), len(p.remove), tc.creates, tc.updates, tc.left)
			}
			for _, update := range p.update {
				if update.Name == "" {
					t.Error("an update of no slice")
				}
			}
		})
	}
}

func TestSurplusSlicesAreDeleted(t *testing.T) {
	endpoints := newEndpoints(subset([]int32{80}, "10.0.0.1"))
	first := makePlan(endpoints, nil, 1000).create[0]
	first.Name = "a"
	second := first.DeepCopy()
	second.Name = "b"
	p := makePlan(endpoints, []*discovery.EndpointSlice{second, first}, 1000)
	if len(p.create)+len(p.update) != 0 || len(p.remove) != 1 || p.remove[0].Name != "b" || p.removed != 1 {
		t.Errorf("plan %+v, want slice b deleted", p)
	}
}

func TestShouldMirror(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.Endpoints)
		want   bool
	}{
		"standard":                 {func(*v1.Endpoints) {}, true},
		"skip-mirror is true":      {func(e *v1.Endpoints) { e.Labels = map[string]string{discovery.LabelSkipMirror: "true"} }, false},
		"skip-mirror is something": {func(e *v1.Endpoints) { e.Labels = map[string]string{discovery.LabelSkipMirror: "invalid"} }, true},
		"lock of a leader election": {func(e *v1.Endpoints) {
			e.Annotations = map[string]string{"control-plane.alpha.kubernetes.io/leader": ""}
		}, false},
		"annotation of something else": {func(e *v1.Endpoints) { e.Annotations = map[string]string{"a": "b"} }, true},
	} {
		endpoints := newEndpoints()
		tc.change(endpoints)
		if got := shouldMirror(endpoints); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// Whatever was there before: after the plan, there is what is mirrored of nothing there.
func TestPlanEndsInTheSameSlices(t *testing.T) {
	drawSubsets := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1.EndpointSubset {
		return subset(rapid.SliceOfNDistinct(rapid.Int32Range(80, 83), 0, 3, rapid.ID[int32]).Draw(t, "ports"),
			rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "!10.0.0.1", "10.0.0.2", "fd00::1", "!fd00::2", "x"}), 0, 4).Draw(t, "addresses")...)
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		before, after := newEndpoints(drawSubsets.Draw(t, "before")...), newEndpoints(drawSubsets.Draw(t, "after")...)
		maxPerSubset := rapid.IntRange(1, 4).Draw(t, "max")
		existing := makePlan(before, nil, maxPerSubset).create
		for range rapid.IntRange(0, 2).Draw(t, "duplicates") {
			if len(existing) > 0 {
				existing = append(existing, existing[0].DeepCopy())
			}
		}
		state := map[string]*discovery.EndpointSlice{}
		for i, slice := range existing {
			slice.Name = fmt.Sprint("slice-", i)
			state[slice.Name] = slice
		}
		p := makePlan(after, existing, maxPerSubset)
		for i, slice := range p.create {
			state[fmt.Sprint("new-", i)] = slice
		}
		for _, slice := range p.update {
			if state[slice.Name] == nil || state[slice.Name].AddressType != slice.AddressType {
				t.Fatalf("update of %s, which cannot be", slice.Name)
			}
			state[slice.Name] = slice
		}
		for _, slice := range p.remove {
			if state[slice.Name] == nil {
				t.Fatalf("%s is deleted twice", slice.Name)
			}
			delete(state, slice.Name)
		}
		sorted := func(all []*discovery.EndpointSlice) []string {
			for _, slice := range all {
				slices.SortFunc(slice.Endpoints, func(a, b discovery.Endpoint) int { return strings.Compare(a.Addresses[0], b.Addresses[0]) })
			}
			return text(all)
		}
		want := sorted(makePlan(after, nil, maxPerSubset).create)
		if got := sorted(slices.Collect(maps.Values(state))); !slices.Equal(got, want) {
			t.Fatalf("slices %q, want %q", got, want)
		}
	})
}
