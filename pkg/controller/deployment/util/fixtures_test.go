// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func template(image string) v1.PodTemplateSpec {
	return v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}},
	}
}

func rolling(replicas int32, surge, unavailable intstr.IntOrString) *apps.Deployment {
	return &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "d-uid"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("a"),
			Strategy: apps.DeploymentStrategy{
				Type:          apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
			},
		},
	}
}

func recreate(replicas int32) *apps.Deployment {
	d := rolling(replicas, intstr.FromInt32(0), intstr.FromInt32(0))
	d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
	return d
}

// replicaSet is older the smaller age is.
func replicaSet(name, image string, replicas int32, age int) *apps.ReplicaSet {
	t := template(image)
	t.Labels[apps.DefaultDeploymentUniqueLabelKey] = name
	return &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name + "-uid"),
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Minute)),
			Labels:            map[string]string{"app": "web"},
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d-uid", Controller: ptr.To(true)}},
		},
		Spec: apps.ReplicaSetSpec{Replicas: &replicas, Template: t},
	}
}

func annotated(rs *apps.ReplicaSet, pairs ...any) *apps.ReplicaSet {
	rs.Annotations = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		rs.Annotations[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return rs
}

func names(sets []*apps.ReplicaSet) []string {
	out := []string{}
	for _, rs := range sets {
		out = append(out, rs.Name)
	}
	return out
}
