// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// NamespacedResourcesFunc asks the API server for its namespaced resources, each in the version that
// it prefers. With an error the result may be partial, and still useful.
type NamespacedResourcesFunc func() ([]*metav1.APIResourceList, error)

// GetQuotableResources returns the resources that quotas can count. With an error the result may be
// partial, and still useful.
func GetQuotableResources(discoveryFunc NamespacedResourcesFunc) (map[schema.GroupVersionResource]struct{}, error) {
	lists, err := discoveryFunc()
	found, malformed := countableIn(lists)
	return found, errors.Join(append(malformed, err)...)
}

// WatchedResources returns those of the discovered resources that the controller watches: the
// countable namespaced ones that are not ignored. Malformed lists are left out.
func WatchedResources(lists []*metav1.APIResourceList, ignored map[schema.GroupResource]struct{}) []schema.GroupVersionResource {
	found, _ := countableIn(discovery.FilteredBy(discovery.ResourcePredicateFunc(isNamespaced), lists))
	maps.DeleteFunc(found, func(gvr schema.GroupVersionResource, _ struct{}) bool {
		_, skip := ignored[gvr.GroupResource()]
		return skip
	})
	return slices.Collect(maps.Keys(found))
}

func isNamespaced(_ string, r *metav1.APIResource) bool { return r.Namespaced }

func countableIn(lists []*metav1.APIResourceList) (map[schema.GroupVersionResource]struct{}, []error) {
	var errs []error
	found := map[schema.GroupVersionResource]struct{}{}
	countable := discovery.SupportsAllVerbs{Verbs: []string{"create", "list", "watch", "delete"}}
	for _, list := range discovery.FilteredBy(countable, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			errs = append(errs, fmt.Errorf("discovery names a malformed group version %q: %w", list.GroupVersion, err))
			continue
		}
		for _, r := range list.APIResources {
			found[version.WithResource(r.Name)] = struct{}{}
		}
	}
	return found, errs
}

// keepKnown adds to what was found the known resources that a failed discovery says nothing about,
// unless they were found in another version.
func keepKnown(found map[schema.GroupVersionResource]struct{}, known []schema.GroupVersionResource, err error) {
	if err == nil {
		return
	}
	var failed *discovery.ErrGroupDiscoveryFailed
	partial := errors.As(err, &failed)
	resources := map[schema.GroupResource]bool{}
	for gvr := range found {
		resources[gvr.GroupResource()] = true
	}
	for _, gvr := range known {
		if resources[gvr.GroupResource()] {
			continue
		}
		if partial {
			if _, ok := failed.Groups[gvr.GroupVersion()]; !ok {
				continue
			}
		}
		found[gvr] = struct{}{}
	}
}
