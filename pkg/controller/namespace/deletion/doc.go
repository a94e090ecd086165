// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion empties a namespace that is being deleted and then lets it go.
//
// One call of Delete is a round: look at the namespace, ask discovery what kinds of objects can be
// in it, delete them, look at what is left, say so in the namespace's conditions. A round in which
// nothing is left and nothing failed removes our finalizer from spec.finalizers. A round never
// waits; ResourcesRemainingError tells the caller when the next one is worth while.
//
// # Vocabulary
//
//   - target: a kind of object that can be deleted, with what its API can do (plan.go).
//   - survey: what one listing of a target showed: how many objects, held by which finalizers,
//     whether a delete request would change anything (plan.go).
//   - outcome: what a round learned, over all targets (plan.go), from which the five conditions
//     follow (conditions.go).
//
// # Invariants
//
//   - Pods go first (KEP-5080, ordered namespace deletion): no other object is deleted while a pod
//     is left, so that a pod never outlives the NetworkPolicies that confine it. The one exception
//     are Jobs, when after a minute the job controller alone holds the pods: see below.
//   - The finalizer is removed only after a discovery that began within the same round and was
//     complete, and after each target was listed and was empty. A discovery that names nothing is a
//     failure, not an empty cluster.
//   - A namespace that was deleted and created anew meanwhile is left alone: status and finalize
//     requests carry the resourceVersion and the UID, single deletes the object's UID, and before
//     objects younger than the deletion are deleted the namespace's UID is read again.
//
// # Requests
//
// A target is listed (metadata only, in pages) before it is deleted: for most the list is empty and
// there is no second request. Objects that already are terminating are not deleted again unless
// that can help. Discovery is shared by all rounds for half a minute.
//
// # Differences from upstream, all on purpose
//
//   - The conditions tell about remaining pods, too. Upstream leaves NamespaceContentRemaining and
//     NamespaceFinalizersRemaining False while it waits for pods.
//   - The wait for pods is what is left of their own deletion's grace period. Upstream takes the
//     largest spec.terminationGracePeriodSeconds.
//   - A namespace whose only hold is our finalizer gets no last status update: it is gone at once.
//   - A namespace without our finalizer in spec.finalizers is not emptied again and again while
//     somebody else's finalizer is left.
//   - Discovery that fails or returns nothing is retried and named in a condition. Upstream ends the
//     process when it returns nothing at start.
//   - Pods that only the job controller's finalizer holds do not keep their Jobs from being deleted.
//     Upstream never finishes a namespace with an Indexed Job with backoffLimitPerIndex whose pod
//     fails during the deletion: the controller waits for the pod's replacement, which is refused,
//     and the Job waits for the pod.
//   - Errors in NamespaceDeletionContentFailure say which resource they are about.
package deletion
