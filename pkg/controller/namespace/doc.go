// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace runs the namespace-controller: it empties namespaces that are being deleted and
// lets them go.
//
// It watches namespaces. A namespace with a deletionTimestamp and our finalizer in spec.finalizers
// is enqueued, five seconds later, and given to package deletion for a round; that package writes
// the conditions, deletes the content and removes the finalizer. This package decides when the next
// round is: plan.go.
//
// # Invariants
//
//   - The first round begins five seconds after the deletion was seen. Other API servers and etcd
//     members may, for that long, still admit objects into the namespace.
//   - A namespace is retried for as long as it is terminating, with back-off up to a minute after
//     failures.
//
// # Differences from upstream
//
//   - The wait while content goes away grows from a second to upstream's half of the estimate, in
//     proportion to how long the deletion has taken: pods that stop at once do not cost half of
//     their grace period. Upstream is woken by its own status
//     update instead, five seconds later.
//   - Status updates, by us or anybody, start no round.
//   - The constructor does no discovery, and nothing ends the process.
package namespace
