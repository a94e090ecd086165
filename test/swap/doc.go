// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package swap shows that managers can be exchanged under a running cluster: upstream's, then ours, then upstream's again.
// The cluster is populated by scenarios of test/scenarios, under upstream's manager and then under ours. After each
// exchange the new manager must work, and write to nothing that was settled: no pod deleted, no object rewritten, no
// ReplicaSet and no ControllerRevision made anew.
package swap
