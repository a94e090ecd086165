// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// registeredDeletionDuration returns the process's collector of upstream's metric, under
// upstream's name: a registry takes it once, and several controllers in one process share it.
var registeredDeletionDuration = sync.OnceValue(func() *metrics.Histogram {
	h := newDeletionDuration()
	legacyregistry.MustRegister(h)
	return h
})

func newDeletionDuration() *metrics.Histogram {
	return metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      "ttl_after_finished_controller",
		Name:           "job_deletion_duration_seconds",
		Help:           "The time it took to delete the job since it became eligible for deletion",
		Buckets:        metrics.ExponentialBuckets(0.1, 2, 14),
		StabilityLevel: metrics.ALPHA,
	})
}
