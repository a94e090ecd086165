// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const metricsSubsystem = "statefulset_controller"

// collectors are upstream's metrics of this controller, under upstream's names.
type collectors struct {
	staleSyncSkips *metrics.CounterVec
	maxUnavailable *metrics.GaugeVec
	unavailable    *metrics.GaugeVec
}

// registeredCollectors returns the process's collectors: a registry takes each name
// once, and several controllers in one process share them.
var registeredCollectors = sync.OnceValue(func() *collectors {
	c := newCollectors()
	// The process may hold upstream's own of that name; ours then count unseen.
	_ = legacyregistry.Register(c.staleSyncSkips)
	_ = legacyregistry.Register(c.maxUnavailable)
	_ = legacyregistry.Register(c.unavailable)
	return c
})

func newCollectors() *collectors {
	gauge := func(name, help string) *metrics.GaugeVec {
		return metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem: metricsSubsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
		}, []string{"statefulset_namespace", "statefulset_name", "pod_management_policy"})
	}
	return &collectors{
		staleSyncSkips: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem:      metricsSubsystem,
			Name:           "stale_sync_skips_total",
			Help:           "Total number of StatefulSet syncs skipped due to a stale watch cache.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"group", "resource"}),
		maxUnavailable: gauge("statefulset_max_unavailable", "Maximum number of unavailable pods allowed during StatefulSet rolling updates."),
		unavailable:    gauge("statefulset_unavailable_replicas", "Current number of unavailable pods in a StatefulSet."),
	}
}

// forget drops what is shown of a set that is gone, under either policy.
func (c *collectors) forget(namespace, name string) {
	labels := map[string]string{"statefulset_namespace": namespace, "statefulset_name": name}
	c.maxUnavailable.DeletePartialMatch(labels)
	c.unavailable.DeletePartialMatch(labels)
}
