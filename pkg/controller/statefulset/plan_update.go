// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	recreateInProgress = "RecreateInProgress"
	recreateCompleted  = "RecreateCompleted"
)

// recreate takes all old Pods away before anything else is done, and says whether they
// are gone.
func (p *planner) recreate() bool {
	var removals []action
	gone := true
	for r := range p.all() {
		if !p.isOld(r) {
			continue
		}
		gone = false
		if !r.going {
			removals = append(removals, action{remove, r})
		}
	}
	if !gone {
		p.add(true, removals...)
		p.condition = progressing(v1.ConditionTrue, recreateInProgress, "Deleting old revision pods")
		return false
	}
	was := condition(&p.set.Status, apps.StatefulSetProgressing)
	if was == nil || was.Reason != recreateInProgress {
		return true
	}
	if slices.ContainsFunc(p.replicas, func(r *replica) bool { return r.pod == nil || !isCreated(r.pod) }) {
		p.condition = progressing(v1.ConditionTrue, recreateInProgress, "Waiting for new-revision pods to be created")
	} else {
		p.condition = progressing(v1.ConditionFalse, recreateCompleted, "All pods recreated successfully")
	}
	return true
}

func progressing(status v1.ConditionStatus, reason, message string) *apps.StatefulSetCondition {
	return &apps.StatefulSetCondition{Type: apps.StatefulSetProgressing, Status: status, Reason: reason, Message: message}
}

// roll takes old Pods away, the highest first, so that they are made anew.
func (p *planner) roll() {
	if !isRolling(p.set) {
		return
	}
	// Only these are for the update; all of them count as unavailable.
	due := p.replicas[min(partition(p.set), len(p.replicas)):]
	if !p.gates.maxUnavailable {
		p.rollOne(due)
		return
	}
	budget := p.maxUnavailable - p.unavailable()
	var removals []action
	if !p.ordered {
		// Those that do no work anyway cost nothing.
		for _, r := range slices.Backward(due) {
			if p.isOld(r) && !r.going && !p.isAvailable(r) {
				removals = append(removals, action{remove, r})
			}
		}
	}
	free := len(removals)
	for _, r := range slices.Backward(due) {
		if len(removals)-free >= budget {
			break
		}
		if p.isOld(r) && !r.going && (p.ordered || p.isAvailable(r)) {
			removals = append(removals, action{remove, r})
		}
	}
	p.add(false, removals...)
	if len(removals) == 0 {
		p.explain(slices.Backward(p.replicas))
	}
}

// rollOne is roll without maxUnavailable: one Pod, when all above it are healthy.
func (p *planner) rollOne(due []*replica) {
	for _, r := range slices.Backward(due) {
		if p.isOld(r) && !r.going {
			p.add(false, action{remove, r})
			return
		}
		if !p.isHealthy(r) {
			p.explain(slices.Backward(due))
			return
		}
	}
}
