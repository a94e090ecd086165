// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// full is a ReplicationController in which every field that there is to convert has a
// value of its own.
func full() *v1.ReplicationController {
	labels := map[string]string{"app": "web", "tier": "front"}
	return &v1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "u1", ResourceVersion: "17", Generation: 3,
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.openshift.io/v1", Kind: "DeploymentConfig", Name: "web", UID: "d", Controller: new(true)}},
		},
		Spec: v1.ReplicationControllerSpec{
			Replicas:        new(int32(4)),
			MinReadySeconds: 5,
			Selector:        map[string]string{"app": "web"},
			Template: &v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "example.com/web:1"}}},
			},
		},
		Status: v1.ReplicationControllerStatus{
			Replicas: 6, FullyLabeledReplicas: 7, ReadyReplicas: 8, AvailableReplicas: 9, ObservedGeneration: 2,
			Conditions: []v1.ReplicationControllerCondition{{
				Type: v1.ReplicationControllerReplicaFailure, Status: v1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)), Reason: "FailedCreate", Message: "quota",
			}},
		},
	}
}

func TestConversion(t *testing.T) {
	rc := full()
	before := rc.DeepCopy()
	want := &apps.ReplicaSet{
		ObjectMeta: *before.ObjectMeta.DeepCopy(),
		Spec: apps.ReplicaSetSpec{
			Replicas: new(int32(4)), MinReadySeconds: 5,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: *before.Spec.Template.DeepCopy(),
		},
		Status: apps.ReplicaSetStatus{
			Replicas: 6, FullyLabeledReplicas: 7, ReadyReplicas: 8, AvailableReplicas: 9, ObservedGeneration: 2,
			Conditions: []apps.ReplicaSetCondition{{
				Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)), Reason: "FailedCreate", Message: "quota",
			}},
		},
	}
	set := asReplicaSet(rc)
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("as a ReplicaSet (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, asReplicationController(set)); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, rc); diff != "" {
		t.Errorf("the original was changed (-want +got):\n%s", diff)
	}
}

// What the API server would not store is seen as what selects and makes nothing.
func TestConversionOfPartialObjects(t *testing.T) {
	labels := map[string]string{"app": "web"}
	tests := map[string]struct {
		spec         v1.ReplicationControllerSpec
		wantSelector *metav1.LabelSelector
		wantBack     v1.ReplicationControllerSpec
	}{
		"nil template": {
			spec:         v1.ReplicationControllerSpec{Selector: labels},
			wantSelector: &metav1.LabelSelector{MatchLabels: labels},
			wantBack:     v1.ReplicationControllerSpec{Selector: labels},
		},
		"nothing at all": {},
		"empty selector, nil template": {
			spec: v1.ReplicationControllerSpec{Selector: map[string]string{}},
		},
		"nil selector": {
			spec:         v1.ReplicationControllerSpec{Template: &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}},
			wantSelector: &metav1.LabelSelector{MatchLabels: labels},
			wantBack:     v1.ReplicationControllerSpec{Selector: labels, Template: &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := asReplicaSet(&v1.ReplicationController{Spec: tc.spec})
			if diff := cmp.Diff(tc.wantSelector, set.Spec.Selector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantBack, asReplicationController(set).Spec); diff != "" {
				t.Errorf("back again (-want +got):\n%s", diff)
			}
		})
	}
}
