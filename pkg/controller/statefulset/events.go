// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	conflictingControllerReason = "ConflictingController"
	unknownStrategyReason       = "UnknownStrategy"
	rolloutBlockedReason        = "RolloutBlocked"
)

// recordPod tells on the set what came of a write of one of its Pods.
func (s *syncer) recordPod(verb, podName string, err error) {
	if err == nil {
		s.recorder.Event(s.set, v1.EventTypeNormal, "Successful"+verb, fmt.Sprintf("%s Pod %s in StatefulSet %s successful", verb, podName, s.set.Name))
		return
	}
	if s.isNoNews(err) {
		return
	}
	s.recorder.Event(s.set, v1.EventTypeWarning, "Failed"+verb, fmt.Sprintf("%s Pod %s in StatefulSet %s failed error: %v", verb, podName, s.set.Name, err))
}

// recordClaim tells on the set what came of a write of a claim.
func (s *syncer) recordClaim(verb, podName, claimName string, err error) {
	if err == nil {
		s.recorder.Event(s.set, v1.EventTypeNormal, "Successful"+verb, fmt.Sprintf("%s Claim %s Pod %s in StatefulSet %s success", verb, claimName, podName, s.set.Name))
		return
	}
	if s.isNoNews(err) {
		return
	}
	s.recorder.Event(s.set, v1.EventTypeWarning, "Failed"+verb, fmt.Sprintf("%s Claim %s for Pod %s in StatefulSet %s failed error: %v", verb, claimName, podName, s.set.Name, err))
}

// isNoNews says whether nobody could be told: a namespace in deletion refuses every
// object, and events too.
func (s *syncer) isNoNews(err error) bool {
	return apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause)
}

// tell records what the plan found out, each thing once.
func (s *syncer) tell(plan plan) {
	blocked := ""
	if plan.blocked != nil {
		blocked = string(plan.blocked.pod.UID) + "/" + plan.blocked.revision
		if blocked != s.memory.blocked {
			s.recorder.Event(s.set, v1.EventTypeWarning, rolloutBlockedReason, plan.blocked.String())
		}
	}
	s.memory.blocked = blocked
	told := map[string]struct{}{}
	for _, name := range plan.conflicts {
		told[name] = struct{}{}
		if _, ok := s.memory.conflicts[name]; !ok {
			// The word is upstream's.
			s.recorder.Eventf(s.set, v1.EventTypeWarning, conflictingControllerReason,
				"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", name)
		}
	}
	s.memory.conflicts = told
}
