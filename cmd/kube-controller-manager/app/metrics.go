// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

// managerName is this program's name where several controller managers report side by side.
const managerName = "kube-controller-manager"

// managerMetrics are the manager's own metrics. Two managers in one process share them, as they
// share the registry.
type managerMetrics struct {
	running  *controllersmetrics.ControllerManagerMetrics
	restarts *k8smetrics.CounterVec
}

// registerMetrics registers the manager's metrics the first time it is called, and returns the
// same ones each time: the registry is one per process.
var registerMetrics = sync.OnceValue(func() *managerMetrics {
	controllersmetrics.Register()
	m := &managerMetrics{
		running: controllersmetrics.NewControllerManagerMetrics(managerName),
		restarts: k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
			Name:           "controller_restarts_total",
			Help:           "How often a controller was built anew because it panicked or returned early.",
			StabilityLevel: k8smetrics.ALPHA,
		}, []string{"name", "manager"}),
	}
	legacyregistry.MustRegister(m.restarts)
	return m
})

func (m *managerMetrics) restarted(name string) {
	m.restarts.WithLabelValues(name, managerName).Inc()
}
