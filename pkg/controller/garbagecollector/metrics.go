// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"sync"

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

type metrics struct {
	// syncErrors is upstream's; unsynced is ours.
	syncErrors *k8smetrics.Counter
	unsynced   *k8smetrics.GaugeVec
}

// registeredMetrics registers the metrics the first time it is called.
var registeredMetrics = sync.OnceValue(func() *metrics {
	m := &metrics{
		syncErrors: k8smetrics.NewCounter(&k8smetrics.CounterOpts{
			Subsystem:      "garbagecollector_controller",
			Name:           "resources_sync_error_total",
			Help:           "Number of garbage collector resources sync errors",
			StabilityLevel: k8smetrics.ALPHA,
		}),
		unsynced: k8smetrics.NewGaugeVec(&k8smetrics.GaugeOpts{
			Subsystem:      "garbagecollector_controller",
			Name:           "resource_unsynced",
			Help:           "1 for each resource whose objects could not be listed yet; the others are collected all the same.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"group", "version", "resource"}),
	}
	legacyregistry.MustRegister(m.syncErrors, m.unsynced)
	return m
})
