// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// Names of a quota that are about the claims of one storage class begin with its name.
const (
	classStorageSuffix = ".storageclass.storage.k8s.io/requests.storage"
	classClaimsSuffix  = ".storageclass.storage.k8s.io/persistentvolumeclaims"
)

var (
	claimResource  = v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	claimCountName = generic.ObjectCountQuotaResourceNameFor(claimResource.GroupResource())
)

// NewPersistentVolumeClaimEvaluator returns the evaluator of PersistentVolumeClaims.
func NewPersistentVolumeClaimEvaluator(f quota.ListerForResourceFunc) quota.Evaluator {
	return &evaluator{
		resource: claimResource.GroupResource(),
		list:     generic.ListResourceUsingListerFunc(f, claimResource),
		matches: func(name v1.ResourceName) bool {
			switch name {
			case claimCountName, v1.ResourcePersistentVolumeClaims, v1.ResourceRequestsStorage:
				return true
			}
			return strings.HasSuffix(string(name), classStorageSuffix) || strings.HasSuffix(string(name), classClaimsSuffix)
		},
		usage:   claimUsage,
		inScope: claimInScope,
		updates: true,
	}
}

func claimUsage(item runtime.Object) (v1.ResourceList, error) {
	claim, err := typed[*v1.PersistentVolumeClaim](item)
	if err != nil {
		return nil, err
	}
	used := v1.ResourceList{claimCountName: count(1), v1.ResourcePersistentVolumeClaims: count(1)}
	class := storageClassOf(claim)
	if class != "" {
		used[v1.ResourceName(class+classClaimsSuffix)] = count(1)
	}
	if size, ok := claimSize(claim); ok {
		used[v1.ResourceRequestsStorage] = size
		if class != "" {
			used[v1.ResourceName(class+classStorageSuffix)] = size
		}
	}
	return used, nil
}

// claimSize returns the larger of what a claim asks for and what is allocated for it: a size that is
// taken back after an expansion that failed is freed when it no longer is allocated.
func claimSize(claim *v1.PersistentVolumeClaim) (resource.Quantity, bool) {
	size, ok := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if !ok {
		return size, false
	}
	if allocated := claim.Status.AllocatedResources[v1.ResourceStorage]; allocated.Cmp(size) > 0 {
		return allocated, true
	}
	return size, true
}

func storageClassOf(claim *v1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

func claimInScope(scope v1.ScopedResourceSelectorRequirement, item runtime.Object) (bool, error) {
	claim, err := typed[*v1.PersistentVolumeClaim](item)
	if err != nil || scope.ScopeName != v1.ResourceQuotaScopeVolumeAttributesClass {
		return false, err
	}
	return selects(scope, attributesClassesOf(claim)...)
}

// attributesClassesOf returns the names of the VolumeAttributesClasses that a claim has, is getting
// or asks for. It counts in the quota of each.
func attributesClassesOf(claim *v1.PersistentVolumeClaim) []string {
	var names []string
	add := func(name *string) {
		if name != nil && *name != "" && !slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	add(claim.Spec.VolumeAttributesClassName)
	add(claim.Status.CurrentVolumeAttributesClassName)
	if status := claim.Status.ModifyVolumeStatus; status != nil {
		add(&status.TargetVolumeAttributesClassName)
	}
	return names
}
