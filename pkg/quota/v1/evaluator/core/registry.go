// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/features"
)

// legacyNames are the names that quotas had for objects before count/… came.
var legacyNames = map[schema.GroupVersionResource]v1.ResourceName{
	v1.SchemeGroupVersion.WithResource("configmaps"):             v1.ResourceConfigMaps,
	v1.SchemeGroupVersion.WithResource("resourcequotas"):         v1.ResourceQuotas,
	v1.SchemeGroupVersion.WithResource("replicationcontrollers"): v1.ResourceReplicationControllers,
	v1.SchemeGroupVersion.WithResource("secrets"):                v1.ResourceSecrets,
}

// NewEvaluators returns the evaluators of resources of which more is counted than the objects, or
// under other names. The informer factory, which may be nil, is asked for DeviceClasses.
func NewEvaluators(f quota.ListerForResourceFunc, i informers.SharedInformerFactory) []quota.Evaluator {
	all := []quota.Evaluator{
		NewPodEvaluator(f, clock.RealClock{}),
		NewServiceEvaluator(f),
		NewPersistentVolumeClaimEvaluator(f),
	}
	if features.Enabled(features.DynamicResourceAllocation) {
		var classes resourcelisters.DeviceClassLister
		if i != nil {
			classes = i.Resource().V1().DeviceClasses().Lister()
		}
		all = append(all, NewResourceClaimEvaluator(f, classes))
	}
	for resource, name := range legacyNames {
		all = append(all, generic.NewObjectCountEvaluator(resource.GroupResource(), generic.ListResourceUsingListerFunc(f, resource), name))
	}
	return all
}
