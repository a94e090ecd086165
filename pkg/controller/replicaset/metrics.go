// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const metricsSubsystem = "replicaset_controller"

// collectors are upstream's metrics of this controller, under upstream's names.
type collectors struct {
	deletionAgeRatio *metrics.Histogram
	staleSyncSkips   *metrics.CounterVec
}

// registeredCollectors returns the process's collectors: a registry takes each name
// once, and several controllers in one process share them.
var registeredCollectors = sync.OnceValue(func() *collectors {
	c := newCollectors()
	// The process may hold upstream's own of that name; ours then count unseen.
	_ = legacyregistry.Register(c.deletionAgeRatio)
	_ = legacyregistry.Register(c.staleSyncSkips)
	return c
})

func newCollectors() *collectors {
	return &collectors{
		deletionAgeRatio: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem:      metricsSubsystem,
			Name:           "sorting_deletion_age_ratio",
			Help:           "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should be <2. The intent of this metric is to measure the rough efficacy of the sorting (and deletion) of pods when a replicaset scales down. This only considers Ready pods when calculating and reporting.",
			Buckets:        metrics.ExponentialBuckets(0.25, 2, 6),
			StabilityLevel: metrics.ALPHA,
		}),
		staleSyncSkips: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem:      metricsSubsystem,
			Name:           "stale_sync_skips_total",
			Help:           "Total number of ReplicaSet syncs skipped due to a stale watch cache.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"group", "resource"}),
	}
}
