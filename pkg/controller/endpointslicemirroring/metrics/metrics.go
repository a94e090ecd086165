// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the endpointslice-mirroring-controller mirrors, under upstream's names.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "endpoint_slice_mirroring_controller"

// Collectors are the metrics of the controllers in this process. Those without labels are vectors,
// too, as upstream's are: they appear with their first value.
type Collectors struct {
	EndpointsAddedPerSync   *metrics.HistogramVec
	EndpointsUpdatedPerSync *metrics.HistogramVec
	EndpointsRemovedPerSync *metrics.HistogramVec
	AddressesSkippedPerSync *metrics.HistogramVec
	EndpointsSyncDuration   *metrics.HistogramVec
	EndpointsDesired        *metrics.GaugeVec
	NumEndpointSlices       *metrics.GaugeVec
	DesiredEndpointSlices   *metrics.GaugeVec
	// EndpointSliceChanges counts by operation: create, update or delete.
	EndpointSliceChanges *metrics.CounterVec
}

// Registered registers the metrics with the process's registry the first time it is called.
var Registered = sync.OnceValue(func() *Collectors {
	c := newCollectors()
	legacyregistry.MustRegister(c.EndpointsAddedPerSync, c.EndpointsUpdatedPerSync, c.EndpointsRemovedPerSync,
		c.AddressesSkippedPerSync, c.EndpointsSyncDuration, c.EndpointsDesired, c.NumEndpointSlices,
		c.DesiredEndpointSlices, c.EndpointSliceChanges)
	return c
})

func newCollectors() *Collectors {
	counts, seconds := metrics.ExponentialBuckets(2, 2, 15), metrics.ExponentialBuckets(0.001, 2, 15)
	return &Collectors{
		EndpointsAddedPerSync:   histogram("endpoints_added_per_sync", "Number of endpoints added on each Endpoints sync", counts),
		EndpointsUpdatedPerSync: histogram("endpoints_updated_per_sync", "Number of endpoints updated on each Endpoints sync", counts),
		EndpointsRemovedPerSync: histogram("endpoints_removed_per_sync", "Number of endpoints removed on each Endpoints sync", counts),
		AddressesSkippedPerSync: histogram("addresses_skipped_per_sync", "Number of addresses skipped on each Endpoints sync due to being invalid or exceeding MaxEndpointsPerSubset", counts),
		EndpointsSyncDuration:   histogram("endpoints_sync_duration", "Duration of syncEndpoints() in seconds", seconds),
		EndpointsDesired:        gauge("endpoints_desired", "Number of endpoints desired"),
		NumEndpointSlices:       gauge("num_endpoint_slices", "Number of EndpointSlices"),
		DesiredEndpointSlices:   gauge("desired_endpoint_slices", "Number of EndpointSlices that would exist with perfect endpoint allocation"),
		EndpointSliceChanges: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "changes", Help: "Number of EndpointSlice changes", StabilityLevel: metrics.ALPHA,
		}, []string{"operation"}),
	}
}

func histogram(name, help string, buckets []float64) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}, []string{})
}

func gauge(name, help string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, []string{})
}
