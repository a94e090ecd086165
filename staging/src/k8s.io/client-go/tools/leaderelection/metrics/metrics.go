// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts leader elections in component-base's legacy registry, under upstream's names:
// leader_election_master_status and leader_election_slowpath_total, both with the label name.
package metrics

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection"
)

// Legacy returns the metrics of leader elections in the legacy registry. Where the process holds metrics of these
// names already, because it links k8s.io/component-base/metrics/prometheus/clientgo, it returns those.
func Legacy() leaderelection.LeaderMetric { return legacy() }

var legacy = sync.OnceValue(func() *leaderMetric {
	return &leaderMetric{
		master: registered(metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name:           "leader_election_master_status",
			Help:           "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"name"})),
		slowpath: registered(metrics.NewCounterVec(&metrics.CounterOpts{
			Name:           "leader_election_slowpath_total",
			Help:           "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"name"})),
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

type leaderMetric struct {
	master   *metrics.GaugeVec
	slowpath *metrics.CounterVec
}

func (m *leaderMetric) On(name string)                { m.master.WithLabelValues(name).Set(1) }
func (m *leaderMetric) Off(name string)               { m.master.WithLabelValues(name).Set(0) }
func (m *leaderMetric) SlowpathExercised(name string) { m.slowpath.WithLabelValues(name).Inc() }
