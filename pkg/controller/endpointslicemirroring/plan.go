// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	endpointsapi "github.com/kcm-dev/kcm/pkg/api/v1/endpoints"
)

// plan is what is to be written for Endpoints, and what is to be told.
type plan struct {
	create []*discovery.EndpointSlice
	update []*discovery.EndpointSlice // have the name, UID and resourceVersion of what they replace
	remove []*discovery.EndpointSlice // from the cache

	added, updated, removed int // endpoints
	invalid                 int // addresses that are none
	skipped                 int // addresses that are not mirrored, the invalid ones included
	sizes                   []int
}

// groupKey is what the endpoints of one slice have in common.
type groupKey struct {
	addressType discovery.AddressType
	ports       endpointsliceutil.PortMapKey
}

// group is what is to be in one slice.
type group struct {
	key       groupKey
	ports     []discovery.EndpointPort
	endpoints endpointsliceutil.EndpointSet
	// order is the order in which the Endpoints have the endpoints.
	order []*discovery.Endpoint
}

// makePlan compares what is to be mirrored with the existing slices of the Endpoints, which are
// read-only.
func makePlan(endpoints *v1.Endpoints, existing []*discovery.EndpointSlice, maxPerSubset int) plan {
	var p plan
	desired := p.desiredGroups(endpoints, maxPerSubset)
	byGroup := groupSlices(existing)
	for _, g := range desired {
		p.sizes = append(p.sizes, len(g.order))
		p.planGroup(endpoints, g, byGroup[g.key])
		delete(byGroup, g.key)
	}
	for _, slices := range byGroup {
		for _, slice := range slices {
			p.removed += len(slice.Endpoints)
		}
		p.remove = append(p.remove, slices...)
	}
	byName := func(a, b *discovery.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(p.remove, byName)
	p.recycle()
	if endpoints.DeletionTimestamp != nil {
		// The garbage collector is about to take the slices away.
		p.create = nil
	}
	return p
}

// planGroup decides what becomes of the slices that a group has: the first stays.
func (p *plan) planGroup(endpoints *v1.Endpoints, g *group, existing []*discovery.EndpointSlice) {
	if len(existing) == 0 {
		p.create = append(p.create, newEndpointSlice(endpoints, g))
		p.added += len(g.order)
		return
	}
	first := existing[0]
	for _, surplus := range existing[1:] {
		p.removed += len(surplus.Endpoints)
	}
	p.remove = append(p.remove, existing[1:]...)
	added, updated, removed := compareEndpoints(first.Endpoints, g)
	p.added, p.updated, p.removed = p.added+added, p.updated+updated, p.removed+removed
	if added+updated+removed == 0 && metadataMatches(endpoints, first) {
		return
	}
	p.update = append(p.update, inPlaceOf(first, newEndpointSlice(endpoints, g)))
}

// recycle turns creations into updates of slices of the same family that would be deleted.
func (p *plan) recycle() {
	var left []*discovery.EndpointSlice
	for _, slice := range p.create {
		i := slices.IndexFunc(p.remove, func(old *discovery.EndpointSlice) bool { return old.AddressType == slice.AddressType })
		if i < 0 {
			left = append(left, slice)
			continue
		}
		p.update = append(p.update, inPlaceOf(p.remove[i], slice))
		p.remove = slices.Delete(p.remove, i, i+1)
	}
	p.create = left
}

// desiredGroups returns what is to be mirrored, in the order of the packed subsets.
func (p *plan) desiredGroups(endpoints *v1.Endpoints, maxPerSubset int) []*group {
	byKey := map[groupKey]*group{}
	var groups []*group
	for _, subset := range endpointsapi.RepackSubsets(endpoints.Subsets) {
		ports := portsOf(subset.Ports)
		portsKey := endpointsliceutil.NewPortMapKey(ports) // sorts them, too
		added := 0
		add := func(addresses []v1.EndpointAddress, ready bool) {
			for i := range addresses {
				addressType, ok := addressTypeOf(addresses[i].IP)
				switch {
				case added >= maxPerSubset:
					p.skipped++
					continue
				case !ok:
					p.invalid++
					p.skipped++
					continue
				}
				added++
				key := groupKey{addressType: addressType, ports: portsKey}
				g, ok := byKey[key]
				if !ok {
					g = &group{key: key, ports: ports, endpoints: endpointsliceutil.EndpointSet{}}
					byKey[key] = g
					groups = append(groups, g)
				}
				g.add(addressToEndpoint(&addresses[i], ready))
			}
		}
		add(subset.Addresses, true)
		add(subset.NotReadyAddresses, false)
	}
	return groups
}

func (g *group) add(endpoint *discovery.Endpoint) {
	if !g.endpoints.Has(endpoint) {
		g.endpoints.Insert(endpoint)
		g.order = append(g.order, endpoint)
	}
}

// groupSlices returns the slices by what they have in common, sorted by name.
func groupSlices(existing []*discovery.EndpointSlice) map[groupKey][]*discovery.EndpointSlice {
	byGroup := map[groupKey][]*discovery.EndpointSlice{}
	for _, slice := range slices.SortedFunc(slices.Values(existing), func(a, b *discovery.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }) {
		key := groupKey{addressType: slice.AddressType, ports: endpointsliceutil.NewPortMapKey(slices.Clone(slice.Ports))}
		byGroup[key] = append(byGroup[key], slice)
	}
	return byGroup
}

// compareEndpoints counts what must change in a slice's endpoints to have those of the group.
func compareEndpoints(existing []discovery.Endpoint, g *group) (added, updated, removed int) {
	found := endpointsliceutil.EndpointSet{}
	for i := range existing {
		have := existing[i]
		have.Addresses = slices.Clone(have.Addresses) // the library sorts them
		want := g.endpoints.Get(&have)
		switch {
		case want == nil || found.Has(want):
			removed++
			continue
		case !endpointsliceutil.EndpointsEqualBeyondHash(want, &have):
			updated++
		}
		found.Insert(want)
	}
	return len(g.order) - found.Len(), updated, removed
}

// metadataMatches says whether a slice's labels, annotations and owner are what those of a new one
// would be.
func metadataMatches(endpoints *v1.Endpoints, slice *discovery.EndpointSlice) bool {
	annotations := maps.Clone(slice.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return notMirrored(key) })
	return maps.Equal(slice.Labels, labelsFor(endpoints)) && maps.Equal(annotations, annotationsFor(endpoints)) &&
		slices.ContainsFunc(slice.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.UID == endpoints.UID && ref.Kind == "Endpoints" && ref.APIVersion == "v1"
		})
}

