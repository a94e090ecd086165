// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios holds what is measured, a file each. Package benchmark says how to add one.
package scenarios

import "github.com/kcm-dev/kcm/test/benchmark"

// All returns all scenarios in the order of the report.
func All() []benchmark.Scenario {
	return []benchmark.Scenario{
		coldStart(),
		atRest(),
		scaleUp(),
		rollOut(),
		endpoints(),
		statefulSet(),
		daemonSet(),
		jobs("jobs", 10),
		jobs("jobs-in-turn", 1),
		namespaceDeletion(),
		cascade("background"),
		cascade("foreground"),
		cascade("orphan"),
		graphMemory(),
		failOver("term"),
		failOver("kill"),
	}
}
