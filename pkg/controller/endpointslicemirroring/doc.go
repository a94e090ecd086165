// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslicemirroring mirrors Endpoints that somebody keeps by hand, for a Service
// without a selector, to EndpointSlices.
//
// It watches Endpoints, Services and EndpointSlices, and writes EndpointSlices: those whose label
// managed-by is endpointslicemirroring-controller.k8s.io and whose owner is the Endpoints object.
// It records events on Endpoints as endpoint-slice-mirroring-controller.
//
// Mirrored are Endpoints whose Service is there and has no selector, unless they say not to
// (skip-mirror) or are a lock of an old leader election. The slices of others are deleted.
//
// A group is what becomes one slice: the addresses of one family that lead to the same ports.
// Subsets are packed first, so that what the same port leads to is in one place, and an address
// that is not ready anywhere is not ready. Of each packed subset only so many addresses are
// mirrored, ready ones first; an event says how many are left out, and how many are no IP addresses.
//
// A plan (plan.go) reuses slices: the first slice of a group is updated unless it is right, others
// are deleted; a slice whose group is gone takes a new group of its family. Labels and annotations
// are those of the Endpoints, but for what only makes sense there.
//
// Invariants: those of package util/endpointslice. With a batch period, the first change of
// Endpoints is mirrored at once, and those of the period after it together.
//
// Where upstream differs:
//   - With batching, the first change waits for a whole period, too.
//   - Slices that a manager left behind that was not there when their Endpoints ceased to be
//     mirrored are found here through the first list, there only if their event is late enough.
//   - A slice that an edited label takes away blocks its Endpoints until the retries are used up.
//   - Ports that have the same application protocol in different subsets are not put together.
package endpointslicemirroring
