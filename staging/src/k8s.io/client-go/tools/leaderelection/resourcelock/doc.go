// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcelock keeps the record that candidates of an election compete for.
//
// The record lives in the spec of a coordination.k8s.io/v1 Lease. A lock has no state of its own: each answer of the
// API server is handed out as an [Observation], and a write names the Observation that it builds on. The API server
// refuses the write when the Lease has changed since, so two candidates that saw the same record cannot both win.
//
// Locks on Endpoints and ConfigMaps were retired in Kubernetes 1.28; [New] refuses them by name.
package resourcelock
