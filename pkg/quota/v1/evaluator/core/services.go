// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

var (
	serviceResource  = v1.SchemeGroupVersion.WithResource("services")
	serviceCountName = generic.ObjectCountQuotaResourceNameFor(serviceResource.GroupResource())
)

// NewServiceEvaluator returns the evaluator of Services.
func NewServiceEvaluator(f quota.ListerForResourceFunc) quota.Evaluator {
	return &evaluator{
		resource: serviceResource.GroupResource(),
		list:     generic.ListResourceUsingListerFunc(f, serviceResource),
		matches: func(name v1.ResourceName) bool {
			switch name {
			case serviceCountName, v1.ResourceServices, v1.ResourceServicesNodePorts, v1.ResourceServicesLoadBalancers:
				return true
			}
			return false
		},
		usage:   serviceUsage,
		updates: true,
	}
}

func serviceUsage(item runtime.Object) (v1.ResourceList, error) {
	service, err := typed[*v1.Service](item)
	if err != nil {
		return nil, err
	}
	used := v1.ResourceList{
		serviceCountName: count(1), v1.ResourceServices: count(1),
		v1.ResourceServicesNodePorts: count(0), v1.ResourceServicesLoadBalancers: count(0),
	}
	ports := int64(len(service.Spec.Ports))
	switch service.Spec.Type {
	case v1.ServiceTypeNodePort:
		used[v1.ResourceServicesNodePorts] = count(ports)
	case v1.ServiceTypeLoadBalancer:
		if allocate := service.Spec.AllocateLoadBalancerNodePorts; allocate != nil && !*allocate {
			ports = portsWithNodePort(service)
		}
		used[v1.ResourceServicesNodePorts] = count(ports)
		used[v1.ResourceServicesLoadBalancers] = count(1)
	}
	return used, nil
}

func portsWithNodePort(service *v1.Service) (n int64) {
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			n++
		}
	}
	return n
}
