// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	apps "k8s.io/api/apps/v1"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// roll takes one step of a rolling update: up, or if that is not possible down, or else nothing.
//
// Invariants: the ReplicaSets together never want more than spec.replicas + maxSurge pods because
// of a step up, and a step down never takes an available pod that is needed to keep
// spec.replicas - maxUnavailable.
func (r *round) roll() error {
	r.plan.report = reportRollout
	if r.newRS == nil {
		if err := r.createNewReplicaSet(); err != nil {
			return err
		}
	}
	scaled, err := r.scaleNew()
	if err != nil || scaled {
		return err
	}
	if r.scaleDownOld() {
		return nil
	}
	if util.DeploymentComplete(r.deployment, &r.deployment.Status) {
		r.cleanUp()
	}
	return nil
}

// scaleNew brings the new ReplicaSet as near to the wanted size as the surge allows.
func (r *round) scaleNew() (bool, error) {
	size, want := sizeOf(r.newRS), util.DesiredReplicas(r.deployment)
	if size > want {
		return r.scale(r.newRS, want), nil
	}
	size, err := util.NewRSNewReplicas(r.deployment, r.all(), r.newRS)
	if err != nil {
		return false, err
	}
	return r.scale(r.newRS, size), nil
}

// scaleDownOld takes pods from old ReplicaSets, oldest first: those that are not available anyway,
// as many as the whole can lose if the new pods that are not available yet never come up; then
// available ones above the minimum.
func (r *round) scaleDownOld() bool {
	old := controller.FilterActiveReplicaSets(r.old)
	if len(old) == 0 {
		return false
	}
	slices.SortFunc(old, byCreation)
	minAvailable := util.MinAvailable(r.deployment)
	newUnavailable := sizeOf(r.newRS) - availableOf(r.newRS)
	budget := util.GetReplicaCountForReplicaSets(r.all()) - minAvailable - newUnavailable
	if budget <= 0 {
		return false
	}

	spare := availableOf(r.newRS) - minAvailable
	sizes := make([]int32, len(old))
	for i, rs := range old {
		take := min(budget, sizeOf(rs)-availableOf(rs))
		sizes[i] = sizeOf(rs) - take
		budget -= take
		spare += availableOf(rs)
	}
	scaled := false
	for i, rs := range old {
		take := max(0, min(spare, sizes[i]))
		spare -= take
		scaled = r.scale(rs, sizes[i]-take) || scaled
	}
	return scaled
}

// availableOf returns how many available pods the ReplicaSet will keep. Its status may be from
// before it was scaled down: of the pods it counts, no more than spec.replicas stay.
func availableOf(rs *apps.ReplicaSet) int32 { return min(rs.Status.AvailableReplicas, sizeOf(rs)) }
