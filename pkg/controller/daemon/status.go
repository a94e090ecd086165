// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	apps "k8s.io/api/apps/v1"
)

// newStatus returns the status that tells of the state. Of several Pods on a node the first counts.
func newStatus(s *state, collisionCount *int32) apps.DaemonSetStatus {
	status := apps.DaemonSetStatus{
		ObservedGeneration: s.ds.Generation,
		CollisionCount:     collisionCount,
		Conditions:         s.ds.Status.Conditions,
	}
	for _, node := range s.nodes {
		if !node.wants {
			if len(node.pods) > 0 && node.exists {
				status.NumberMisscheduled++
			}
			continue
		}
		status.DesiredNumberScheduled++
		if len(node.pods) == 0 {
			continue
		}
		status.CurrentNumberScheduled++
		first := node.pods[0]
		if first.ready() {
			status.NumberReady++
			if first.available {
				status.NumberAvailable++
			}
		}
		if first.updated {
			status.UpdatedNumberScheduled++
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	return status
}

// statusDiffers says whether the status has to be written.
func statusDiffers(was, is apps.DaemonSetStatus) bool {
	return was.ObservedGeneration < is.ObservedGeneration ||
		was.DesiredNumberScheduled != is.DesiredNumberScheduled ||
		was.CurrentNumberScheduled != is.CurrentNumberScheduled ||
		was.NumberMisscheduled != is.NumberMisscheduled ||
		was.NumberReady != is.NumberReady ||
		was.UpdatedNumberScheduled != is.UpdatedNumberScheduled ||
		was.NumberAvailable != is.NumberAvailable ||
		was.NumberUnavailable != is.NumberUnavailable
}
