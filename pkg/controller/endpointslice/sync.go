// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice/metrics"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	sliceutil "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// errStale says that the cache is older than what was written.
var errStale = errors.New("EndpointSlice informer cache is out of date")

// syncPods enqueues the Services that a change of Pods concerns.
func (c *Controller) syncPods(_ context.Context, change selectorindex.Change) error {
	for _, service := range c.selectors.Affected(change) {
		c.batches.Add(service)
	}
	return nil
}

// syncService brings the slices of one Service up to date, and counts how that went.
func (c *Controller) syncService(ctx context.Context, key cache.ObjectName) error {
	err := c.sync(ctx, key)
	switch {
	case err == nil:
		metrics.EndpointSliceSyncs.WithLabelValues("success").Inc()
	case errors.Is(err, errStale):
		metrics.EndpointSliceSyncs.WithLabelValues("stale").Inc()
		klog.FromContext(ctx).V(4).Info("Waiting for the cache to show the last write", "reason", err)
		return worker.RequeueAfter(staleRetry)
	default:
		metrics.EndpointSliceSyncs.WithLabelValues("error").Inc()
	}
	return err
}

func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	// Before the first read: what is read after this has seen the Service's own writes.
	var stale *consistency.StaleError
	if err := c.slices.EnsureReady(key.AsNamespacedName()); errors.As(err, &stale) {
		return fmt.Errorf("%w: %w", errStale, err)
	} else if err != nil {
		return err
	}
	service, err := c.serviceLister.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	if !needsSlices(service) {
		return nil
	}
	pods, err := c.selected.Selected(service)
	if err != nil {
		c.recordFailedToListPods(service, err)
		return err
	}
	existing, err := c.slices.Of(key.AsNamespacedName())
	if err != nil {
		c.recordFailedToListEndpointSlices(service, err)
		return err
	}
	// Computed even if nothing is written: the tracker remembers what it has seen.
	triggerTime := c.triggerTimeTracker.ComputeEndpointLastChangeTriggerTime(service.Namespace, service, pods)

	sync, end := c.client.begin(ctx, sliceutil.Owner{NamespacedName: key.AsNamespacedName(), UID: service.UID})
	defer end()
	err = c.reconciler.Reconcile(klog.FromContext(ctx), service, pods, protect(existing), triggerTime)
	switch {
	case err == nil:
		return nil
	case sync.conflict.Load():
		return fmt.Errorf("%w: %w", errStale, err)
	default:
		c.recordFailedToUpdateEndpointSlices(service, err)
		return err
	}
}

// needsSlices says whether the controller keeps the Service's slices: others are kept by whoever
// made the Service, and names need none.
func needsSlices(service *v1.Service) bool {
	return service.Spec.Type != v1.ServiceTypeExternalName && service.Spec.Selector != nil
}

// protect returns the slices in a form that the library's reconciler may sort the ports and the
// addresses of, as it does.
func protect(cached []*discovery.EndpointSlice) []*discovery.EndpointSlice {
	for i, slice := range cached {
		switch {
		case slices.ContainsFunc(slice.Endpoints, func(e discovery.Endpoint) bool { return len(e.Addresses) > 1 }):
			cached[i] = slice.DeepCopy()
		case len(slice.Ports) > 1:
			shallow := *slice
			shallow.Ports = slices.Clone(slice.Ports)
			cached[i] = &shallow
		}
	}
	return cached
}

// forget drops what is remembered of a Service that is gone. Its slices are garbage.
func (c *Controller) forget(key cache.ObjectName) {
	c.slices.Forget(key.AsNamespacedName())
	c.selected.Forget(key)
	c.batches.Forget(key)
	c.triggerTimeTracker.DeleteService(key.Namespace, key.Name)
	c.reconciler.DeleteService(key.Namespace, key.Name)
	for _, addressType := range []discovery.AddressType{discovery.AddressTypeIPv4, discovery.AddressTypeIPv6} {
		c.topologyCache.RemoveHints(key.String(), addressType)
	}
}
