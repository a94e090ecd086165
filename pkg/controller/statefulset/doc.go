// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statefulset gives the Pods of a StatefulSet names, storage and an order that last.
//
// It watches StatefulSets, Pods, PersistentVolumeClaims and ControllerRevisions. It writes
// Pods (create, patch, delete, adopt, release), claims (create, and their owners), the
// set's history (package history), its status, and events on it.
//
// Vocabulary. Replica: one ordinal of the range [start, start+replicas), with its Pod if
// there is one. Condemned: a Pod whose ordinal is outside the range. Current and update
// revision: the template that the set came from, and the one it goes to. Old: of another
// revision than the update revision. Unavailable: missing, going, or not ready for
// minReadySeconds. Ordered: podManagementPolicy other than Parallel; one Pod at a time.
// Step: actions that may be carried out together; a step begins when the one before it
// has succeeded. Mend: bring labels, volumes and claims of a Pod to what they must be.
// Blocked: a roll-out that waits for a Pod which does not get ready.
//
// Invariants. A sync decides from caches that have seen the set's own writes (the guard of
// package consistency is always on; the gate StaleControllerConsistencyStatefulSet is
// accepted and changes nothing). No two Pods of one ordinal: the name is the lock. A Pod is
// deleted under its UID. An ordered set is never short of more than one Pod by our doing
// (more by maxUnavailable). A claim is never deleted here: it gets an owner, and the
// garbage collector deletes it. No roll-out without a change in what the Pods would be.
//
// Where upstream differs:
//   - A claim is created with its owner; upstream creates it, and updates it then.
//   - A claim that goes enqueues its set; upstream waits there for a chance event.
//   - An orphan is offered to the set of its name only: no other could claim it.
//   - Events tell once of a claim with another controller, and of a blocked roll-out
//     (RolloutBlocked, which upstream does not have, #67250).
//   - With the gate KCMStatefulSetLeaveBadRevision (ours, off) an ordered roll-out
//     replaces a Pod of an old revision that does not get ready.
//   - A finished Pod outside the range is deleted without waiting for the unhealthy ones
//     below it; upstream waits for it to become ready, which it never will.
//   - A namespace in deletion is asked for a Pod once in five minutes.
package statefulset
