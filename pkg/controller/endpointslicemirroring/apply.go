// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	sliceutil "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// syncEndpoints brings the mirror of one Endpoints object up to date.
func (c *Controller) syncEndpoints(ctx context.Context, key cache.ObjectName) error {
	start := c.clock.Now()
	defer func() {
		c.metrics.EndpointsSyncDuration.WithLabelValues().Observe(c.clock.Since(start).Seconds())
	}()
	// Before the first read: what is read after this has seen the Endpoints' own slices.
	var stale *consistency.StaleError
	if err := c.slices.EnsureReady(key.AsNamespacedName()); errors.As(err, &stale) {
		return waitForCache(ctx, err)
	} else if err != nil {
		return err
	}
	endpoints, err := c.mirrored(key)
	if err != nil {
		return err
	}
	existing, err := c.slices.Of(key.AsNamespacedName())
	if err != nil {
		return err
	}
	if endpoints == nil {
		return c.deleteMirror(ctx, key, existing)
	}
	p := makePlan(endpoints, existing, int(c.maxPerSubset))
	if p.invalid > 0 {
		c.recordInvalidIPAddress(endpoints, p.invalid)
	}
	if p.skipped > p.invalid {
		c.recordTooManyAddressesToMirror(endpoints, p.skipped)
	}
	c.count(endpoints, p)
	return c.apply(ctx, endpoints, p)
}

// mirrored returns the Endpoints if they are to be mirrored, else nil.
func (c *Controller) mirrored(key cache.ObjectName) (*v1.Endpoints, error) {
	endpoints, err := c.endpointsLister.Endpoints(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading endpoints from the cache: %w", err)
	}
	if !shouldMirror(endpoints) {
		return nil, nil
	}
	service, err := c.serviceLister.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the service from the cache: %w", err)
	}
	if service.Spec.Selector != nil {
		return nil, nil
	}
	return endpoints, nil
}

// deleteMirror deletes the slices of Endpoints that are not to be mirrored.
func (c *Controller) deleteMirror(ctx context.Context, key cache.ObjectName, existing []*discovery.EndpointSlice) error {
	owner := sliceutil.Owner{NamespacedName: key.AsNamespacedName()}
	c.metricsCache.Delete(owner.NamespacedName)
	c.batches.Forget(key)
	if len(existing) == 0 {
		c.slices.Forget(owner.NamespacedName)
		return nil
	}
	var failed []error
	for _, slice := range existing {
		if err := c.slices.Delete(ctx, owner, slice); err != nil {
			failed = append(failed, err)
			continue
		}
		c.metrics.EndpointSliceChanges.WithLabelValues("delete").Inc()
	}
	if len(failed) > 0 {
		return fmt.Errorf("error(s) deleting %d/%d EndpointSlices for %s/%s Endpoints, including: %w",
			len(failed), len(existing), key.Namespace, key.Name, failed[0])
	}
	return nil
}

// apply writes what is planned: new slices first, so that no endpoint is missing in between.
func (c *Controller) apply(ctx context.Context, endpoints *v1.Endpoints, p plan) error {
	owner := sliceutil.Owner{NamespacedName: types.NamespacedName{Namespace: endpoints.Namespace, Name: endpoints.Name}, UID: endpoints.UID}
	for _, slice := range p.create {
		_, err := c.slices.Create(ctx, owner, slice)
		if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to create EndpointSlice for Endpoints %s/%s: %w", endpoints.Namespace, endpoints.Name, err)
		}
		c.metrics.EndpointSliceChanges.WithLabelValues("create").Inc()
	}
	for _, slice := range p.update {
		_, err := c.slices.Update(ctx, owner, slice)
		if apierrors.IsConflict(err) {
			return waitForCache(ctx, err)
		}
		if err != nil {
			return fmt.Errorf("failed to update %s EndpointSlice for Endpoints %s/%s: %w", slice.Name, endpoints.Namespace, endpoints.Name, err)
		}
		c.metrics.EndpointSliceChanges.WithLabelValues("update").Inc()
	}
	for _, slice := range p.remove {
		if err := c.slices.Delete(ctx, owner, slice); err != nil {
			return fmt.Errorf("failed to delete %s EndpointSlice for Endpoints %s/%s: %w", slice.Name, endpoints.Namespace, endpoints.Name, err)
		}
		c.metrics.EndpointSliceChanges.WithLabelValues("delete").Inc()
	}
	return nil
}

func (c *Controller) count(endpoints *v1.Endpoints, p plan) {
	c.metrics.EndpointsAddedPerSync.WithLabelValues().Observe(float64(p.added))
	c.metrics.EndpointsUpdatedPerSync.WithLabelValues().Observe(float64(p.updated))
	c.metrics.EndpointsRemovedPerSync.WithLabelValues().Observe(float64(p.removed))
	c.metrics.AddressesSkippedPerSync.WithLabelValues().Observe(float64(p.skipped))
	c.metricsCache.Update(types.NamespacedName{Namespace: endpoints.Namespace, Name: endpoints.Name}, p.sizes)
}

// waitForCache asks to come back when the cache shows more than it does.
func waitForCache(ctx context.Context, reason error) error {
	klog.FromContext(ctx).V(4).Info("Waiting for the cache to show the last write", "reason", reason)
	return worker.RequeueAfter(staleRetry)
}
