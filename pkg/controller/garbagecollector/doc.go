// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbagecollector runs the garbage-collector-controller: it deletes objects whose owners are
// gone, lets owners go that wait for their dependents, and parts owners from dependents that outlive
// them. The rules are those of
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
//
// It watches every resource that can be deleted, listed and watched, by the typed informer where
// there is one and else by the objects' metadata. It deletes objects, patches metadata.ownerReferences
// and metadata.finalizers, and writes one event.
//
//	informers ──changes──▶ graph ──effects──▶ attempt_to_delete ──▶ facts ──▶ planItem ──▶ apply
//	                         ▲                     │ owner that nobody shows
//	                         └──── verify ◀────────┘          attempt_to_orphan ──▶ orphan
//
// The graph (graph.go) is pure: who owns whom, by full identity (group-kind, namespace, name, UID). A
// reference means the owner in the dependent's own namespace, or a cluster-scoped one; references
// that differ in more than the version mean different owners, each with a fate of its own. The
// graph's queue is level-triggered: an event only names an object, what counts is what the informer
// shows then. Whatever changes in the graph names what has to be looked at; planItem (plan.go)
// decides about it.
//
// # Vocabulary
//
//   - observed, live, unknown, absent, invalid: what is known of an owner; see state.
//   - solid, waiting, dangling: what an owner reference amounts to; see refState.
//   - foreground, orphaning: an object that is being deleted and held by that finalizer.
//   - monitor: a watched resource. It is ready when its first list is in the graph.
//
// # Invariants
//
//   - Nothing is deleted that has a solid or an unknown owner.
//   - An owner is believed absent only when its deletion was watched, or a live read did not find it:
//     one read, however many dependents wait. A 404 that is not about the object itself proves nothing.
//   - A deletion carries the UID and the resource version that the decision was made on, and needs
//     no read before it. After a conflict the object is read, and the decision made anew if its
//     owners or finalizers differ.
//   - Every object for which planItem has something to do has been queued since that became so.
//   - A resource that cannot be listed delays nothing but the deletion of owners in the foreground
//     or as orphans, and that no longer than the initial sync timeout. It is named in the log, in
//     garbagecollector_controller_resource_unsynced, and among the controller's live records; the
//     health check does not fail for it, as a restart would not mend it and stop all else.
//
// # Upstream's quirks
//
//   - A cluster-scoped object with a namespaced owner is never collected.
//   - A dependent whose owner reference names an API version that is not served is not collected
//     either, even if the owner is known to be gone.
//   - A child in one namespace of an owner in another is deleted, with a warning event when the owner
//     was seen: in the child's namespace there is no such owner.
package garbagecollector
