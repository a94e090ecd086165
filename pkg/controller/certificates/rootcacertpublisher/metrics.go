// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcacertpublisher

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// metrics are upstream's, by name, label and buckets.
type metrics struct {
	syncs     *k8smetrics.CounterVec
	durations *k8smetrics.HistogramVec
}

// registeredMetrics registers the metrics with the process's registry the first time it is called.
var registeredMetrics = sync.OnceValue(func() *metrics {
	m := newMetrics()
	legacyregistry.MustRegister(m.syncs, m.durations)
	return m
})

func newMetrics() *metrics {
	return &metrics{
		syncs: k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
			Subsystem:      "root_ca_cert_publisher",
			Name:           "sync_total",
			Help:           "Number of namespace syncs happened in root ca cert publisher.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"code"}),
		durations: k8smetrics.NewHistogramVec(&k8smetrics.HistogramOpts{
			Subsystem:      "root_ca_cert_publisher",
			Name:           "sync_duration_seconds",
			Help:           "Number of namespace syncs happened in root ca cert publisher.",
			StabilityLevel: k8smetrics.ALPHA,
			Buckets:        k8smetrics.ExponentialBuckets(0.001, 2, 15),
		}, []string{"code"}),
	}
}

// record counts one sync that took so long and ended with err.
func (m *metrics) record(took time.Duration, err error) {
	code := resultCode(err)
	m.syncs.WithLabelValues(code).Inc()
	m.durations.WithLabelValues(code).Observe(took.Seconds())
}

// resultCode is 200 for success, the API server's status code for its errors, else 500.
func resultCode(err error) string {
	if err == nil {
		return strconv.Itoa(http.StatusOK)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code != 0 {
		return strconv.Itoa(int(status.Status().Code))
	}
	return strconv.Itoa(http.StatusInternalServerError)
}
