// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment is the Deployment controller: it brings the pods of a Deployment to its
// template and size by creating, scaling and deleting ReplicaSets.
//
// It watches Deployments, ReplicaSets and the deletion of Pods (a Recreate rollout waits for those).
// It writes ReplicaSets (create, update, delete, and the owner reference by patch), the status of
// Deployments, their spec only to answer the rollback annotation, and events on them.
//
// A round of one Deployment has four steps: gather takes a snapshot from the caches, claiming
// ReplicaSets; makePlan decides, purely; apply writes; makeReport, pure again, says what the status
// is after it. A round takes one step of a rollout and the events of its writes bring the next one.
//
// Vocabulary. The new ReplicaSet has the Deployment's template, all others of the family are old.
// Active means to want at least one pod. A revision numbers the templates in the order of their use.
// Saturated means that the new ReplicaSet has all the pods that are wanted.
//
// Invariants:
//   - No round is decided on caches that do not show the last one's writes (consistency.Guard).
//   - All that a round changes in one object is one write, which carries the version it was decided
//     on; so is the status. A round that changes nothing sends nothing.
//   - A step up never makes the ReplicaSets want more than spec.replicas + maxSurge pods; a step down
//     never takes an available pod below spec.replicas - maxUnavailable.
//   - Recreate creates no new pod while an old one may run.
//
// Where upstream's outcome was a fault, ours differs:
//   - A stale desired-replicas annotation on a ReplicaSet that has the right size is repaired; upstream
//     takes the Deployment for being scaled for ever (kubernetes/kubernetes#138036).
//   - The status of a ReplicaSet that was scaled down a moment ago counts pods that are about to go;
//     they are not taken for available ones.
//   - Recreate also waits for the ReplicaSet controller to have seen that an old ReplicaSet was
//     scaled down.
//   - A failure to scale an old ReplicaSet is retried, not only logged.
//   - A rollout that was complete and lost pods later is not looked at again every few milliseconds.
//   - A ReplicaSet's shortened name (kubernetes/kubernetes#132560) never gets a label that begins
//     with a dash.
package deployment
