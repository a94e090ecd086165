// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// staleRetry is when to look again after a cache that had not seen the owner's last write. Mostly
// the event of that very write enqueues the owner before.
const staleRetry = 100 * time.Millisecond

// EnsureReady asks the worker to come back later while a cache is older than the owner's own writes,
// and counts that in skips, by group and resource. It is to be called before the first read of a
// sync: only what is read after it has seen the writes.
func EnsureReady(ctx context.Context, guard *consistency.Guard, owner types.NamespacedName, skips *metrics.CounterVec) error {
	err := guard.EnsureReady(owner)
	var stale *consistency.StaleError
	if !errors.As(err, &stale) {
		return err
	}
	skips.WithLabelValues(stale.GroupResource.Group, stale.GroupResource.Resource).Inc()
	klog.FromContext(ctx).V(4).Info("Waiting for the cache to show the last write", "reason", stale.Error())
	return worker.RequeueAfter(staleRetry)
}
