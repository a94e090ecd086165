// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
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
	c := &resourceClaims{classes: classes}
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
}

func (c *resourceClaims) usage(item runtime.Object) (v1.ResourceList, error) {
	claim, err := typed[*resourceapi.ResourceClaim](item)
	if err != nil {
		return nil, err
	}
	used := v1.ResourceList{resourceClaimCountName: count(1)}
	// A claim that stands for what a Pod asks for as an extended resource is charged to the Pod.
	ofPod := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != ""
	for class, n := range devicesOf(claim) {
		add(used, V1ResourceByDeviceClass(class), count(n))
		if ofPod {
			continue
		}
		for _, name := range c.extendedResources(class) {
			add(used, v1.ResourceName(requestsPrefix+name), count(n))
		}
	}
	return used, nil
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
