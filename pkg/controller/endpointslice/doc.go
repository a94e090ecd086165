// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslice keeps the EndpointSlices of Services that have a selector.
//
// It watches Services, Pods, Nodes and EndpointSlices, and writes EndpointSlices: those whose label
// managed-by is endpointslice-controller.k8s.io and whose owner is the Service. It records events
// on Services as endpoint-slice-controller. Which endpoint goes into which slice, the hints of
// topology and traffic distribution, and most metrics are those of the library k8s.io/endpointslice.
//
// Workers: services syncs a Service; pods looks up the Services that a Pod's event concerns; nodes
// those of a node that appeared or moved to another zone, and sees to the share of CPU that each
// zone has, on which hints depend. Nothing walks a namespace: Services are found by their selectors
// and Pods by their labels (selectorindex), slices by their Service (util/endpointslice).
//
// Batching: with --endpointslice-updates-batch-period the first change of a Service's Pods goes out
// at once, and those of the period after it together. Slices that somebody else has changed or
// deleted are repaired after a second, or a batch period if that is longer.
//
// Invariants: those of package util/endpointslice, through which the library's reconciler writes
// (sliceClient): it gives its requests no context and no preconditions.
//
// Where upstream differs:
//   - With batching, the first change waits for a whole period, too.
//   - A slice that was deleted by hand is noticed only if it was written since the start; one that
//     an edited label takes away blocks its Service until the retries are used up.
//   - A Pod on a node that is not known is retried with back-off, 15 times. Here the node's arrival
//     brings it in. An endpoint's zone follows its node's only with the next change of the Service.
//   - A Pod that finishes without ever having been ready stays until the next change of the Service.
//   - A conflict is recorded as an event and retried after back-off, as any error; here it counts as
//     a stale cache. Events of Pods that are already in deletion cause syncs that change nothing.
package endpointslice
