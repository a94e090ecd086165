// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestNumEndpointsAndSlices(t *testing.T) {
	collectors := newCollectors()
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(collectors.EndpointsDesired, collectors.NumEndpointSlices, collectors.DesiredEndpointSlices)
	c := NewCache(collectors, 100)
	want := func(when string, endpoints, slices, desired float64) {
		t.Helper()
		for what, is := range map[*k8smetrics.GaugeVec]float64{
			collectors.EndpointsDesired: endpoints, collectors.NumEndpointSlices: slices, collectors.DesiredEndpointSlices: desired,
		} {
			if got, err := testutil.GetGaugeMetricValue(what.WithLabelValues()); err != nil || got != is {
				t.Errorf("%s: %s is %v (%v), want %v", when, what.FQName(), got, err, is)
			}
		}
	}
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	c.Update(a, Sizes{45, 250})
	want("two groups", 295, 2, 4)
	c.Update(b, Sizes{1, 1, 1})
	want("more", 298, 5, 7)
	c.Update(a, Sizes{})
	want("nothing mirrored of one", 3, 3, 3)
	c.Update(a, Sizes{100})
	c.Delete(b)
	c.Delete(b)
	want("one deleted, twice", 100, 1, 1)
}
