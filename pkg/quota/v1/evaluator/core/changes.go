// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/utils/clock"
)

// UsageChanged returns a function that says whether an update of an object changes what it uses of
// a quota, or in which scopes it does. Objects that are only counted never change it.
func UsageChanged() func(resource schema.GroupResource, old, cur runtime.Object) bool {
	pods := &podEvaluator{clock: clock.RealClock{}, requests: podResourcesOptions()}
	claims := &resourceClaims{}
	changed := map[schema.GroupResource]func(old, cur runtime.Object) bool{
		podResource.GroupResource(): func(old, cur runtime.Object) bool {
			return usageDiffers(pods.usage, old, cur) || podScopesDiffer(old, cur)
		},
		serviceResource.GroupResource(): func(old, cur runtime.Object) bool { return usageDiffers(serviceUsage, old, cur) },
		claimResource.GroupResource(): func(old, cur runtime.Object) bool {
			return usageDiffers(claimUsage, old, cur) || attributesClassesDiffer(old, cur)
		},
		resourceClaimResource.GroupResource(): func(old, cur runtime.Object) bool { return usageDiffers(claims.usage, old, cur) },
	}
	return func(resource schema.GroupResource, old, cur runtime.Object) bool {
		differs, ok := changed[resource]
		return ok && differs(old, cur)
	}
}

func usageDiffers(usage generic.UsageFunc, old, cur runtime.Object) bool {
	before, err := usage(old)
	if err != nil {
		return false
	}
	after, err := usage(cur)
	return err == nil && !quota.Equals(before, after)
}

func podScopesDiffer(old, cur runtime.Object) bool {
	before, ok := old.(*v1.Pod)
	after, ok2 := cur.(*v1.Pod)
	return ok && ok2 && (isTerminating(before) != isTerminating(after) || isBestEffort(before) != isBestEffort(after))
}

func attributesClassesDiffer(old, cur runtime.Object) bool {
	before, ok := old.(*v1.PersistentVolumeClaim)
	after, ok2 := cur.(*v1.PersistentVolumeClaim)
	return ok && ok2 && !slices.Equal(slices.Sorted(slices.Values(attributesClassesOf(before))), slices.Sorted(slices.Values(attributesClassesOf(after))))
}
