// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package differential plays each scenario of test/scenarios on two control planes at the same time, one with
// upstream's manager and one with ours, and compares all that is in the API at each checkpoint: objects, Events and,
// where the scenario asks for it, the order of writes.
//
// What may differ is taken out first: UIDs, resource versions, times, what the API server makes up, and how many writes
// an object that a controller owns has had. A difference that is left and that a maintainer would accept is in
// accepted.yaml, with the reason. All others fail the test, with a diff by object.
//
// hack/differential.sh runs it: all scenarios, or those that are named. Both managers run all controllers that ours has
// and that are on by default, so that they are compared as whole programs.
package differential
