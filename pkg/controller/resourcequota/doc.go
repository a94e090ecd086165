// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcequota keeps the status of ResourceQuotas: what a namespace may use, and what it
// uses.
//
// It watches ResourceQuotas, and every namespaced resource that can be created, listed, watched and
// deleted (but events): typed where a controller reads them in full, else their metadata. It writes
// the status of ResourceQuotas and nothing else. The API server's admission charges for what is
// created; this controller counts anew when something goes or changes, when a quota is new or
// changed, and every --resource-quota-sync-period.
//
// Vocabulary. A resource name is a key of spec.hard, such as requests.cpu or count/jobs.batch. An
// evaluator (pkg/quota/v1) knows the names that a resource counts under, and how. A monitor is a
// watched resource; it is ready when its informer has listed it.
//
// Invariants.
//   - Nothing waits for all monitors. A name whose resources are all ready is counted at once; the
//     others keep the value that they had, and an event on the quota (UsageUnknown), a metric
//     (resource_unsynced) and the log say which resource cannot be listed and why.
//   - Events of monitors only queue the pair of resource and namespace: a thousand deletions lead to
//     few counts.
//   - A quota that has never been counted, or not for one of its names, goes before all others.
//   - A monitor comes and goes with its resource, and leaves no handler, evaluator or informer behind
//     (if the informer factory can release one).
//   - A failed discovery takes nothing away: the resources of an API that does not answer now are
//     counted on from the caches.
//   - A count that is lower than the status is not believed within a second of admission's last charge:
//     what was admitted is created after the charge, and seen by the cache later still. (Ten seconds at
//     most: where admission charges all the time, the second look has to do.)
//   - After a count has lowered a usage, the quota is counted once more two seconds later: what
//     admission has charged just before, and the cache did not show yet, is not lost until the next
//     resync.
//
// A recount of the resync that finds another value than the status is a drift, and a metric
// (drift_total) tells it.
//
// Where upstream differs:
//   - It counts nothing before all monitors have listed, so that one broken resource stops all quotas,
//     and pauses all counting while monitors change.
//   - A discovery that fails when the controller is built ends the manager; here it is tried again.
//   - It neither records events nor has metrics of its own.
package resourcequota
