// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// evaluator implements quota.Evaluator for one resource.
type evaluator struct {
	resource schema.GroupResource
	list     generic.ListFuncByNamespace
	// matches says whether a name of a quota is one that this resource counts under.
	matches func(v1.ResourceName) bool
	usage   generic.UsageFunc
	// inScope says whether an object is in a scope; nil when the resource has none.
	inScope generic.MatchesScopeFunc
	// updates says that updates of an object may change its usage.
	updates bool
}

var _ quota.Evaluator = &evaluator{}

// Constraints implements quota.Evaluator: there are none beyond the API's validation.
func (e *evaluator) Constraints([]v1.ResourceName, runtime.Object) error { return nil }

// GroupResource implements quota.Evaluator.
func (e *evaluator) GroupResource() schema.GroupResource { return e.resource }

// Handles implements quota.Evaluator.
func (e *evaluator) Handles(a admission.Attributes) bool {
	switch a.GetOperation() {
	case admission.Create:
		return a.GetSubresource() == ""
	case admission.Update:
		return e.updates && (a.GetSubresource() == "" || a.GetSubresource() == "resize")
	}
	return false
}

// MatchingResources implements quota.Evaluator.
func (e *evaluator) MatchingResources(input []v1.ResourceName) []v1.ResourceName {
	found := []v1.ResourceName{}
	for _, name := range input {
		if e.matches(name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// Matches implements quota.Evaluator.
func (e *evaluator) Matches(q *v1.ResourceQuota, item runtime.Object) (bool, error) {
	return generic.Matches(q, item, e.MatchingResources, e.matchesScope)
}

func (e *evaluator) matchesScope(scope v1.ScopedResourceSelectorRequirement, item runtime.Object) (bool, error) {
	if e.inScope == nil {
		return false, nil
	}
	return e.inScope(scope, item)
}

// MatchingScopes implements quota.Evaluator.
func (e *evaluator) MatchingScopes(item runtime.Object, scopes []v1.ScopedResourceSelectorRequirement) ([]v1.ScopedResourceSelectorRequirement, error) {
	found := []v1.ScopedResourceSelectorRequirement{}
	for _, scope := range scopes {
		match, err := e.matchesScope(scope, item)
		if err != nil {
			return nil, fmt.Errorf("matching scope %s: %w", scope.ScopeName, err)
		}
		if match {
			found = append(found, scope)
		}
	}
	return found, nil
}

// UncoveredQuotaScopes implements quota.Evaluator.
func (e *evaluator) UncoveredQuotaScopes(limited, matched []v1.ScopedResourceSelectorRequirement) ([]v1.ScopedResourceSelectorRequirement, error) {
	uncovered := []v1.ScopedResourceSelectorRequirement{}
	for _, scope := range limited {
		if !slices.ContainsFunc(matched, func(m v1.ScopedResourceSelectorRequirement) bool { return m.ScopeName == scope.ScopeName }) {
			uncovered = append(uncovered, scope)
		}
	}
	return uncovered, nil
}

// Usage implements quota.Evaluator.
func (e *evaluator) Usage(item runtime.Object) (v1.ResourceList, error) { return e.usage(item) }

// UsageStats implements quota.Evaluator.
func (e *evaluator) UsageStats(options quota.UsageStatsOptions) (quota.UsageStats, error) {
	stats := quota.UsageStats{Used: v1.ResourceList{}}
	for _, name := range options.Resources {
		stats.Used[name] = resource.Quantity{Format: resource.DecimalSI}
	}
	items, err := e.list(options.Namespace)
	if err != nil {
		return stats, fmt.Errorf("failed to list content: %w", err)
	}
	scopes := scopesOf(options)
	for _, item := range items {
		counted, err := e.inAllScopes(scopes, item)
		if err != nil {
			return stats, err
		}
		if !counted {
			continue
		}
		used, err := e.usage(item)
		if err != nil {
			return stats, err
		}
		for name, quantity := range used {
			sum := stats.Used[name]
			sum.Add(quantity)
			stats.Used[name] = sum
		}
	}
	return stats, nil
}

func scopesOf(options quota.UsageStatsOptions) []v1.ScopedResourceSelectorRequirement {
	var scopes []v1.ScopedResourceSelectorRequirement
	for _, scope := range options.Scopes {
		scopes = append(scopes, v1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: v1.ScopeSelectorOpExists})
	}
	if options.ScopeSelector != nil {
		scopes = append(scopes, options.ScopeSelector.MatchExpressions...)
	}
	return scopes
}

func (e *evaluator) inAllScopes(scopes []v1.ScopedResourceSelectorRequirement, item runtime.Object) (bool, error) {
	for _, scope := range scopes {
		match, err := e.matchesScope(scope, item)
		if err != nil || !match {
			return false, err
		}
	}
	return true, nil
}

// operators are the operators of scope selectors as those of labels.
var operators = map[v1.ScopeSelectorOperator]selection.Operator{
	v1.ScopeSelectorOpIn:           selection.In,
	v1.ScopeSelectorOpNotIn:        selection.NotIn,
	v1.ScopeSelectorOpExists:       selection.Exists,
	v1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
}

// selects says whether a scope's operator and values select one of the names, or none when there
// are no names.
func selects(scope v1.ScopedResourceSelectorRequirement, names ...string) (bool, error) {
	operator, ok := operators[scope.Operator]
	if !ok {
		return false, fmt.Errorf("%q is not a valid scope selector operator", scope.Operator)
	}
	requirement, err := labels.NewRequirement(string(scope.ScopeName), operator, scope.Values)
	if err != nil {
		return false, fmt.Errorf("scope selector %s: %w", scope.ScopeName, err)
	}
	if len(names) == 0 {
		return requirement.Matches(labels.Set{}), nil
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return requirement.Matches(labels.Set{string(scope.ScopeName): name})
	}), nil
}

// typed returns the object as a T; the caches hold nothing else.
func typed[T runtime.Object](item runtime.Object) (T, error) {
	object, ok := item.(T)
	if !ok {
		return object, fmt.Errorf("expect %T, got %T", object, item)
	}
	return object, nil
}

func count(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// add adds to a usage.
func add(usage v1.ResourceList, name v1.ResourceName, quantity resource.Quantity) {
	sum := usage[name]
	sum.Add(quantity)
	usage[name] = sum
}
