// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// syncService brings the Endpoints of one Service up to date.
func (c *Controller) syncService(ctx context.Context, key cache.ObjectName) error {
	owner := key.AsNamespacedName()
	// Before the first read: what is read after this has seen the Service's own writes.
	var stale *consistency.StaleError
	if err := c.waiting.EnsureReady(c.guard, owner); errors.As(err, &stale) {
		return waitForCache(ctx, err)
	} else if err != nil {
		return err
	}
	current, err := c.endpointsLister.Endpoints(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("reading endpoints from the cache: %w", err)
	}
	service, err := c.serviceLister.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return c.serviceGone(ctx, key, current)
	}
	if err != nil {
		return fmt.Errorf("reading the service from the cache: %w", err)
	}
	if !needsEndpoints(service) {
		return nil
	}
	pods, err := c.selected.Selected(service)
	if err != nil {
		return err
	}
	// Computed even if nothing is written: the tracker remembers what it has seen.
	triggerTime := c.triggerTimeTracker.ComputeEndpointLastChangeTriggerTime(service.Namespace, service, pods)
	next := makePlan(service, pods, current, triggerTime)
	if next == nil {
		return nil
	}
	return c.write(ctx, service, current, next)
}

// serviceGone deletes the Endpoints that a Service left behind.
func (c *Controller) serviceGone(ctx context.Context, key cache.ObjectName, current *v1.Endpoints) error {
	owner := key.AsNamespacedName()
	c.selected.Forget(key)
	c.batches.Forget(key)
	c.triggerTimeTracker.DeleteService(key.Namespace, key.Name)
	if current == nil {
		c.guard.Clear(owner, "")
		return nil
	}
	if c.guard.IsDeleting(owner, current.UID) {
		return nil
	}
	c.guard.Deleting(owner, "", current.UID)
	err := c.client.CoreV1().Endpoints(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(current.UID))})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		c.guard.DeleteFailed(owner, current.UID)
		return waitForCache(ctx, err)
	}
	c.guard.DeleteFailed(owner, current.UID)
	return fmt.Errorf("deleting endpoints: %w", err)
}

// write creates or updates Endpoints.
func (c *Controller) write(ctx context.Context, service *v1.Service, current, next *v1.Endpoints) error {
	client := c.client.CoreV1().Endpoints(service.Namespace)
	var written *v1.Endpoints
	var err error
	if current == nil {
		written, err = client.Create(ctx, next, metav1.CreateOptions{})
	} else {
		written, err = client.Update(ctx, next, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		c.guard.WroteAt(types.NamespacedName{Namespace: service.Namespace, Name: service.Name}, service.UID, resource, written.ResourceVersion)
		return nil
	case current == nil && apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		klog.FromContext(ctx).V(5).Info("The namespace is being deleted, no endpoints are created", "err", err)
		return nil
	case current == nil && apierrors.IsAlreadyExists(err), current != nil && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
		return waitForCache(ctx, err)
	case current == nil:
		c.recordFailedToCreate(next, err)
		return fmt.Errorf("creating endpoints: %w", err)
	default:
		c.recordFailedToUpdate(next, err)
		return fmt.Errorf("updating endpoints: %w", err)
	}
}

// waitForCache asks to come back when the cache shows more than it does.
func waitForCache(ctx context.Context, reason error) error {
	klog.FromContext(ctx).V(4).Info("Waiting for the cache to show the last write", "reason", reason)
	return worker.RequeueAfter(staleRetry)
}
