// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// deviceClassSuffix ends the names of a quota that are about the devices of one class.
const deviceClassSuffix = ".deviceclass.resource.k8s.io/devices"

var (
	resourceClaimResource  = resourceapi.SchemeGroupVersion.WithResource("resourceclaims")
	resourceClaimCountName = generic.ObjectCountQuotaResourceNameFor(resourceClaimResource.GroupResource())
)

// V1ResourceByDeviceClass returns the name under which a quota counts the devices of a class.
func V1ResourceByDeviceClass(className string) v1.ResourceName {
	return v1.ResourceName(className + deviceClassSuffix)
}

// isImplicitExtended says whether an extended resource is the one that each DeviceClass has by itself.
func isImplicitExtended(name string) bool {
	return strings.HasPrefix(name, resourceapi.ResourceDeviceClassPrefix)
}

// NewResourceClaimEvaluator returns the evaluator of ResourceClaims. classes, which may be nil, says
// under which extended resource the devices of a class may be asked for.
func NewResourceClaimEvaluator(f quota.ListerForResourceFunc, classes resourcelisters.DeviceClassLister) quota.Evaluator {
	c := &resourceClaims{classes: classes, pods: podsOf(f)}
	return &evaluator{
		resource: resourceClaimResource.GroupResource(),
		list:     generic.ListResourceUsingListerFunc(f, resourceClaimResource),
		matches: func(name v1.ResourceName) bool {
			plain, requests := strings.CutPrefix(string(name), requestsPrefix)
			return name == resourceClaimCountName || strings.HasSuffix(string(name), deviceClassSuffix) || requests && isExtended(plain)
		},
		usage: c.usage,
	}
}

type resourceClaims struct {
	classes resourcelisters.DeviceClassLister
	// pods returns a Pod, nil if it is not known.
	pods func(namespace, name string) *v1.Pod
}

func podsOf(f quota.ListerForResourceFunc) func(namespace, name string) *v1.Pod {
	return func(namespace, name string) *v1.Pod {
		lister, err := f(podResource)
		if err != nil {
			return nil
		}
		object, err := lister.ByNamespace(namespace).Get(name)
		if err != nil {
			return nil
		}
		pod, _ := object.(*v1.Pod)
		return pod
	}
}

func (c *resourceClaims) usage(item runtime.Object) (v1.ResourceList, error) {
	claim, err := typed[*resourceapi.ResourceClaim](item)
	if err != nil {
		return nil, err
	}
	used := v1.ResourceList{resourceClaimCountName: count(1)}
	charged := c.chargedToPod(claim)
	for class, n := range devicesOf(claim) {
		add(used, V1ResourceByDeviceClass(class), count(n))
		for _, name := range c.extendedResources(class) {
			quantity := count(n)
			if already, ok := charged[v1.ResourceName(name)]; ok {
				quantity.Sub(already)
			}
			if quantity.Sign() > 0 {
				add(used, v1.ResourceName(requestsPrefix+name), quantity)
			}
		}
	}
	return used, nil
}

// chargedToPod returns what is charged to a Pod already, if the claim stands for the extended
// resources that the Pod asks for.
func (c *resourceClaims) chargedToPod(claim *resourceapi.ResourceClaim) v1.ResourceList {
	owner := metav1.GetControllerOfNoCopy(claim)
	if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" || owner == nil || owner.Kind != "Pod" || c.pods == nil {
		return nil
	}
	pod := c.pods(claim.Namespace, owner.Name)
	if pod == nil || pod.UID != owner.UID {
		return nil
	}
	return resourcehelper.PodRequests(pod, podResourcesOptions())
}

// extendedResources returns the names of the extended resources that stand for a class.
func (c *resourceClaims) extendedResources(class string) []string {
	names := []string{resourceapi.ResourceDeviceClassPrefix + class}
	if c.classes == nil {
		return names
	}
	if object, err := c.classes.Get(class); err == nil && object.Spec.ExtendedResourceName != nil {
		names = append(names, *object.Spec.ExtendedResourceName)
	}
	return names
}

// devicesOf returns the most devices of each class that a claim may get.
func devicesOf(claim *resourceapi.ResourceClaim) map[string]int64 {
	devices := map[string]int64{}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			devices[exactly.DeviceClassName] += devicesAsked(exactly.AllocationMode, exactly.Count)
			continue
		}
		most := map[string]int64{}
		for _, alternative := range request.FirstAvailable {
			class := alternative.DeviceClassName
			most[class] = max(most[class], devicesAsked(alternative.AllocationMode, alternative.Count))
		}
		for class, n := range most {
			devices[class] += n
		}
	}
	return devices
}

func devicesAsked(mode resourceapi.DeviceAllocationMode, n int64) int64 {
	switch mode {
	case resourceapi.DeviceAllocationModeExactCount:
		return n
	case resourceapi.DeviceAllocationModeAll:
		return resourceapi.AllocationResultsMaxSize
	}
	return 0 // a mode that this release does not know
}
