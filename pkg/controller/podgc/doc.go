// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgc force-deletes the Pods that nobody else will end.
//
// It watches Pods and Nodes, looks at all of them every 20 seconds, and writes Pods: the
// status of one that had not finished becomes Failed, then the Pod is deleted without
// grace. It records no events.
//
// A pass (plan.go) finds four kinds of Pods, and gives each the first reason that holds:
// terminated (finished, beyond the threshold; evicted ones go first, then the oldest),
// out-of-service (in deletion, on a node that is not ready and has the taint
// node.kubernetes.io/out-of-service, KEP-2268), orphaned (on a node that does not exist)
// and unscheduled (in deletion, on no node). Terminated is what is neither Pending,
// Running nor Unknown, so also what has no phase.
//
// Quarantine: a node that the cache does not show is asked for live 40 seconds after the
// pass that missed it. Only when it is in neither place are its Pods deleted, with the
// condition DisruptionTarget.
//
// Workers: passes has one key that comes back each period; lostNodes and
// outOfServiceNodes verify a node with a live read before any of its Pods is touched;
// deletions deletes Pod by Pod, and looks again whether its reason still holds.
//
// Invariants. The status is patched under the Pod's UID and resourceVersion: a Pod that
// has succeeded meanwhile never becomes Failed. A Pod is deleted under its UID.
//
// Where upstream differs:
//   - Nodes out of service are taken from the cache, without a live read.
//   - The Pods of a lost node wait for the first pass after the quarantine.
//   - A Pod that was force-deleted and that finalizers hold is sent the same deletion in
//     every pass, and its node is asked for as often. Here that is done once.
//   - A Pod may be deleted, and counted, for more than one reason in a pass.
package podgc
