// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// recreate takes one step of a Recreate rollout: all old pods go, and only when none runs any more
// do the new ones come.
func (r *round) recreate() error {
	r.plan.report = reportRollout
	if r.scaleDownAllOld() || r.oldPodsMayRun() {
		return nil
	}
	if r.newRS == nil {
		if err := r.createNewReplicaSet(); err != nil {
			return err
		}
	}
	r.scale(r.newRS, util.DesiredReplicas(r.deployment))
	if util.DeploymentComplete(r.deployment, &r.deployment.Status) {
		r.cleanUp()
	}
	return nil
}

// oldPodsMayRun says whether a pod of an old ReplicaSet exists that has not ended, or whether one
// may still be created by a ReplicaSet controller that has not seen the scale-down yet.
func (r *round) oldPodsMayRun() bool {
	for _, rs := range r.old {
		if rs.Status.Replicas > 0 || rs.Generation > rs.Status.ObservedGeneration {
			return true
		}
	}
	for uid, pods := range r.pods {
		if r.newRS != nil && uid == r.newRS.UID {
			continue
		}
		for _, pod := range pods {
			if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
				return true
			}
		}
	}
	return false
}
