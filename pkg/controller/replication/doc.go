// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replication keeps the number of Pods that a ReplicationController asks for: it
// brings ReplicationControllers to the core of package replicaset, which sees each as a
// ReplicaSet.
//
// It watches ReplicationControllers and Pods, and writes Pods (create, delete, adopt,
// release), the status of ReplicationControllers, and events on them.
//
// Vocabulary and invariants are the core's. What is seen as a ReplicaSet shares its maps
// and pointers with the cached ReplicationController, and is as read-only as that.
//
// Where a ReplicationController is not a ReplicaSet:
//   - Its status has no terminatingReplicas, whatever the gate
//     DeploymentReplicaSetTerminatingReplicas says (kubernetes/kubernetes#131822).
//   - Its selector is a map of labels. An empty one stands for the labels of the template,
//     as the API server defaults it.
//   - Its template may be nil in an object made by hand; no Pod is made from that.
//
// Where upstream differs: the guard against stale caches is on here too (there it is for
// ReplicaSets only), and the Pods of ReplicationControllers with the same owner, such as
// the rollouts of an OpenShift DeploymentConfig, count as related when one shrinks.
package replication
