// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"maps"
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// ReplicaSetsByRevision sorts the lowest revision first; where revisions are the same or do not
// parse, the older ReplicaSet comes first.
type ReplicaSetsByRevision []*apps.ReplicaSet

func (o ReplicaSetsByRevision) Len() int      { return len(o) }
func (o ReplicaSetsByRevision) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o ReplicaSetsByRevision) Less(i, j int) bool {
	a, errA := Revision(o[i])
	b, errB := Revision(o[j])
	if errA != nil || errB != nil || a == b {
		return controller.ReplicaSetsByCreationTimestamp(o).Less(i, j)
	}
	return a < b
}

// EqualIgnoreHash says whether two pod templates are the same but for the pod-template-hash label.
func EqualIgnoreHash(a, b *v1.PodTemplateSpec) bool {
	x, y := withoutHash(*a), withoutHash(*b)
	return apiequality.Semantic.DeepEqual(&x, &y)
}

// withoutHash returns the template without the pod-template-hash label; all else is shared.
func withoutHash(template v1.PodTemplateSpec) v1.PodTemplateSpec {
	if _, ok := template.Labels[apps.DefaultDeploymentUniqueLabelKey]; ok {
		template.Labels = maps.Clone(template.Labels)
		delete(template.Labels, apps.DefaultDeploymentUniqueLabelKey)
	}
	return template
}

// FindNewReplicaSet returns the ReplicaSet that has the Deployment's pod template, or nil. If
// several have, which happened to clusters of long ago, the oldest one is it, always.
func FindNewReplicaSet(deployment *apps.Deployment, rsList []*apps.ReplicaSet) *apps.ReplicaSet {
	var found *apps.ReplicaSet
	for _, rs := range rsList {
		if found != nil && !older(rs, found) {
			continue
		}
		if EqualIgnoreHash(&rs.Spec.Template, &deployment.Spec.Template) {
			found = rs
		}
	}
	return found
}

// FindOldReplicaSets returns the ReplicaSets that are not the new one: first those that want pods,
// then all of them.
func FindOldReplicaSets(deployment *apps.Deployment, rsList []*apps.ReplicaSet) ([]*apps.ReplicaSet, []*apps.ReplicaSet) {
	var all []*apps.ReplicaSet
	newRS := FindNewReplicaSet(deployment, rsList)
	for _, rs := range rsList {
		if rs != newRS {
			all = append(all, rs)
		}
	}
	return controller.FilterActiveReplicaSets(all), all
}

// FindActiveOrLatest returns the one ReplicaSet that is scaled together with its Deployment: the
// only one that wants pods, or, when none does, the new or else the newest one. It is nil when
// several want pods: then each gets its share.
func FindActiveOrLatest(newRS *apps.ReplicaSet, oldRSs []*apps.ReplicaSet) *apps.ReplicaSet {
	all := oldRSs
	if newRS != nil {
		all = append(slices.Clone(oldRSs), newRS)
	}
	if len(all) == 0 {
		return nil
	}
	active := controller.FilterActiveReplicaSets(all)
	switch {
	case len(active) == 1:
		return active[0]
	case len(active) > 1:
		return nil
	case newRS != nil:
		return newRS
	}
	newest := oldRSs[0]
	for _, rs := range oldRSs[1:] {
		if older(newest, rs) {
			newest = rs
		}
	}
	return newest
}

func older(a, b *apps.ReplicaSet) bool {
	return controller.ReplicaSetsByCreationTimestamp{a, b}.Less(0, 1)
}

// SetFromReplicaSetTemplate gives the Deployment the template of a ReplicaSet, without the
// pod-template-hash label, and returns the Deployment.
func SetFromReplicaSetTemplate(deployment *apps.Deployment, template v1.PodTemplateSpec) *apps.Deployment {
	own := withoutHash(template)
	deployment.Spec.Template = *own.DeepCopy()
	return deployment
}

// GetReplicaCountForReplicaSets returns how many pods the ReplicaSets want (spec.replicas).
func GetReplicaCountForReplicaSets(replicaSets []*apps.ReplicaSet) int32 {
	return sum(replicaSets, func(rs *apps.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 0) })
}

// GetActualReplicaCountForReplicaSets returns how many pods the ReplicaSets have (status.replicas).
func GetActualReplicaCountForReplicaSets(replicaSets []*apps.ReplicaSet) int32 {
	return sum(replicaSets, func(rs *apps.ReplicaSet) int32 { return rs.Status.Replicas })
}

// GetReadyReplicaCountForReplicaSets returns how many of their pods are ready.
func GetReadyReplicaCountForReplicaSets(replicaSets []*apps.ReplicaSet) int32 {
	return sum(replicaSets, func(rs *apps.ReplicaSet) int32 { return rs.Status.ReadyReplicas })
}

// GetAvailableReplicaCountForReplicaSets returns how many of their pods are available.
func GetAvailableReplicaCountForReplicaSets(replicaSets []*apps.ReplicaSet) int32 {
	return sum(replicaSets, func(rs *apps.ReplicaSet) int32 { return rs.Status.AvailableReplicas })
}

// GetTerminatingReplicaCountForReplicaSets returns how many of their pods are terminating, and nil
// when one ReplicaSet's controller does not tell. One that has not been synced yet has none.
func GetTerminatingReplicaCountForReplicaSets(replicaSets []*apps.ReplicaSet) *int32 {
	total := int32(0)
	for _, rs := range replicaSets {
		switch {
		case rs == nil:
		case rs.Status.TerminatingReplicas != nil:
			total += *rs.Status.TerminatingReplicas
		case rs.Status.ObservedGeneration > 0:
			return nil
		}
	}
	return &total
}

func sum(replicaSets []*apps.ReplicaSet, count func(*apps.ReplicaSet) int32) int32 {
	total := int32(0)
	for _, rs := range replicaSets {
		if rs != nil {
			total += count(rs)
		}
	}
	return total
}
