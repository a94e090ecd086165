// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// metrics of all workers; upstream has no counterpart of them.
type metrics struct {
	syncErrors *k8smetrics.CounterVec
	panics     *k8smetrics.CounterVec
	handlers   *k8smetrics.HistogramVec
}

// registeredMetrics registers the metrics with the process's registry the first time it is called:
// never in init, since a process that links this package need not run a controller.
var registeredMetrics = sync.OnceValue(func() *metrics {
	m := &metrics{
		syncErrors: k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
			Subsystem:      "controller_worker",
			Name:           "sync_errors_total",
			Help:           "Syncs that failed, by controller.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"controller"}),
		panics: k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
			Subsystem:      "controller_worker",
			Name:           "panics_total",
			Help:           "Panics that were caught while one key was synced, by controller.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"controller"}),
		handlers: k8smetrics.NewHistogramVec(&k8smetrics.HistogramOpts{
			Subsystem:      "controller_worker",
			Name:           "event_handler_duration_seconds",
			Help:           "Time that a controller's event handler took for one event.",
			Buckets:        k8smetrics.ExponentialBuckets(0.000001, 10, 7),
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"controller"}),
	}
	legacyregistry.MustRegister(m.syncErrors, m.panics, m.handlers)
	return m
})
