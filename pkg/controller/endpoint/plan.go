// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"errors"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/kcm-dev/kcm/pkg/api/v1/endpoints"
	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

const (
	// maxCapacity is how many addresses Endpoints may have.
	maxCapacity = 1000
	// truncated is the value of the annotation over-capacity.
	truncated = "truncated"
	// LabelManagedBy says which controller keeps the Endpoints: ControllerName for this one.
	LabelManagedBy = "endpoints.kubernetes.io/managed-by"
	ControllerName = "endpoint-controller"
)

var errNoAddress = errors.New("the pod has no address of the service's family")

// makePlan returns the Endpoints to write, which are to be created if current is nil, and nil when
// the current ones are right. They share nothing that may be changed with what is given.
func makePlan(service *v1.Service, pods []*v1.Pod, current *v1.Endpoints, triggerTime time.Time) *v1.Endpoints {
	subsets, over := truncate(endpoints.RepackSubsets(subsetsOf(service, pods)))
	if current != nil && subsetsMatch(current.Subsets, subsets) && labelsMatch(current.Labels, service.Labels) &&
		(current.Annotations[v1.EndpointsOverCapacity] == truncated) == over && hasOverCapacity(current) == over {
		return nil
	}
	next := &v1.Endpoints{}
	if current != nil {
		next = current.DeepCopy()
	}
	next.Namespace, next.Name = service.Namespace, service.Name
	next.Subsets = subsets
	next.Labels = labelsFor(service)
	setAnnotation(next, v1.EndpointsLastChangeTriggerTime, triggerTime.UTC().Format(time.RFC3339Nano), !triggerTime.IsZero())
	setAnnotation(next, v1.EndpointsOverCapacity, truncated, over)
	return next
}

// needsEndpoints says whether the controller keeps the Service's Endpoints: others are kept by
// whoever made the Service, and names need none.
func needsEndpoints(service *v1.Service) bool {
	return service.Spec.Type != v1.ServiceTypeExternalName && service.Spec.Selector != nil
}

// subsetsOf returns a subset for each Pod and port, and for each Pod of a headless Service without
// ports.
func subsetsOf(service *v1.Service, pods []*v1.Pod) []v1.EndpointSubset {
	var subsets []v1.EndpointSubset
	for _, pod := range pods {
		if !endpointsliceutil.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		address, err := addressFor(service, pod)
		if err != nil {
			continue // its address may be yet to come
		}
		ports := portsFor(service, pod)
		if len(ports) == 0 && (len(service.Spec.Ports) > 0 || service.Spec.ClusterIP != v1.ClusterIPNone) {
			continue
		}
		subset := v1.EndpointSubset{Ports: ports}
		if service.Spec.PublishNotReadyAddresses || podutil.IsPodReady(pod) {
			subset.Addresses = []v1.EndpointAddress{*address}
		} else {
			subset.NotReadyAddresses = []v1.EndpointAddress{*address}
		}
		subsets = append(subsets, subset)
	}
	return subsets
}

// portsFor returns the Pod's ports that the Service's lead to, without those that it has not.
func portsFor(service *v1.Service, pod *v1.Pod) []v1.EndpointPort {
	var ports []v1.EndpointPort
	for i := range service.Spec.Ports {
		servicePort := &service.Spec.Ports[i]
		number, err := endpointslice.FindPort(pod, servicePort)
		if err != nil {
			continue
		}
		ports = append(ports, endpointPort(servicePort, int32(number)))
	}
	return ports
}

func endpointPort(servicePort *v1.ServicePort, number int32) v1.EndpointPort {
	return v1.EndpointPort{Name: servicePort.Name, Port: number, Protocol: servicePort.Protocol, AppProtocol: servicePort.AppProtocol}
}

