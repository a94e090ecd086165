// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	v1 "k8s.io/api/core/v1"
)

// Reasons of events on DaemonSets, beside those of the pod control.
const (
	selectingAllReason       = "SelectingAll"
	failedDaemonPodReason    = "FailedDaemonPod"
	succeededDaemonPodReason = "SucceededDaemonPod"
)

// report tells of the Pods that have ended and are about to be replaced.
func (s *syncer) report(p plan) {
	for _, pod := range p.failed {
		s.recorder.Eventf(s.ds, v1.EventTypeWarning, failedDaemonPodReason,
			"Found failed daemon pod %s/%s on node %s, will try to kill it", pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
	for _, pod := range p.succeeded {
		s.recorder.Eventf(s.ds, v1.EventTypeNormal, succeededDaemonPodReason,
			"Found succeeded daemon pod %s/%s on node %s, will try to delete it", pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
}
