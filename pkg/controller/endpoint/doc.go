// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint keeps the Endpoints of Services that have a selector, for what does not read
// EndpointSlices yet.
//
// It watches Services, Pods and Endpoints, and writes Endpoints: each has its Service's name and,
// with a label each for the controller and for headless Services, its Service's labels. It records
// events on Endpoints as endpoint-controller.
//
// Subsets hold one address for each Pod, of the Service's first family; they are packed and sorted
// in one canonical way, so that what means the same looks the same. Beyond a thousand addresses
// some are left out, those that are not ready first, and an annotation says so.
//
// Workers: services syncs a Service; pods looks up the Services that a Pod's event concerns. Both
// Services and Pods are found through indexes (package selectorindex). At the start all Endpoints
// are looked at once, since the Service of some may be gone, but for those that an old leader
// election holds its lock in.
//
// Invariants. No sync decides on a cache that does not show the last write of its Service. Endpoints
// are updated under their resourceVersion and deleted under their UID. Nothing is written that
// changes nothing but an annotation's time.
//
// Where upstream differs:
//   - With --endpoint-updates-batch-period, the first change waits for a whole period, too.
//   - Endpoints over capacity are written in every sync.
//   - A conflict is recorded as an event and retried after back-off; here it counts as a stale cache.
//   - Endpoints of a Service that is gone are deleted whatever the cache shows, without a UID.
//   - Ports that have the same application protocol in different subsets are not put together.
package endpoint
