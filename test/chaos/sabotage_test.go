// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/sabotage"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// TestPlantedBugs shows that the suite would tell of a manager that creates a pod twice or forgets to delete one.
func TestPlantedBugs(t *testing.T) {
	th := newTheatre(t)
	double, err := sabotage.DoubleCreate("replicaset-scale-double", th.Config())
	if err != nil {
		t.Fatal(err)
	}
	th.Timeout = 20 * time.Second
	tests := []struct {
		name, namespace string
		rule            faultproxy.Rule
		want            string
	}{
		{"a pod created twice", "replicaset-scale-double", double, "managers have created"},
		{"a deletion that is forgotten", "replicaset-scale-lost", sabotage.LostDelete("replicaset-scale-lost"), "last seen"},
	}
	i := slices.IndexFunc(chosen(t, th, "replicaset-scale"), func(s scenarios.Scenario) bool { return s.Name == "replicaset-scale" })
	s := chosen(t, th, "replicaset-scale")[i]
	want := th.reference(t, s)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			th.proxy.Add(tt.rule)
			got, err := th.play(t.Context(), s, tt.namespace, want)
			if err == nil {
				err = got.check(want, 0)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("with the bug the scenario ends with %v, want %q", err, tt.want)
			}
		})
	}
}
