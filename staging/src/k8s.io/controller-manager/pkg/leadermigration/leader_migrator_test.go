// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leadermigration

import (
	"testing"

	"k8s.io/controller-manager/config/v1alpha1"
)

func TestFilterFunc(t *testing.T) {
	c := &v1alpha1.LeaderMigrationConfiguration{ControllerLeaders: []v1alpha1.ControllerLeaderConfiguration{
		{Name: "route-controller", Component: "*"},
		{Name: "service-controller", Component: "kube-controller-manager"},
		{Name: "cloud-node-lifecycle-controller", Component: "cloud-controller-manager"},
	}}
	for _, tc := range []struct {
		component, controller string
		want                  FilterResult
	}{
		{"kube-controller-manager", "route-controller", ControllerMigrated},
		{"kube-controller-manager", "service-controller", ControllerMigrated},
		{"kube-controller-manager", "cloud-node-lifecycle-controller", ControllerUnowned},
		{"kube-controller-manager", "job-controller", ControllerNonMigrated},
		{"cloud-controller-manager", "route-controller", ControllerMigrated},
		{"cloud-controller-manager", "service-controller", ControllerUnowned},
		{"cloud-controller-manager", "cloud-node-lifecycle-controller", ControllerMigrated},
	} {
		m := NewLeaderMigrator(c, tc.component)
		if got := m.FilterFunc(tc.controller); got != tc.want {
			t.Errorf("%s of %s: %v, want %v", tc.controller, tc.component, got, tc.want)
		}
		select {
		case <-m.MigrationReady:
			t.Error("ready from the start")
		default:
		}
	}
}

func TestEnabled(t *testing.T) {
	for _, want := range []bool{true, false} {
		if got := Enabled(&v1alpha1.GenericControllerManagerConfiguration{LeaderMigrationEnabled: want}); got != want {
			t.Errorf("Enabled = %v, want %v", got, want)
		}
	}
}
