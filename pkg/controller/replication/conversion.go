// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asReplicaSet returns the ReplicationController as a ReplicaSet that shares its maps,
// slices and pointers.
func asReplicaSet(rc *v1.ReplicationController) *apps.ReplicaSet {
	set := &apps.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec:       apps.ReplicaSetSpec{Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds},
		Status: apps.ReplicaSetStatus{
			Replicas:             rc.Status.Replicas,
			FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas:        rc.Status.ReadyReplicas,
			AvailableReplicas:    rc.Status.AvailableReplicas,
			ObservedGeneration:   rc.Status.ObservedGeneration,
		},
	}
	selector := rc.Spec.Selector
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
		if len(selector) == 0 {
			selector = rc.Spec.Template.Labels
		}
	}
	// An empty label selector would select every Pod; none at all selects none.
	if len(selector) > 0 {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	}
	for _, c := range rc.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, apps.ReplicaSetCondition{
			Type:               apps.ReplicaSetConditionType(c.Type),
			Status:             c.Status,
			LastTransitionTime: c.LastTransitionTime,
			Reason:             c.Reason,
			Message:            c.Message,
		})
	}
	return set
}

// asReplicationController is the reverse of asReplicaSet.
func asReplicationController(set *apps.ReplicaSet) *v1.ReplicationController {
	rc := &v1.ReplicationController{
		ObjectMeta: set.ObjectMeta,
		Spec:       v1.ReplicationControllerSpec{Replicas: set.Spec.Replicas, MinReadySeconds: set.Spec.MinReadySeconds},
		Status: v1.ReplicationControllerStatus{
			Replicas:             set.Status.Replicas,
			FullyLabeledReplicas: set.Status.FullyLabeledReplicas,
			ReadyReplicas:        set.Status.ReadyReplicas,
			AvailableReplicas:    set.Status.AvailableReplicas,
			ObservedGeneration:   set.Status.ObservedGeneration,
		},
	}
	if set.Spec.Selector != nil {
		rc.Spec.Selector = set.Spec.Selector.MatchLabels
	}
	if !equality.Semantic.DeepEqual(set.Spec.Template, v1.PodTemplateSpec{}) {
		rc.Spec.Template = &set.Spec.Template
	}
	for _, c := range set.Status.Conditions {
		rc.Status.Conditions = append(rc.Status.Conditions, v1.ReplicationControllerCondition{
			Type:               v1.ReplicationControllerConditionType(c.Type),
			Status:             c.Status,
			LastTransitionTime: c.LastTransitionTime,
			Reason:             c.Reason,
			Message:            c.Message,
		})
	}
	return rc
}
