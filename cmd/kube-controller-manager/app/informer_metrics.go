// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"
	"time"

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// informerMetric is a metric of each informer, read from its status when it is scraped: it costs
// nothing while events flow.
type informerMetric struct {
	desc  *k8smetrics.Desc
	kind  k8smetrics.ValueType
	value func(s cache.Status, now time.Time) float64
}

func newInformerMetric(name, help string, kind k8smetrics.ValueType, value func(s cache.Status, now time.Time) float64) informerMetric {
	return informerMetric{
		desc:  k8smetrics.NewDesc("kcm_informer_"+name, help, []string{"name", "resource"}, nil, k8smetrics.ALPHA, ""),
		kind:  kind,
		value: value,
	}
}

// informerCollector reports the informers of all managers of the process.
type informerCollector struct {
	k8smetrics.BaseStableCollector
	metrics []informerMetric
	lists   *k8smetrics.Desc

	// mu guards the following field.
	mu    sync.Mutex
	views map[*informerView]string // the managers' names
}

// collectInformers returns the process's collector, which it registers the first time.
var collectInformers = sync.OnceValue(func() *informerCollector {
	c := newInformerCollector()
	legacyregistry.CustomMustRegister(c)
	return c
})

func newInformerCollector() *informerCollector {
	gauge, counter := k8smetrics.GaugeValue, k8smetrics.CounterValue
	return &informerCollector{
		views: map[*informerView]string{},
		metrics: []informerMetric{
			newInformerMetric("objects", "Number of objects in the cache.", gauge,
				func(s cache.Status, _ time.Time) float64 { return float64(s.Objects) }),
			newInformerMetric("bytes", "About how many bytes of memory the cached objects take.", gauge,
				func(s cache.Status, _ time.Time) float64 { return float64(s.Bytes) }),
			newInformerMetric("events_total", "Number of events that watches have brought, bookmarks included.", counter,
				func(s cache.Status, _ time.Time) float64 { return float64(s.Events) }),
			newInformerMetric("watches_total", "Number of watches that were opened.", counter,
				func(s cache.Status, _ time.Time) float64 { return float64(s.Watches) }),
			newInformerMetric("watching", "1 while a watch is open.", gauge,
				func(s cache.Status, _ time.Time) float64 {
					if s.Watching == nil {
						return 0
					}
					return 1
				}),
			newInformerMetric("silence_seconds", "For how long nothing has come from the API server.", gauge,
				func(s cache.Status, now time.Time) float64 {
					if s.LastSign == nil {
						return 0
					}
					return now.Sub(*s.LastSign).Seconds()
				}),
		},
		lists: k8smetrics.NewDesc("kcm_informer_lists_total", "How often all objects were listed, and why.",
			[]string{"name", "resource", "reason"}, nil, k8smetrics.ALPHA, ""),
	}
}

func (c *informerCollector) add(v *informerView, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[v] = name
}

func (c *informerCollector) remove(v *informerView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.views, v)
}

// DescribeWithStability implements StableCollector.
func (c *informerCollector) DescribeWithStability(ch chan<- *k8smetrics.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
	ch <- c.lists
}

// CollectWithStability implements StableCollector.
func (c *informerCollector) CollectWithStability(ch chan<- k8smetrics.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for v, name := range c.views {
		typed, metadata := v.statuses()
		for _, s := range append(typed, metadata...) {
			for _, m := range c.metrics {
				ch <- k8smetrics.NewLazyConstMetric(m.desc, m.kind, m.value(s, now), name, s.Resource)
			}
			for reason, n := range s.Lists {
				ch <- k8smetrics.NewLazyConstMetric(c.lists, k8smetrics.CounterValue, float64(n), name, s.Resource, reason)
			}
		}
	}
}
