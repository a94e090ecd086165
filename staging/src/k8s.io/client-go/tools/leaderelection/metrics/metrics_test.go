// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	// Holds the names before this package asks for them.
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	"k8s.io/component-base/metrics/testutil"
)

// Also in a process that has metrics of these names already, what is counted can be seen.
func TestLegacy(t *testing.T) {
	m := Legacy()
	m.(*leaderMetric).master.Reset()
	m.(*leaderMetric).slowpath.Reset()
	m.Off("standby")
	m.On("leader")
	m.SlowpathExercised("leader")
	Legacy().SlowpathExercised("leader")
	want := `
# HELP leader_election_master_status [ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.
# TYPE leader_election_master_status gauge
leader_election_master_status{name="leader"} 1
leader_election_master_status{name="standby"} 0
# HELP leader_election_slowpath_total [ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.
# TYPE leader_election_slowpath_total counter
leader_election_slowpath_total{name="leader"} 2
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "leader_election_master_status", "leader_election_slowpath_total"); err != nil {
		t.Error(err)
	}
}
