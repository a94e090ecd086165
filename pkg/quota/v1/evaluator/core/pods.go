// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	requestsPrefix = "requests."
	limitsPrefix   = "limits."
)

var (
	podResource  = v1.SchemeGroupVersion.WithResource("pods")
	podCountName = generic.ObjectCountQuotaResourceNameFor(podResource.GroupResource())
)

// podEvaluator counts Pods.
type podEvaluator struct {
	clock    clock.PassiveClock
	requests resourcehelper.PodResourcesOptions
}

// NewPodEvaluator returns the evaluator of Pods.
func NewPodEvaluator(f quota.ListerForResourceFunc, c clock.Clock) quota.Evaluator {
	p := &podEvaluator{clock: c, requests: podResourcesOptions()}
	return &evaluator{
		resource: podResource.GroupResource(),
		list:     generic.ListResourceUsingListerFunc(f, podResource),
		matches:  matchesPods,
		usage:    p.usage,
		inScope:  podInScope,
		updates:  true,
	}
}

func podResourcesOptions() resourcehelper.PodResourcesOptions {
	return resourcehelper.PodResourcesOptions{
		UseStatusResources:                             true,
		SkipPodLevelResources:                          !features.Enabled(features.PodLevelResources),
		InPlacePodLevelResourcesVerticalScalingEnabled: features.Enabled(features.InPlacePodLevelResourcesVerticalScaling),
	}
}

// matchesPods says whether a name of a quota is about Pods.
func matchesPods(name v1.ResourceName) bool {
	switch name {
	case podCountName, v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
		v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceRequestsEphemeralStorage,
		v1.ResourceLimitsCPU, v1.ResourceLimitsMemory, v1.ResourceLimitsEphemeralStorage:
		return true
	}
	plain, requests := strings.CutPrefix(string(name), requestsPrefix)
	return strings.HasPrefix(plain, v1.ResourceHugePagesPrefix) || requests && isExtended(plain)
}

// isExtended says whether a resource is one that is not Kubernetes' own.
func isExtended(name string) bool {
	return strings.Contains(name, "/") && (!strings.Contains(name, v1.ResourceDefaultNamespacePrefix) || isImplicitExtended(name))
}

// QuotaV1Pod says whether a Pod counts: it has not ended, and is not one in deletion whose grace
// period is over.
func QuotaV1Pod(pod *v1.Pod, c clock.PassiveClock) bool {
	if pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded {
		return false
	}
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return true
	}
	over := pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	return !c.Now().After(over)
}

func (p *podEvaluator) usage(item runtime.Object) (v1.ResourceList, error) {
	pod, err := typed[*v1.Pod](item)
	if err != nil {
		return nil, err
	}
	used := v1.ResourceList{podCountName: count(1)}
	if !QuotaV1Pod(pod, p.clock) {
		return used, nil
	}
	used[v1.ResourcePods] = count(1)
	for name, quantity := range resourcehelper.PodRequests(pod, p.requests) {
		switch {
		case name == v1.ResourceCPU, name == v1.ResourceMemory, name == v1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
			used[name] = quantity
			used[requestsPrefix+name] = quantity
		case isExtended(string(name)):
			used[requestsPrefix+name] = quantity
		}
	}
	for name, quantity := range resourcehelper.PodLimits(pod, p.requests) {
		switch name {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
			used[limitsPrefix+name] = quantity
		}
	}
	return used, nil
}

// PodUsageFunc returns what a Pod uses of a quota.
func PodUsageFunc(item runtime.Object, c clock.Clock) (v1.ResourceList, error) {
	return (&podEvaluator{clock: c, requests: podResourcesOptions()}).usage(item)
}

// podInScope says whether a Pod is in a scope. Scopes of other resources have no Pods.
func podInScope(scope v1.ScopedResourceSelectorRequirement, item runtime.Object) (bool, error) {
	pod, err := typed[*v1.Pod](item)
	if err != nil {
		return false, err
	}
	switch scope.ScopeName {
	case v1.ResourceQuotaScopeTerminating:
		return isTerminating(pod), nil
	case v1.ResourceQuotaScopeNotTerminating:
		return !isTerminating(pod), nil
	case v1.ResourceQuotaScopeBestEffort:
		return isBestEffort(pod), nil
	case v1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(pod), nil
	case v1.ResourceQuotaScopePriorityClass:
		if pod.Spec.PriorityClassName == "" {
			return selects(scope)
		}
		return selects(scope, pod.Spec.PriorityClassName)
	case v1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return hasCrossNamespaceAffinity(pod), nil
	}
	return false, nil
}

// isTerminating says whether a Pod ends by itself, which has nothing to do with its deletion.
func isTerminating(pod *v1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// isBestEffort says whether a Pod asks for no CPU and memory at all.
func isBestEffort(pod *v1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == v1.PodQOSBestEffort
	}
	if pod.Spec.Resources != nil && features.Enabled(features.PodLevelResources) && asks(*pod.Spec.Resources) {
		return false
	}
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if asks(containers[i].Resources) {
				return false
			}
		}
	}
	return true
}

// asks says whether CPU or memory is requested or limited.
func asks(resources v1.ResourceRequirements) bool {
	for _, list := range []v1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if quantity := list[name]; quantity.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// hasCrossNamespaceAffinity says whether a Pod's place depends on Pods of other namespaces.
func hasCrossNamespaceAffinity(pod *v1.Pod) bool {
	if pod.Spec.Affinity == nil {
		return false
	}
	var terms []v1.PodAffinityTerm
	var weighted []v1.WeightedPodAffinityTerm
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	for _, term := range terms {
		if len(term.Namespaces) > 0 || term.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
