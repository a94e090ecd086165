// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	// conflictRetry is when a quota is counted again whose status admission has written meanwhile.
	conflictRetry = 200 * time.Millisecond
	// settle is how old admission's last charge must be before a lower count is believed: the object
	// that was admitted is created after the charge, and comes into the cache later still.
	settle = time.Second
	// longestHold is how long a lower count is held back where admission charges all the time.
	longestHold = 10 * time.Second
	// secondLook is when a quota is counted again after its usage was lowered.
	secondLook = 2 * time.Second
)

// sync counts what is used of one quota.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	why := c.memory.take(key)
	q, err := c.quotas.ResourceQuotas(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.memory.forget(key)
		c.guard.Clear(key.AsNamespacedName(), "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading quota %s from the cache: %w", key, err)
	}
	if err := c.guard.EnsureReady(key.AsNamespacedName()); err != nil {
		c.memory.mark(key, why)
		return worker.RequeueAfter(conflictRetry)
	}
	evaluators := c.registry.List()
	unknown := unknownNames(q.Spec.Hard, evaluators, c.notReady)
	// Partly counted is counted: what failed keeps its value, and is retried.
	counted, countErr := quota.CalculateUsage(q.Namespace, q.Spec.Scopes, without(q.Spec.Hard, unknown), c.registry, q.Spec.ScopeSelector)
	c.tell(q, evaluators, unknown)
	status := newStatus(q, counted)
	found := compare(q.Status.Used, status.Used)
	var hold time.Duration
	if found.lowered {
		if hold = c.memory.hold(key, time.Now()); hold > 0 {
			status.Used = quota.Max(status.Used, quota.Mask(q.Status.Used, quota.ResourceNames(q.Spec.Hard)))
			c.memory.mark(key, why)
		}
	} else {
		c.memory.release(key)
	}
	if hold == 0 {
		c.noteDrift(ctx, q, why, found)
	}
	if !isUpToDate(q, status) {
		if err := c.write(ctx, q, status); err != nil {
			return err
		}
		if found.lowered && hold == 0 {
			c.primary.AddAfter(key, secondLook)
		}
	}
	if countErr == nil && hold > 0 {
		return worker.RequeueAfter(hold)
	}
	return wrapCount(key, countErr)
}

func wrapCount(key cache.ObjectName, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("counting what is used of quota %s: %w", key, err)
}

// notReady says why a resource cannot be listed yet; empty if it can.
func (c *Controller) notReady(resource schema.GroupResource) string {
	if c.monitors == nil {
		return ""
	}
	return c.monitors.pending(resource)
}

// write writes a quota's status.
func (c *Controller) write(ctx context.Context, q *v1.ResourceQuota, status v1.ResourceQuotaStatus) error {
	written := q.DeepCopy()
	written.Status = status
	written, err := c.client.ResourceQuotas(q.Namespace).UpdateStatus(ctx, written, metav1.UpdateOptions{})
	switch {
	case err == nil:
		c.guard.WroteAt(types.NamespacedName{Namespace: q.Namespace, Name: q.Name}, q.UID, quotaResource, written.ResourceVersion)
		return nil
	case apierrors.IsNotFound(err):
		return nil // deleted
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(4).Info("The quota has changed meanwhile, counting again", "quota", klog.KObj(q))
		return worker.RequeueAfter(conflictRetry)
	}
	return fmt.Errorf("writing the status of quota %s: %w", klog.KObj(q), err)
}

// tell records what of a quota cannot be counted, once for each set of names, and not while the
// first lists may still come.
func (c *Controller) tell(q *v1.ResourceQuota, evaluators []quota.Evaluator, unknown map[v1.ResourceName]string) {
	key := cache.MetaObjectToName(q)
	if len(unknown) == 0 || c.monitors == nil {
		c.memory.told(key, "")
		return
	}
	var resources []schema.GroupResource
	names := quota.ResourceNames(q.Spec.Hard)
	for _, e := range evaluators {
		if len(e.MatchingResources(names)) > 0 {
			resources = append(resources, e.GroupResource())
		}
	}
	if !c.monitors.overdue(resources) {
		return
	}
	if c.memory.told(key, namesOf(unknown)) && c.recorder != nil {
		c.recorder.Event(q, v1.EventTypeWarning, usageUnknownReason, usageUnknown(unknown))
	}
}

// noteDrift tells by a metric what a periodic recount has found that no event had led to.
func (c *Controller) noteDrift(ctx context.Context, q *v1.ResourceQuota, why reason, found difference) {
	if why != recount {
		return
	}
	c.metrics.recounts.Inc()
	for _, name := range found.changed {
		c.metrics.drift.WithLabelValues(string(name)).Inc()
	}
	if len(found.changed) > 0 {
		klog.FromContext(ctx).Info("A recount found another usage than the quota's status", "quota", klog.KObj(q), "names", found.changed)
	}
}
