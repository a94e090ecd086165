// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// ReplicaSetsByCreationTimestamp sorts the oldest first, and by name where they are
// of the same second.
type ReplicaSetsByCreationTimestamp []*apps.ReplicaSet

func (o ReplicaSetsByCreationTimestamp) Len() int           { return len(o) }
func (o ReplicaSetsByCreationTimestamp) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o ReplicaSetsByCreationTimestamp) Less(i, j int) bool { return olderReplicaSet(o[i], o[j]) }

// ReplicaSetsBySizeOlder sorts the biggest (spec.replicas) first, and the older first
// where they are of one size.
type ReplicaSetsBySizeOlder []*apps.ReplicaSet

func (o ReplicaSetsBySizeOlder) Len() int      { return len(o) }
func (o ReplicaSetsBySizeOlder) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o ReplicaSetsBySizeOlder) Less(i, j int) bool {
	if a, b := replicasOf(o[i]), replicasOf(o[j]); a != b {
		return a > b
	}
	return olderReplicaSet(o[i], o[j])
}

// ReplicaSetsBySizeNewer sorts the biggest (spec.replicas) first, and the newer first
// where they are of one size.
type ReplicaSetsBySizeNewer []*apps.ReplicaSet

func (o ReplicaSetsBySizeNewer) Len() int      { return len(o) }
func (o ReplicaSetsBySizeNewer) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o ReplicaSetsBySizeNewer) Less(i, j int) bool {
	if a, b := replicasOf(o[i]), replicasOf(o[j]); a != b {
		return a > b
	}
	return olderReplicaSet(o[j], o[i])
}

// FilterActiveReplicaSets returns the ReplicaSets that want at least one Pod.
func FilterActiveReplicaSets(replicaSets []*apps.ReplicaSet) []*apps.ReplicaSet {
	return FilterReplicaSets(replicaSets, func(rs *apps.ReplicaSet) bool {
		return rs != nil && replicasOf(rs) > 0
	})
}

// FilterReplicaSets returns the ReplicaSets that keep approves of, in the same order.
func FilterReplicaSets(replicaSets []*apps.ReplicaSet, keep func(*apps.ReplicaSet) bool) []*apps.ReplicaSet {
	var kept []*apps.ReplicaSet
	for _, rs := range replicaSets {
		if keep(rs) {
			kept = append(kept, rs)
		}
	}
	return kept
}

// ControllersByCreationTimestamp sorts the oldest ReplicationController first, and by
// name where they are of the same second.
type ControllersByCreationTimestamp []*v1.ReplicationController

func (o ControllersByCreationTimestamp) Len() int      { return len(o) }
func (o ControllersByCreationTimestamp) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o ControllersByCreationTimestamp) Less(i, j int) bool {
	if !o[i].CreationTimestamp.Equal(&o[j].CreationTimestamp) {
		return o[i].CreationTimestamp.Before(&o[j].CreationTimestamp)
	}
	return o[i].Name < o[j].Name
}

func olderReplicaSet(a, b *apps.ReplicaSet) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// replicasOf reads spec.replicas, which the API server defaults to 1 but which is nil
// in objects made by hand.
func replicasOf(rs *apps.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 0
	}
	return *rs.Spec.Replicas
}
