// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strconv"
	"sync"

	clientcache "k8s.io/client-go/tools/cache"
)

// Metrics receive what one informer measures all the time; what is asked for rarely is in its Status.
type Metrics struct {
	latency clientcache.HistogramMetric
	queued  *queuedGauge
	version clientcache.GaugeMetric
}

// NewMetrics returns the metrics of client-go's informers, under their names, for the informer of
// this identity; nil without a provider or when the identity is not reserved, since client-go's
// metrics are one per name and resource.
func NewMetrics(provider clientcache.InformerMetricsProvider, id clientcache.InformerNameAndResource) *Metrics {
	if provider == nil || !id.Reserved() {
		return nil
	}
	return &Metrics{
		latency: provider.NewProcessingLatencyMetric(id),
		queued:  &queuedGauge{gauge: provider.NewQueuedItemMetric(id)},
		version: provider.NewStoreResourceVersionMetric(id),
	}
}

// reached shows the version of the store.
func (m *Metrics) reached(version string) {
	if m == nil {
		return
	}
	// A gauge is a float, which is exact up to 15 digits.
	if digits := len(version); digits > 15 {
		version = version[digits-15:]
	}
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		m.version.Set(float64(n))
	}
}

// queuedGauge sums what waits for all handlers of an informer.
type queuedGauge struct {
	gauge clientcache.GaugeMetric

	// mu guards the following field.
	mu    sync.Mutex
	total int
}

func (g *queuedGauge) add(n int) {
	if n == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total += n
	g.gauge.Set(float64(g.total))
}
