// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslice is what controllers that keep EndpointSlices share: an index of slices by
// their Service, the events that call for a repair, and writes that are read back.
//
// A Slices belongs to one controller, whose slices carry its name in the label managed-by. Owner
// names the object that the slices are kept for, by the name in their label service-name: a
// Service, or Endpoints of that name.
//
// Invariants. Slices are written under the resourceVersion that the decision was made on, and
// deleted under their UID; a deletion that finds nothing has succeeded. No sync decides on a cache
// that does not show the owner's last writes, and a slice whose deletion was requested is not in
// what Of returns. The event of an own write enqueues nothing, unless a sync waits for it.
package endpointslice