// addressFor returns the Pod's address of the Service's first family. A Service that was made by an
// old API server has none: then its own address tells, or for a headless one the Pod's first.
func addressFor(service *v1.Service, pod *v1.Pod) (*v1.EndpointAddress, error) {
	ipv6 := utilnet.IsIPv6String(pod.Status.PodIP)
	switch {
	case len(service.Spec.IPFamilies) > 0:
		ipv6 = service.Spec.IPFamilies[0] == v1.IPv6Protocol
	case service.Spec.ClusterIP != "" && service.Spec.ClusterIP != v1.ClusterIPNone:
		ipv6 = utilnet.IsIPv6String(service.Spec.ClusterIP)
	}
	for _, podIP := range pod.Status.PodIPs {
		if utilnet.IsIPv6String(podIP.IP) != ipv6 {
			continue
		}
		address := &v1.EndpointAddress{
			IP:        podIP.IP,
			TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		if pod.Spec.NodeName != "" {
			address.NodeName = new(pod.Spec.NodeName)
		}
		if endpointsliceutil.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		return address, nil
	}
	return nil, errNoAddress
}

// truncate returns the subsets with as many addresses as Endpoints may have, and whether some were
// left out. Those that are not ready go first; each subset loses its share.
func truncate(subsets []v1.EndpointSubset) ([]v1.EndpointSubset, bool) {
	ready, notReady := 0, 0
	for _, subset := range subsets {
		ready += len(subset.Addresses)
		notReady += len(subset.NotReadyAddresses)
	}
	if ready+notReady <= maxCapacity {
		return subsets, false
	}
	room, of := maxCapacity-ready, notReady
	if ready > maxCapacity {
		room, of = maxCapacity, ready
	}
	left := room
	kept := make([]v1.EndpointSubset, 0, len(subsets))
	for _, subset := range subsets {
		list := &subset.NotReadyAddresses
		if ready > maxCapacity {
			subset.NotReadyAddresses = nil
			list = &subset.Addresses
		}
		// Rounded up: the last subsets get what is left.
		share := min((len(*list)*room+of-1)/of, left)
		left -= share
		*list = (*list)[:share]
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			kept = append(kept, subset)
		}
	}
	return kept, true
}

// labelsFor returns the labels that the Service's Endpoints are to have.
func labelsFor(service *v1.Service) map[string]string {
	labels := maps.Clone(service.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelManagedBy] = ControllerName
	delete(labels, v1.IsHeadlessService)
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == v1.ClusterIPNone {
		labels[v1.IsHeadlessService] = ""
	}
	return labels
}

// labelsMatch says whether the labels are the Service's and the controller's own. Whether they say
// that the Service is headless does not count.
func labelsMatch(current, service map[string]string) bool {
	want := maps.Clone(service)
	if want == nil {
		want = map[string]string{}
	}
	want[LabelManagedBy] = ControllerName
	delete(want, v1.IsHeadlessService)
	current = maps.Clone(current)
	delete(current, v1.IsHeadlessService)
	return maps.Equal(current, want)
}

func hasOverCapacity(current *v1.Endpoints) bool {
	_, ok := current.Annotations[v1.EndpointsOverCapacity]
	return ok
}

func setAnnotation(endpoints *v1.Endpoints, key, value string, set bool) {
	if !set {
		delete(endpoints.Annotations, key)
		return
	}
	if endpoints.Annotations == nil {
		endpoints.Annotations = map[string]string{}
	}
	endpoints.Annotations[key] = value
}

// ignoringResourceVersion compares without the versions of the Pods referred to, which older
// controllers wrote.
var ignoringResourceVersion = conversion.EqualitiesOrDie(func(a, b v1.ObjectReference) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
})

// subsetsMatch says whether the current subsets mean what the canonical ones say.
func subsetsMatch(current, canonical []v1.EndpointSubset) bool {
	return ignoringResourceVersion.DeepEqual(current, canonical) ||
		ignoringResourceVersion.DeepEqual(endpoints.RepackSubsets(current), canonical)
}
