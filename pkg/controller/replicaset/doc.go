// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicaset keeps the number of Pods that a ReplicaSet asks for. Its core
// works for every kind that can be seen as a ReplicaSet (type Kind); package replication
// brings ReplicationControllers to it.
//
// It watches ReplicaSets and Pods, and writes Pods (create, delete, adopt, release), the
// status of ReplicaSets, and events on them.
//
// Vocabulary. Active: neither finished nor being deleted. Claimed: active, and owned by
// the set after adopting and releasing. Missing and excess: what the claimed Pods are
// short of or above spec.replicas. Related: the Pods of all sets that have the same
// controller, as a Deployment's have.
//
// Invariants. A sync decides only from caches that have seen the set's own writes (the
// guard of package consistency stands where upstream counts expectations; it is always
// on, the gate StaleControllerConsistencyReplicaSet is accepted and changes nothing). A
// request of unknown outcome is settled by a live list before the next decision. A Pod
// is deleted under its UID. The status is written only when it differs.
//
// Where upstream differs:
//   - In a namespace in deletion, creating stops at the first refusal rather than after
//     one request per replica.
//   - Pods that fail at once, as those that their node rejects, are recreated with
//     growing delay (#72593, #130411).
//   - The order of deletion is an order (see controller.ActivePodsWithRanks).
//
// LogarithmicScaleDown is always on; its gate no longer exists in 1.37.
package replicaset
