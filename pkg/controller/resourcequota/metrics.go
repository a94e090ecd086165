// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"sync"

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// metrics are all ours: upstream's controller has none.
type metrics struct {
	unsynced *k8smetrics.GaugeVec
	drift    *k8smetrics.CounterVec
	recounts *k8smetrics.Counter
}

// registeredMetrics registers the metrics the first time it is called.
var registeredMetrics = sync.OnceValue(func() *metrics {
	m := &metrics{
		unsynced: k8smetrics.NewGaugeVec(&k8smetrics.GaugeOpts{
			Subsystem:      "resourcequota_controller",
			Name:           "resource_unsynced",
			Help:           "1 for each resource whose objects could not be listed yet; quotas that do not name it are counted all the same.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"group", "version", "resource"}),
		drift: k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
			Subsystem:      "resourcequota_controller",
			Name:           "drift_total",
			Help:           "Number of times that a periodic recount found another usage than the quota's status, by the resource name of the quota.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"name"}),
		recounts: k8smetrics.NewCounter(&k8smetrics.CounterOpts{
			Subsystem:      "resourcequota_controller",
			Name:           "recounts_total",
			Help:           "Number of periodic recounts of a quota that were compared with its status.",
			StabilityLevel: k8smetrics.ALPHA,
		}),
	}
	legacyregistry.MustRegister(m.unsynced, m.drift, m.recounts)
	return m
})