func newEndpointSlice(endpoints *v1.Endpoints, g *group) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       endpoints.Namespace,
			GenerateName:    endpoints.Name + "-",
			Labels:          labelsFor(endpoints),
			Annotations:     annotationsFor(endpoints),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(endpoints, v1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: g.key.addressType,
		Ports:       g.ports,
	}
	for _, endpoint := range g.order {
		slice.Endpoints = append(slice.Endpoints, *endpoint)
	}
	return slice
}

// inPlaceOf returns the slice as the next version of an old one.
func inPlaceOf(old, slice *discovery.EndpointSlice) *discovery.EndpointSlice {
	slice.Name, slice.GenerateName, slice.UID, slice.ResourceVersion = old.Name, old.GenerateName, old.UID, old.ResourceVersion
	slice.Finalizers = slices.Clone(old.Finalizers)
	return slice
}

func labelsFor(endpoints *v1.Endpoints) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, endpoints.Labels)
	labels[discovery.LabelServiceName] = endpoints.Name
	labels[discovery.LabelManagedBy] = controllerName
	return labels
}

func annotationsFor(endpoints *v1.Endpoints) map[string]string {
	annotations := map[string]string{}
	for key, value := range endpoints.Annotations {
		if !notMirrored(key) {
			annotations[key] = value
		}
	}
	return annotations
}

// notMirrored says whether an annotation is about the object that it is on.
func notMirrored(annotation string) bool {
	return annotation == v1.EndpointsLastChangeTriggerTime || annotation == v1.LastAppliedConfigAnnotation
}

func addressToEndpoint(address *v1.EndpointAddress, ready bool) *discovery.Endpoint {
	endpoint := &discovery.Endpoint{
		Addresses:  []string{address.IP},
		Conditions: discovery.EndpointConditions{Ready: &ready},
		TargetRef:  address.TargetRef,
		NodeName:   address.NodeName,
	}
	if address.Hostname != "" {
		endpoint.Hostname = &address.Hostname
	}
	return endpoint
}

func addressTypeOf(ip string) (discovery.AddressType, bool) {
	switch parsed := utilnet.ParseIPSloppy(ip); {
	case parsed == nil:
		return "", false
	case utilnet.IsIPv6(parsed):
		return discovery.AddressTypeIPv6, true
	default:
		return discovery.AddressTypeIPv4, true
	}
}

func portsOf(ports []v1.EndpointPort) []discovery.EndpointPort {
	mirrored := []discovery.EndpointPort{}
	for i := range ports {
		port := &ports[i]
		mirrored = append(mirrored, discovery.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol, AppProtocol: port.AppProtocol})
	}
	return mirrored
}

// shouldMirror says whether the Endpoints by themselves may be mirrored.
func shouldMirror(endpoints *v1.Endpoints) bool {
	_, lock := endpoints.Annotations[endpointsapi.LeaderAnnotation]
	return endpoints.Labels[discovery.LabelSkipMirror] != "true" && !lock
}
