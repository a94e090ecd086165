// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

// Package endpoints knows the canonical form of the subsets of Endpoints, and which Endpoints are none.
package endpoints

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"
)

// LeaderAnnotation is on Endpoints that an old leader election holds its lock in.
const LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// RepackSubsets returns the subsets in canonical form: ports that lead to the same addresses, of
// the same readiness, are in one subset, and everything is sorted. Subsets that mean the same have
// the same canonical form. Addresses are told apart by IP and the target's UID; one that is not
// ready for a port in one subset is not ready for that port. The result shares nothing that may be
// changed with the subsets given.
func RepackSubsets(subsets []v1.EndpointSubset) []v1.EndpointSubset {
	p := packer{addresses: map[addressKey]*v1.EndpointAddress{}, ports: map[portKey]*portAddresses{}}
	for i := range subsets {
		p.add(&subsets[i])
	}
	return p.pack()
}

// addressKey tells addresses apart.
type addressKey struct {
	ip  string
	uid types.UID
}

// portKey tells ports apart. none stands for the ports of a subset that has none.
type portKey struct {
	none        bool
	name        string
	port        int32
	protocol    v1.Protocol
	appProtocol string
	hasApp      bool
}

// portAddresses are the addresses that a port leads to.
type portAddresses struct {
	port  *v1.EndpointPort // nil when there is none
	ready map[addressKey]bool
}

type packer struct {
	addresses map[addressKey]*v1.EndpointAddress
	ports     map[portKey]*portAddresses
}

func (p *packer) add(subset *v1.EndpointSubset) {
	if len(subset.Ports) == 0 {
		p.addTo(portKey{none: true}, nil, subset)
		return
	}
	for i := range subset.Ports {
		port := &subset.Ports[i]
		key := portKey{name: port.Name, port: port.Port, protocol: port.Protocol}
		if port.AppProtocol != nil {
			key.hasApp, key.appProtocol = true, *port.AppProtocol
		}
		p.addTo(key, port, subset)
	}
}

func (p *packer) addTo(key portKey, port *v1.EndpointPort, subset *v1.EndpointSubset) {
	at, ok := p.ports[key]
	if !ok {
		at = &portAddresses{port: port, ready: map[addressKey]bool{}}
		p.ports[key] = at
	}
	for i := range subset.Addresses {
		key := p.remember(&subset.Addresses[i])
		if _, known := at.ready[key]; !known {
			at.ready[key] = true
		}
	}
	for i := range subset.NotReadyAddresses {
		at.ready[p.remember(&subset.NotReadyAddresses[i])] = false
	}
}

func (p *packer) remember(address *v1.EndpointAddress) addressKey {
	key := addressKey{ip: address.IP}
	if address.TargetRef != nil {
		key.uid = address.TargetRef.UID
	}
	if _, ok := p.addresses[key]; !ok {
		p.addresses[key] = address
	}
	return key
}

// pack puts ports with the same addresses together.
func (p *packer) pack() []v1.EndpointSubset {
	bySignature := map[string]*v1.EndpointSubset{}
	for _, at := range p.ports {
		keys := sortedKeys(at.ready)
		if len(keys) == 0 {
			continue
		}
		signature := signatureOf(keys, at.ready)
		if at.port == nil {
			// What is there without a port must not get that of others.
			signature = "none " + signature
		}
		subset, ok := bySignature[signature]
		if !ok {
			subset = p.newSubset(keys, at.ready)
			bySignature[signature] = subset
		}
		if at.port != nil {
			subset.Ports = append(subset.Ports, *at.port.DeepCopy())
		}
	}
	var packed []v1.EndpointSubset
	for _, subset := range bySignature {
		sortByHash(subset.Ports)
		packed = append(packed, *subset)
	}
	sortByHash(packed)
	return packed
}

func (p *packer) newSubset(keys []addressKey, ready map[addressKey]bool) *v1.EndpointSubset {
	subset := &v1.EndpointSubset{}
	for _, key := range keys {
		address := *p.addresses[key].DeepCopy()
		if ready[key] {
			subset.Addresses = append(subset.Addresses, address)
		} else {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		}
	}
	return subset
}

func sortedKeys(ready map[addressKey]bool) []addressKey {
	keys := make([]addressKey, 0, len(ready))
	for key := range ready {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b addressKey) int { return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.uid, b.uid)) })
	return keys
}

// signatureOf is the same for the same sorted addresses of the same readiness.
func signatureOf(keys []addressKey, ready map[addressKey]bool) string {
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(key.ip)
		text.WriteByte(0)
		text.WriteString(string(key.uid))
		if ready[key] {
			text.WriteByte(1)
		} else {
			text.WriteByte(2)
		}
	}
	return text.String()
}

// sortByHash sorts items by the 128-bit FNV-1a hash of what they print as, which is the order that
// upstream's objects have.
func sortByHash[T any](items []T) {
	if len(items) < 2 {
		return
	}
	type hashed struct {
		item T
		hash []byte
	}
	all := make([]hashed, 0, len(items))
	for _, item := range items {
		hasher := fnv.New128a()
		_, _ = hasher.Write([]byte(dump.ForHash(item)))
		all = append(all, hashed{item: item, hash: hasher.Sum(nil)})
	}
	slices.SortStableFunc(all, func(a, b hashed) int { return bytes.Compare(a.hash, b.hash) })
	for i := range all {
		items[i] = all[i].item
	}
}
