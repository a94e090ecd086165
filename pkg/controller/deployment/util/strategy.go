// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"math"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// DesiredReplicas returns the Deployment's spec.replicas; 1, the API's default, when it is not set.
func DesiredReplicas(deployment *apps.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
}

// IsRollingUpdate says whether the Deployment's strategy is RollingUpdate.
func IsRollingUpdate(deployment *apps.Deployment) bool {
	return deployment.Spec.Strategy.Type == apps.RollingUpdateDeploymentStrategyType
}

// MaxUnavailable returns how many of the wanted pods may be unavailable; 0 unless the strategy is
// RollingUpdate, and never more than spec.replicas.
func MaxUnavailable(deployment apps.Deployment) int32 {
	want := DesiredReplicas(&deployment)
	if !IsRollingUpdate(&deployment) || want == 0 {
		return 0
	}
	_, unavailable := fenceposts(&deployment)
	return min(unavailable, want)
}

// MinAvailable returns how many pods must be available during a rolling update; 0 with another
// strategy.
func MinAvailable(deployment *apps.Deployment) int32 {
	if !IsRollingUpdate(deployment) {
		return 0
	}
	return DesiredReplicas(deployment) - MaxUnavailable(*deployment)
}

// MaxSurge returns how many pods may exist above spec.replicas; 0 unless the strategy is
// RollingUpdate.
func MaxSurge(deployment apps.Deployment) int32 {
	if !IsRollingUpdate(&deployment) {
		return 0
	}
	surge, _ := fenceposts(&deployment)
	return surge
}

// fenceposts resolves the Deployment's own parameters. A value that does not resolve, which the
// API server does not let in, counts as 0.
func fenceposts(deployment *apps.Deployment) (surge, unavailable int32) {
	var params apps.RollingUpdateDeployment
	if p := deployment.Spec.Strategy.RollingUpdate; p != nil {
		params = *p
	}
	surge, unavailable, err := ResolveFenceposts(params.MaxSurge, params.MaxUnavailable, DesiredReplicas(deployment))
	if err != nil {
		return 0, 0
	}
	return surge, unavailable
}

// ResolveFenceposts turns the two bounds of a rolling update into numbers of pods. Percentages of
// desired round up for the surge and down for the unavailable; if both come to 0, which would
// forbid every step, one pod may be unavailable.
func ResolveFenceposts(maxSurge, maxUnavailable *intstr.IntOrString, desired int32) (int32, int32, error) {
	zero := intstr.FromInt32(0)
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxSurge, zero), int(desired), true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge: %w", err)
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxUnavailable, zero), int(desired), false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return int32(surge), int32(unavailable), nil
}

// NewRSNewReplicas returns the size to which the new ReplicaSet may grow now, where allRSs
// includes it: all that is wanted with Recreate, and what the surge leaves room for with
// RollingUpdate. It never returns less than its present size.
func NewRSNewReplicas(deployment *apps.Deployment, allRSs []*apps.ReplicaSet, newRS *apps.ReplicaSet) (int32, error) {
	want, have := DesiredReplicas(deployment), ptr.Deref(newRS.Spec.Replicas, 0)
	switch deployment.Spec.Strategy.Type {
	case apps.RecreateDeploymentStrategyType:
		return want, nil
	case apps.RollingUpdateDeploymentStrategyType:
		room := want + MaxSurge(*deployment) - GetReplicaCountForReplicaSets(allRSs)
		return have + max(0, min(room, want-have)), nil
	default:
		return 0, fmt.Errorf("unexpected deployment strategy type: %s", deployment.Spec.Strategy.Type)
	}
}

// GetReplicaSetFraction returns by how much the ReplicaSet grows (shrinks, if negative) in
// proportional scaling: its share of the pods before, of the pods that are allowed now. Before
// means its max-replicas annotation, or the Deployment's status.replicas when somebody has removed
// or spoilt that; a Deployment that never had pods does not scale.
func GetReplicaSetFraction(rs *apps.ReplicaSet, deployment *apps.Deployment) int32 {
	want, have := DesiredReplicas(deployment), ptr.Deref(rs.Spec.Replicas, 0)
	if want == 0 {
		return -have
	}
	before, ok := nonNegativeInt32Annotation(rs, MaxReplicasAnnotation)
	if !ok || before == 0 {
		before = deployment.Status.Replicas
	}
	if before == 0 {
		return 0
	}
	allowed := float64(want) + float64(MaxSurge(*deployment))
	return int32(math.Round(float64(have)*allowed/float64(before))) - have
}

// IsSaturated says whether the new ReplicaSet has all the pods of its Deployment, available, and
// was scaled for the Deployment's present size.
func IsSaturated(deployment *apps.Deployment, rs *apps.ReplicaSet) bool {
	if rs == nil {
		return false
	}
	want := DesiredReplicas(deployment)
	desired, ok := nonNegativeInt32Annotation(rs, DesiredReplicasAnnotation)
	return ok && desired == want && ptr.Deref(rs.Spec.Replicas, 0) == want && rs.Status.AvailableReplicas == want
}
