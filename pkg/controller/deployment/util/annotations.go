// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"strconv"
	"strings"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

const (
	// RevisionAnnotation numbers the revisions of a Deployment, on it and on its ReplicaSets.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation lists the earlier revisions of a ReplicaSet, oldest first,
	// separated by commas.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation is the spec.replicas that the Deployment had when the ReplicaSet
	// was last scaled: where it differs from today's, the Deployment itself is being scaled.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation is spec.replicas plus the surge at that time: the whole of which the
	// ReplicaSet's size is a fraction, in proportional scaling.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
)

// maxRevisionHistoryChars bounds RevisionHistoryAnnotation; the oldest revisions are dropped first.
const maxRevisionHistoryChars = 2000

// skipCopy says whether an annotation belongs to the object that carries it: it is copied neither
// from a Deployment to its ReplicaSets nor back in a rollback.
func skipCopy(key string) bool {
	switch key {
	case v1.LastAppliedConfigAnnotation, RevisionAnnotation, RevisionHistoryAnnotation,
		DesiredReplicasAnnotation, MaxReplicasAnnotation, apps.DeprecatedRollbackTo:
		return true
	}
	return false
}

// Revision returns the revision that obj's annotation says; 0 when there is none.
func Revision(obj runtime.Object) (int64, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return 0, err
	}
	v, ok := acc.GetAnnotations()[RevisionAnnotation]
	if !ok {
		return 0, nil
	}
	return strconv.ParseInt(v, 10, 64)
}

// MaxRevision returns the highest revision among the ReplicaSets; those whose annotation does not
// parse do not count.
func MaxRevision(replicaSets []*apps.ReplicaSet) int64 {
	highest := int64(0)
	for _, rs := range replicaSets {
		if v, err := Revision(rs); err == nil {
			highest = max(highest, v)
		}
	}
	return highest
}

// LastRevision returns the second highest revision among the ReplicaSets, the one before the
// current; 0 when there is none.
func LastRevision(replicaSets []*apps.ReplicaSet) int64 {
	highest, second := int64(0), int64(0)
	for _, rs := range replicaSets {
		v, err := Revision(rs)
		switch {
		case err != nil:
		case v >= highest:
			highest, second = v, highest
		case v > second:
			second = v
		}
	}
	return second
}

// SetDeploymentRevision sets the Deployment's revision annotation and says whether that changed it.
func SetDeploymentRevision(deployment *apps.Deployment, revision string) bool {
	return setAnnotation(&deployment.Annotations, RevisionAnnotation, revision)
}

// SetNewReplicaSetAnnotations brings the annotations of the Deployment's new ReplicaSet up to date
// and says whether that changed any: the Deployment's own are copied (never removed), and the
// revision is raised to at least newRevision, the previous one moving to the history.
func SetNewReplicaSetAnnotations(deployment *apps.Deployment, rs *apps.ReplicaSet, newRevision int64) bool {
	changed := false
	for k, v := range deployment.Annotations {
		if !skipCopy(k) && setAnnotation(&rs.Annotations, k, v) {
			changed = true
		}
	}
	previous, had := rs.Annotations[RevisionAnnotation]
	if revision, err := Revision(rs); (previous != "" && err != nil) || revision >= newRevision {
		// Somebody else's number, or one that is high enough: a revision is never lowered.
		return changed
	}
	setAnnotation(&rs.Annotations, RevisionAnnotation, strconv.FormatInt(newRevision, 10))
	if had {
		history, ok := appendHistory(rs.Annotations[RevisionHistoryAnnotation], previous, maxRevisionHistoryChars)
		if ok {
			setAnnotation(&rs.Annotations, RevisionHistoryAnnotation, history)
		}
	}
	return true
}

// appendHistory adds a revision to a comma-separated list, dropping the oldest entries that no
// longer fit into limit characters. It returns false when the revision alone does not fit.
func appendHistory(history, revision string, limit int) (string, bool) {
	if history != "" {
		history += ","
	}
	history += revision
	for len(history) > limit {
		_, rest, more := strings.Cut(history, ",")
		if !more {
			return "", false
		}
		history = rest
	}
	return history, true
}

// SetReplicasAnnotations sets what a ReplicaSet says of its Deployment's size, and returns whether
// that changed it.
func SetReplicasAnnotations(rs *apps.ReplicaSet, desired, maximum int32) bool {
	changed := setAnnotation(&rs.Annotations, DesiredReplicasAnnotation, formatInt32(desired))
	return setAnnotation(&rs.Annotations, MaxReplicasAnnotation, formatInt32(maximum)) || changed
}

// ReplicasAnnotationsNeedUpdate says whether SetReplicasAnnotations would change the ReplicaSet.
func ReplicasAnnotationsNeedUpdate(rs *apps.ReplicaSet, desired, maximum int32) bool {
	return rs.Annotations[DesiredReplicasAnnotation] != formatInt32(desired) ||
		rs.Annotations[MaxReplicasAnnotation] != formatInt32(maximum)
}

// GetDesiredReplicasAnnotation returns the Deployment's size at which the ReplicaSet was last
// scaled, and false when its annotation is missing or no number from 0 to the largest int32.
func GetDesiredReplicasAnnotation(logger klog.Logger, rs *apps.ReplicaSet) (int32, bool) {
	n, ok := nonNegativeInt32Annotation(rs, DesiredReplicasAnnotation)
	if _, has := rs.Annotations[DesiredReplicasAnnotation]; has && !ok {
		logger.V(2).Info("Ignoring an annotation that is no number of replicas", "replicaSet", klog.KObj(rs),
			"annotation", DesiredReplicasAnnotation, "value", rs.Annotations[DesiredReplicasAnnotation])
	}
	return n, ok
}

// DesiredReplicasDiffer says whether the ReplicaSet was last scaled at another size of its
// Deployment. A ReplicaSet that does not say is not different.
func DesiredReplicasDiffer(rs *apps.ReplicaSet, desired int32) bool {
	n, ok := nonNegativeInt32Annotation(rs, DesiredReplicasAnnotation)
	return ok && n != desired
}

func nonNegativeInt32Annotation(rs *apps.ReplicaSet, key string) (int32, bool) {
	v, ok := rs.Annotations[key]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int32(n), true
}

// SetDeploymentAnnotationsTo gives the Deployment the annotations of the ReplicaSet to which it is
// rolled back. Annotations that belong to the Deployment itself stay.
func SetDeploymentAnnotationsTo(deployment *apps.Deployment, rollbackTo *apps.ReplicaSet) {
	annotations := map[string]string{}
	for k, v := range deployment.Annotations {
		if skipCopy(k) {
			annotations[k] = v
		}
	}
	for k, v := range rollbackTo.Annotations {
		if !skipCopy(k) {
			annotations[k] = v
		}
	}
	deployment.Annotations = annotations
}

// RollbackTo returns the revision to which the deprecated annotation asks to roll back, 0 meaning
// the last one, and false when there is no annotation that parses.
func RollbackTo(deployment *apps.Deployment) (int64, bool) {
	v, ok := deployment.Annotations[apps.DeprecatedRollbackTo]
	if !ok {
		return 0, false
	}
	revision, err := strconv.ParseInt(v, 10, 64)
	return revision, err == nil
}

func setAnnotation(annotations *map[string]string, key, value string) bool {
	if old, ok := (*annotations)[key]; ok && old == value {
		return false
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[key] = value
	return true
}

func formatInt32(n int32) string { return strconv.FormatInt(int64(n), 10) }
