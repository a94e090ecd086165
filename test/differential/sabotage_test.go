// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package differential

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/sabotage"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// TestPlantedBugs shows that the suite would tell of bugs: our manager works behind a proxy that plants one, and the
// scenario must differ, in the way that belongs to the bug.
func TestPlantedBugs(t *testing.T) {
	b, err := suite.binaries()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := suite.start("kcm with bugs", b.ours, nil, []faultproxy.Rule{})
	if err != nil {
		t.Fatal(err)
	}
	ours.Timeout = 10 * time.Second // it will not get there
	double, err := sabotage.DoubleCreate("bug-replicaset-create", ours.Config())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		scenario string
		rule     faultproxy.Rule
		// want is in the report.
		want string
	}{
		{"a wrong hash", "deployment-create", sabotage.WrongHash("bug-deployment-create"), "only in the second: ReplicaSet web-"},
		{"a pod created twice", "replicaset-create", double, "Deleted pod: web-<x>"},
		{"a deletion that is forgotten", "rc-scale", sabotage.LostDelete("bug-rc-scale"), "last seen: there are 5"},
	}
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := LoadAccepted()
	if err != nil {
		t.Fatal(err)
	}
	pair := &Pair{Upstream: suite.pair(t, nil).Upstream, Ours: ours}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ours.Proxy.Add(tt.rule)
			ctx, cancel := context.WithTimeout(t.Context(), scenarioTimeout)
			defer cancel()
			err := pair.Play(ctx, find(t, all, tt.scenario), "bug-"+tt.scenario, accepted)
			var difference *Difference
			switch {
			case !errors.As(err, &difference):
				t.Errorf("with the bug the scenario ends with %v, want a difference", err)
			case !strings.Contains(difference.Text, tt.want):
				t.Errorf("the difference does not show the bug, want %q in it:\n%v", tt.want, difference)
			}
		})
	}
}

func find(t *testing.T, all []scenarios.Scenario, name string) scenarios.Scenario {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return scenarios.Scenario{}
}
