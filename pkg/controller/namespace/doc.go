// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace runs the namespace-controller: it empties namespaces that are being deleted and
// lets them go.
//
// It watches namespaces. A namespace with a deletionTimestamp and our finalizer in spec.finalizers
// is given to package deletion for a round; that package writes the conditions, deletes the content
// and removes the finalizer. This package decides when the next round is: by time in plan.go, by what
// the caches of other controllers show in drains.go.
//
// # Invariants
//
//   - The first round that may let a namespace go begins five seconds after the deletion was seen.
//     Other API servers and etcd members may, for that long, still admit objects into the namespace.
//   - A namespace is retried for as long as it is terminating, with back-off up to a minute after
//     failures.
//
// # Differences from upstream
//
//   - Where the process has caches of the namespace's content, anyway, for the garbage collector, the
//     content is deleted during those five seconds already (deletion.HeadStart), and a namespace that
//     waits for its last objects is looked at when the caches show that they are gone. Upstream does
//     nothing for five seconds, and then looks at intervals.
//   - The wait while content goes away grows from a second to upstream's half of the estimate, in
//     proportion to how long the deletion has taken: pods that stop at once do not cost half of
//     their grace period. Upstream is woken by its own status update instead, five seconds later.
//   - Status updates, by us or anybody, start no round.
//   - The constructor does no discovery, and nothing ends the process.
package namespace
