// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// DefaultIgnoredResources returns the resources that take no part in garbage collection: events
// come in masses, own nothing and go by themselves.
func DefaultIgnoredResources() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{
		{Group: "", Resource: "events"}:              {},
		{Group: "events.k8s.io", Resource: "events"}: {},
	}
}

// resource is what discovery says of a resource.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       schema.GroupKind
	namespaced bool
}

// GetDeletableResources returns the resources that can be deleted, listed and watched, each in the
// version that the API server prefers. With an error the result may be partial, and still useful.
func GetDeletableResources(_ klog.Logger, discoveryClient discovery.ServerResourcesInterface) (map[schema.GroupVersionResource]struct{}, error) {
	found, err := discoverDeletable(discoveryClient)
	resources := make(map[schema.GroupVersionResource]struct{}, len(found))
	for gvr := range found {
		resources[gvr] = struct{}{}
	}
	return resources, err
}

// WatchedResources returns those of the discovered resources that the collector watches: the
// deletable ones that it does not ignore. Malformed lists are left out.
func WatchedResources(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	found, _ := deletableIn(lists)
	ignored := DefaultIgnoredResources()
	maps.DeleteFunc(found, func(gvr schema.GroupVersionResource, _ resource) bool {
		_, skip := ignored[gvr.GroupResource()]
		return skip
	})
	return slices.Collect(maps.Keys(found))
}

func discoverDeletable(client discovery.ServerResourcesInterface) (map[schema.GroupVersionResource]resource, error) {
	lists, err := client.ServerPreferredResources()
	found, malformed := deletableIn(lists)
	if len(malformed) == 0 {
		return found, err
	}
	return found, errors.Join(append(malformed, err)...)
}

func deletableIn(lists []*metav1.APIResourceList) (map[schema.GroupVersionResource]resource, []error) {
	var errs []error
	found := map[schema.GroupVersionResource]resource{}
	deletable := discovery.SupportsAllVerbs{Verbs: []string{"delete", "list", "watch"}}
	for _, list := range discovery.FilteredBy(deletable, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			errs = append(errs, fmt.Errorf("discovery names a malformed group version %q: %w", list.GroupVersion, err))
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			gvr := gv.WithResource(r.Name)
			found[gvr] = resource{gvr: gvr, kind: kindOf(gv, r), namespaced: r.Namespaced}
		}
	}
	return found, errs
}

func kindOf(gv schema.GroupVersion, r *metav1.APIResource) schema.GroupKind {
	// Scale and other subresources name their own group; a resource's kind is in its list's.
	return schema.GroupKind{Group: gv.Group, Kind: r.Kind}
}

// mergeKnown adds to what was found the known resources that a failed discovery says nothing
// about: that an aggregated API does not answer now does not mean that its objects are gone.
func mergeKnown(found, known map[schema.GroupVersionResource]resource, err error) {
	if err == nil {
		return
	}
	var failed *discovery.ErrGroupDiscoveryFailed
	partial := errors.As(err, &failed)
	kinds := map[schema.GroupKind]bool{}
	for _, r := range found {
		kinds[r.kind] = true
	}
	for gvr, r := range known {
		if kinds[r.kind] {
			continue
		}
		if partial {
			if _, ok := failed.Groups[gvr.GroupVersion()]; !ok {
				continue
			}
		}
		found[gvr] = r
	}
}
