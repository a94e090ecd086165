// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "kcm_client"

var (
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "requests_total",
		Help:           "Requests sent to the API server, by controller, API verb and HTTP status code; code is \"error\" where no answer came.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller", "verb", "code"})
	requestDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "request_duration_seconds",
		Help:           "Time from sending a request to the headers of its answer, watches and other streams not included.",
		Buckets:        []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller", "verb"})
	requestsInFlight = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "requests_in_flight",
		Help:           "Requests under way, watches and other streams not included.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})
	requestWindow = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "request_window",
		Help:           "Requests that may be under way at a time, as learned from the API server's answers.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})
	waitSeconds = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "wait_seconds_total",
		Help:           "Time that requests waited for room in the window.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})
	fencedWrites = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "fenced_writes_total",
		Help:           "Writes that were not sent because the process does not lead.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(requests, requestDuration, requestsInFlight, requestWindow, waitSeconds, fencedWrites)
	})
}

func waited(controller string, d time.Duration) {
	if d > time.Millisecond {
		waitSeconds.WithLabelValues(controller).Add(d.Seconds())
	}
}
