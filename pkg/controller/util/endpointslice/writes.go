// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Create creates a slice for the owner, and remembers it.
func (s *Slices) Create(ctx context.Context, owner Owner, slice *discovery.EndpointSlice) (*discovery.EndpointSlice, error) {
	created, err := s.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	s.wrote(owner, created)
	return created, nil
}

// Update updates a slice of the owner, and remembers it. A slice without a resourceVersion, which
// takes the place of another, gets that of the cached one. The error is a conflict when the cached
// one is not the live one.
func (s *Slices) Update(ctx context.Context, owner Owner, slice *discovery.EndpointSlice) (*discovery.EndpointSlice, error) {
	if slice.ResourceVersion == "" {
		old, err := s.Cached(slice.Namespace, slice.Name)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, apierrors.NewConflict(resource, slice.Name, errGone)
		}
		slice.UID, slice.ResourceVersion = old.UID, old.ResourceVersion
	}
	updated, err := s.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewConflict(resource, slice.Name, errGone)
	}
	if err != nil {
		return nil, err
	}
	s.wrote(owner, updated)
	return updated, nil
}

// Delete deletes a slice of the owner, as it was read from the cache, and remembers that.
func (s *Slices) Delete(ctx context.Context, owner Owner, slice *discovery.EndpointSlice) error {
	s.guard.Deleting(owner.NamespacedName, owner.UID, slice.UID)
	err := s.client.DiscoveryV1().EndpointSlices(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(slice.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		s.guard.DeleteFailed(owner.NamespacedName, slice.UID)
		return err
	}
	return nil
}

func (s *Slices) wrote(owner Owner, slice *discovery.EndpointSlice) {
	s.guard.WroteAt(owner.NamespacedName, owner.UID, resource, slice.ResourceVersion)
	s.Tracker.Update(slice)
}
