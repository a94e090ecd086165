// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package benchmark measures two controller managers side by side: upstream's binary and ours, on the same machine, in
// the same run, in turn. hack/benchmark.sh is its command, docs/benchmarks.md shows the last full run.
//
// Each run of a scenario has a fresh control plane (etcd and kube-apiserver), its seed, its fake nodes and one manager
// that runs just the scenario's controllers. A round is upstream, then ours. Everything is told as a ratio to upstream
// within a round, so that a machine that is busy for a while shows as spread and not as a result.
//
// Modes: "equal" gives both the same flags, with a client rate limit that neither meets in normal work;
// "defaults" gives both none, so that each has its own (upstream: 20 requests a second per controller).
//
// # Adding a scenario
//
// One file in test/benchmark/scenarios, named as the scenario, with a function that returns a Scenario, and that
// function's line in All of scenarios.go:
//
//	func scaleUp() benchmark.Scenario {
//		return benchmark.Scenario{
//			Name:        "scale-up",
//			Title:       "a Deployment from 0 to 500 pods, all ready",
//			Controllers: []string{names.DeploymentController, names.ReplicaSetController},
//			Nodes:       10, // played by fakekubelet: pods are bound and become Ready
//			Seed: func(ctx context.Context, e *benchmark.Env) error { … },
//			Run: func(ctx context.Context, e *benchmark.Env) error {
//				return e.Measure(ctx, "", func(ctx context.Context) error {
//					// change something, then wait for the end state
//					return e.Wait(ctx, "500 ready pods", func(ctx context.Context) (bool, error) { … })
//				})
//			},
//		}
//	}
//
// Seed runs before the manager starts, Warm once it leads (wait there until the seed is settled), Run then. Only what
// happens inside Env.Measure counts; a scenario may measure several phases with names of their own. A scenario that
// starts and ends managers itself (cold start, fail-over) sets OwnManagers and calls Env.StartManager.
//
// Conditions should look at Env.Informers (ask for the lister in Seed, then Env.Sync), not list thousands of objects
// over and over: the API server shares two cores with what is measured. Numbers of objects go through Env.N, which
// --scale shrinks: hack/benchmark.sh --rounds 1 --scale 0.05 my-scenario tries a scenario out in seconds.
//
// A binary that lacks a controller of the scenario is an error before anything starts.
//
// # What is measured
//
// For each phase: wall time; CPU of the manager (user and system, /proc); resident memory at the end of the phase and
// its peak since the start (VmHWM); what of it is private to the process (RssAnon), without the pages of the program's
// file, which the page cache shares and takes back; the Go heap in use (from /metrics); and the requests of the manager by verb and
// resource, from the API server's audit log, without the election's. A scenario may tell Env.Observe how long something
// that it watches takes; the 99th percentile is its lag.
package benchmark
