// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is what the suites that compare controller managers (benchmark, differential, chaos, swap) share: a
// control plane of their own, fake nodes, any number of managers of any binary, one after the other or side by side,
// and the count of what each asked of the API server.
//
// It is not for the tests of one controller: those use test/integration/framework, which shares one control plane per
// test package and runs our manager only. Nothing here needs package testing, so that commands can use it, too.
//
// Concurrency: a Cluster may be used from many goroutines. Stop ends everything that Start and the other methods have
// started, and returns when it has ended.
package cluster
