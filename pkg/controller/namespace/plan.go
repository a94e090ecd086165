// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// needsWork says whether ns is terminating and waits for the finalizer that we stand for.
func needsWork(ns *v1.Namespace, token v1.FinalizerName) bool {
	return ns.DeletionTimestamp != nil && slices.Contains(ns.Spec.Finalizers, token)
}

// startsWork says whether a change of a namespace calls for a round. What happens in a namespace
// that is terminating already is found out by the rounds themselves; a resync, which shows the same
// version twice, is a reminder.
func startsWork(old, cur *v1.Namespace, token v1.FinalizerName) bool {
	if !needsWork(cur, token) {
		return false
	}
	return !needsWork(old, token) || old.UID != cur.UID || old.ResourceVersion == cur.ResourceVersion
}

// nextRound returns how long to wait for content that may need estimate seconds, when the deletion
// has taken so long. A quarter of the time that has passed loses little and asks seldom; half of the
// estimate and a second, upstream's wait, is the upper bound.
func nextRound(estimateSeconds int64, elapsed time.Duration) time.Duration {
	longest := time.Duration(estimateSeconds/2+1) * time.Second
	return min(max(elapsed/4, time.Second), longest)
}
