// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// isScaling says whether the Deployment's size was changed since a ReplicaSet was last scaled.
func (r *round) isScaling() bool {
	want := util.DesiredReplicas(r.deployment)
	for _, rs := range r.active() {
		if util.DesiredReplicasDiffer(rs, want) {
			return true
		}
	}
	return false
}

// scaleWithDeployment carries a new spec.replicas over to the ReplicaSets without rolling further:
// all to the only one that has pods, otherwise to each its share. It is also all that happens to a
// paused Deployment, whose old ReplicaSets are cleaned up then.
func (r *round) scaleWithDeployment() {
	d := r.deployment
	want := util.DesiredReplicas(d)
	r.plan.report = reportStatus

	rs := util.FindActiveOrLatest(r.newRS, r.old)
	switch {
	case rs != nil:
		r.scale(rs, want)
	case util.IsSaturated(d, r.newRS):
		r.scaleDownAllOld()
	case util.IsRollingUpdate(d):
		r.scaleProportionally()
	}
	// What still says another size keeps isScaling true, and the rollout would never go on
	// (kubernetes/kubernetes#138036).
	for _, rs := range r.active() {
		if util.DesiredReplicasDiffer(rs, want) {
			r.resize(rs, sizeOf(rs))
		}
	}
	if _, rollsBack := util.RollbackTo(d); d.Spec.Paused && !rollsBack {
		r.cleanUp()
	}
}

// scaleDownAllOld plans no pods for every old ReplicaSet, and says whether one had any.
func (r *round) scaleDownAllOld() bool {
	changed := false
	for _, rs := range slices.Clone(r.old) {
		changed = r.scale(rs, 0) || changed
	}
	return changed
}

// scaleProportionally shares the pods that the Deployment's new size adds or takes among its active
// ReplicaSets by their present sizes, so that a rollout that is half done, or broken, stays at the
// same fraction. What rounding leaves over goes to the biggest.
func (r *round) scaleProportionally() {
	d := r.deployment
	active := r.active()
	allowed := int32(0)
	if want := util.DesiredReplicas(d); want > 0 {
		allowed = want + util.MaxSurge(*d)
	}
	toAdd := allowed - util.GetReplicaCountForReplicaSets(active)
	switch {
	case toAdd > 0:
		slices.SortStableFunc(active, bySizeNewer)
	case toAdd < 0:
		slices.SortStableFunc(active, bySizeOlder)
	}

	sizes := make([]int32, len(active))
	left := toAdd
	for i, rs := range active {
		share := int32(0)
		if left != 0 {
			share = clip(util.GetReplicaSetFraction(rs, d), left)
		}
		sizes[i] = sizeOf(rs) + share
		left -= share
	}
	for i, rs := range active {
		if i == 0 {
			sizes[0] = max(0, sizes[0]+left)
		}
		r.resize(rs, sizes[i])
	}
}

// clip cuts a share so that it does not go beyond what is left in left's direction.
func clip(share, left int32) int32 {
	if left > 0 {
		return min(share, left)
	}
	return max(share, left)
}
