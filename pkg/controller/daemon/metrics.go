// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// collectors are upstream's metrics of this controller, under upstream's names.
type collectors struct {
	staleSyncSkips *metrics.CounterVec
}

// registeredCollectors returns the process's collectors: a registry takes each name once, and several
// controllers in one process share them.
var registeredCollectors = sync.OnceValue(func() *collectors {
	c := &collectors{staleSyncSkips: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "daemonset_controller",
		Name:           "stale_sync_skips_total",
		Help:           "Total number of DaemonSet syncs skipped due to a stale watch cache.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"group", "resource"})}
	// The process may hold upstream's own of that name; ours then count unseen.
	_ = legacyregistry.Register(c.staleSyncSkips)
	return c
})
