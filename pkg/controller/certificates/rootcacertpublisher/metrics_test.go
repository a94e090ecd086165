// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcacertpublisher

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestSyncCounter(t *testing.T) {
	conflict := apierrors.NewConflict(v1.Resource("configmaps"), "x", errors.New("changed"))
	tests := map[string]struct {
		err  error
		code string
	}{
		"nil error":                   {nil, "200"},
		"kube api error":              {conflict, "409"},
		"kube api error, wrapped":     {fmt.Errorf("updating: %w", conflict), "409"},
		"kube api error without code": {&apierrors.StatusError{}, "500"},
		"general error":               {errors.New("test"), "500"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, registry := newMetrics(), k8smetrics.NewKubeRegistry()
			registry.MustRegister(m.syncs, m.durations)
			m.record(3*time.Millisecond, tc.err)
			want := fmt.Sprintf(`
# HELP root_ca_cert_publisher_sync_total [ALPHA] Number of namespace syncs happened in root ca cert publisher.
# TYPE root_ca_cert_publisher_sync_total counter
root_ca_cert_publisher_sync_total{code=%q} 1
`, tc.code)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "root_ca_cert_publisher_sync_total"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSyncDuration(t *testing.T) {
	m, registry := newMetrics(), k8smetrics.NewKubeRegistry()
	registry.MustRegister(m.syncs, m.durations)
	m.record(3*time.Millisecond, nil)
	var want strings.Builder
	want.WriteString(`
# HELP root_ca_cert_publisher_sync_duration_seconds [ALPHA] Number of namespace syncs happened in root ca cert publisher.
# TYPE root_ca_cert_publisher_sync_duration_seconds histogram
`)
	// 15 buckets that double, from a millisecond to 16.384 s, as in golden/metrics-after.txt.
	count := 0
	for _, bound := range []string{"0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064", "0.128", "0.256", "0.512", "1.024", "2.048", "4.096", "8.192", "16.384", "+Inf"} {
		if bound == "0.004" {
			count = 1
		}
		fmt.Fprintf(&want, "root_ca_cert_publisher_sync_duration_seconds_bucket{code=\"200\",le=%q} %d\n", bound, count)
	}
	want.WriteString("root_ca_cert_publisher_sync_duration_seconds_sum{code=\"200\"} 0.003\nroot_ca_cert_publisher_sync_duration_seconds_count{code=\"200\"} 1\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()), "root_ca_cert_publisher_sync_duration_seconds"); err != nil {
		t.Error(err)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	if first, second := registeredMetrics(), registeredMetrics(); first != second {
		t.Error("two sets of metrics for one process")
	}
}
