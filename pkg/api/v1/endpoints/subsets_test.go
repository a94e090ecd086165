// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoints

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func address(ip, uid string) v1.EndpointAddress {
	a := v1.EndpointAddress{IP: ip}
	if uid != "" {
		a.TargetRef = &v1.ObjectReference{UID: types.UID(uid)}
	}
	return a
}

func addresses(ips ...string) []v1.EndpointAddress {
	var all []v1.EndpointAddress
	for _, ip := range ips {
		all = append(all, address(ip, ""))
	}
	return all
}

func ports(numbers ...int32) []v1.EndpointPort {
	var all []v1.EndpointPort
	for _, number := range numbers {
		all = append(all, v1.EndpointPort{Port: number})
	}
	return all
}

func TestRepackSubsets(t *testing.T) {
	tests := []struct {
		name        string
		given, want []v1.EndpointSubset
	}{
		{"nothing", nil, nil},
		{"an empty subset", []v1.EndpointSubset{{}}, nil},
		{"no addresses", []v1.EndpointSubset{{Ports: ports(80)}}, nil},
		{"no ports", []v1.EndpointSubset{{Addresses: addresses("1.2.3.4")}}, []v1.EndpointSubset{{Addresses: addresses("1.2.3.4")}}},
		{"addresses are sorted as strings", []v1.EndpointSubset{{Addresses: addresses("10.0.0.9", "10.0.0.10", "9.0.0.1"), Ports: ports(80)}},
			[]v1.EndpointSubset{{Addresses: addresses("10.0.0.10", "10.0.0.9", "9.0.0.1"), Ports: ports(80)}}},
		{"the same port", []v1.EndpointSubset{{Addresses: addresses("b"), Ports: ports(80)}, {Addresses: addresses("a"), NotReadyAddresses: addresses("c"), Ports: ports(80)}},
			[]v1.EndpointSubset{{Addresses: addresses("a", "b"), NotReadyAddresses: addresses("c"), Ports: ports(80)}}},
		{"twice the same", []v1.EndpointSubset{{Addresses: addresses("a"), Ports: ports(80)}, {Addresses: addresses("a", "a"), Ports: ports(80, 80)}},
			[]v1.EndpointSubset{{Addresses: addresses("a"), Ports: ports(80)}}},
		{"not ready anywhere is not ready", []v1.EndpointSubset{{Addresses: addresses("a"), Ports: ports(80)}, {NotReadyAddresses: addresses("a"), Ports: ports(80)}, {Addresses: addresses("a"), Ports: ports(80)}},
			[]v1.EndpointSubset{{NotReadyAddresses: addresses("a"), Ports: ports(80)}}},
		{"the same application protocol", []v1.EndpointSubset{
			{Addresses: addresses("a"), Ports: []v1.EndpointPort{{Port: 80, AppProtocol: ptr.To("http")}}},
			{Addresses: addresses("b"), Ports: []v1.EndpointPort{{Port: 80, AppProtocol: ptr.To("http")}}},
		}, []v1.EndpointSubset{{Addresses: addresses("a", "b"), Ports: []v1.EndpointPort{{Port: 80, AppProtocol: ptr.To("http")}}}}},
		{"an IP of two targets", []v1.EndpointSubset{{Addresses: []v1.EndpointAddress{address("a", "2"), address("a", "1")}, Ports: ports(80)}},
			[]v1.EndpointSubset{{Addresses: []v1.EndpointAddress{address("a", "1"), address("a", "2")}, Ports: ports(80)}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RepackSubsets(tc.given)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The order of ports and subsets is that of their hashes: as upstream's binary writes them.
func TestRepackSubsetsPutsTogetherAndSorts(t *testing.T) {
	got := RepackSubsets([]v1.EndpointSubset{
		{Addresses: addresses("a"), Ports: ports(1, 2)},
		{Addresses: addresses("b"), Ports: ports(1)},
		{NotReadyAddresses: addresses("b"), Ports: ports(2, 3)},
		{Addresses: addresses("a"), Ports: ports(3)},
	})
	if len(got) != 2 {
		t.Fatalf("%d subsets, want one for port 1 and one for ports 2 and 3", len(got))
	}
	for _, subset := range got {
		want := "a b"
		if len(subset.Ports) == 2 {
			want = "a !b"
		}
		text := ""
		for _, a := range subset.Addresses {
			text += a.IP + " "
		}
		for _, a := range subset.NotReadyAddresses {
			text += "!" + a.IP + " "
		}
		if text != want+" " {
			t.Errorf("ports %v lead to %q, want %q", subset.Ports, text, want)
		}
	}
}

func drawSubsets() *rapid.Generator[[]v1.EndpointSubset] {
	return rapid.Custom(func(t *rapid.T) []v1.EndpointSubset {
		some := func(label string) []v1.EndpointAddress {
			var all []v1.EndpointAddress
			for range rapid.IntRange(0, 4).Draw(t, label) {
				all = append(all, address(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "ip"), rapid.SampledFrom([]string{"", "1"}).Draw(t, "uid")))
			}
			return all
		}
		var all []v1.EndpointSubset
		for range rapid.IntRange(0, 5).Draw(t, "subsets") {
			all = append(all, v1.EndpointSubset{
				Addresses: some("ready"), NotReadyAddresses: some("not ready"),
				Ports: ports(rapid.SliceOfN(rapid.Int32Range(1, 4), 0, 3).Draw(t, "ports")...),
			})
		}
		return all
	})
}

// meaning lists which port leads where, and whether that is ready.
func meaning(subsets []v1.EndpointSubset) map[string]bool {
	means := map[string]bool{}
	for _, subset := range subsets {
		numbers := []string{"none"}
		if len(subset.Ports) > 0 {
			numbers = nil
		}
		for _, port := range subset.Ports {
			numbers = append(numbers, fmt.Sprint(port.Port))
		}
		for _, number := range numbers {
			for _, a := range subset.Addresses {
				if _, known := means[fmt.Sprint(number, a)]; !known {
					means[fmt.Sprint(number, a)] = true
				}
			}
			for _, a := range subset.NotReadyAddresses {
				means[fmt.Sprint(number, a)] = false
			}
		}
	}
	return means
}

// Repacking changes nothing of the meaning, what is packed stays as it is, and what means the same
// is packed the same.
func TestRepackSubsetsIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := drawSubsets().Draw(t, "given")
		packed := RepackSubsets(given)
		normal := func(subsets []v1.EndpointSubset) map[string]bool {
			for i := range subsets {
				for _, list := range [][]v1.EndpointAddress{subsets[i].Addresses, subsets[i].NotReadyAddresses} {
					for j := range list {
						if ref := list[j].TargetRef; ref != nil {
							list[j].Hostname, list[j].TargetRef = string(ref.UID), nil
						}
					}
				}
			}
			return meaning(subsets)
		}
		if diff := cmp.Diff(packed, RepackSubsets(packed)); diff != "" {
			t.Fatalf("packing twice differs:\n%s", diff)
		}
		shuffled := rapid.Permutation(given).Draw(t, "shuffled")
		if diff := cmp.Diff(packed, RepackSubsets(shuffled)); diff != "" {
			t.Fatalf("another order is packed otherwise:\n%s", diff)
		}
		if diff := cmp.Diff(normal(given), normal(packed)); diff != "" {
			t.Fatalf("the meaning has changed (-given +packed):\n%s", diff)
		}
	})
}
