// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics lets informers measure in component-base's legacy registry.
package metrics

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/clientgo/fifo"
)

// Legacy returns the provider of the metrics informer_queued_items, informer_processing_latency_seconds
// and informer_store_resource_version, with the labels name, group, version and resource. They are the
// same that client-go's informers in this process use.
func Legacy() clientcache.InformerMetricsProvider { return legacy() }

var labels = []string{"name", "group", "version", "resource"}

var legacy = sync.OnceValue(func() *provider {
	fifo.Register() // It insists on being the first to register these.
	return &provider{
		queued: registered(metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name:           "informer_queued_items",
			Help:           "Number of items currently queued in the FIFO.",
			StabilityLevel: metrics.ALPHA,
		}, labels)),
		latency: registered(metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name:           "informer_processing_latency_seconds",
			Help:           "Time taken to process events after popping from the queue.",
			Buckets:        []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			StabilityLevel: metrics.ALPHA,
		}, labels)),
		version: registered(metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name:           "informer_store_resource_version",
			Help:           "The 15 least significant digits of the resource version of the store.",
			StabilityLevel: metrics.ALPHA,
		}, labels)),
	}
})

// registered registers a metric, or finds the one that has its name.
func registered[M metrics.Registerable](metric M) M {
	var taken prometheus.AlreadyRegisteredError
	if err := legacyregistry.Register(metric); errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(M); ok {
			return existing
		}
	}
	return metric
}

type provider struct {
	queued, version *metrics.GaugeVec
	latency         *metrics.HistogramVec
}

func labelsOf(id clientcache.InformerNameAndResource) []string {
	resource := id.GroupVersionResource()
	return []string{id.Name(), resource.Group, resource.Version, resource.Resource}
}

func (p *provider) NewQueuedItemMetric(id clientcache.InformerNameAndResource) clientcache.GaugeMetric {
	return p.queued.WithLabelValues(labelsOf(id)...)
}

func (p *provider) NewProcessingLatencyMetric(id clientcache.InformerNameAndResource) clientcache.HistogramMetric {
	return p.latency.WithLabelValues(labelsOf(id)...)
}

func (p *provider) NewStoreResourceVersionMetric(id clientcache.InformerNameAndResource) clientcache.GaugeMetric {
	return p.version.WithLabelValues(labelsOf(id)...)
}
