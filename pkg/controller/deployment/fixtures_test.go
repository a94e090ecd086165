// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func templateOf(image string) v1.PodTemplateSpec {
	return v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}},
	}
}

// deploymentOf has template "new", a progress deadline of 600 s and no history limit.
func deploymentOf(replicas, surge, unavailable int32, changes ...func(*apps.Deployment)) *apps.Deployment {
	d := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "web-uid", Generation: 1, ResourceVersion: "10"},
		Spec: apps.DeploymentSpec{
			Replicas:                new(replicas),
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:                templateOf("new"),
			ProgressDeadlineSeconds: new(int32(600)),
			Strategy: apps.DeploymentStrategy{
				Type: apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{
					MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
				},
			},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func recreating(d *apps.Deployment) {
	d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
}

func paused(d *apps.Deployment) { d.Spec.Paused = true }

func historyLimit(n int32) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Spec.RevisionHistoryLimit = &n }
}

func annotation(key, value string) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		d.Annotations = maps.Clone(d.Annotations)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
	}
}

func complete(d *apps.Deployment) {
	n := *d.Spec.Replicas
	d.Status = apps.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		TerminatingReplicas: new(int32(0)),
		Conditions: []apps.DeploymentCondition{
			condition(apps.DeploymentAvailable, v1.ConditionTrue, util.MinimumReplicasAvailable, "Deployment has minimum availability.", epoch),
			condition(apps.DeploymentProgressing, v1.ConditionTrue, util.NewRSAvailableReason, "done", epoch),
		}}
}

// setOf returns an observed ReplicaSet of deploymentOf's, all pods of which are available. The
// template is its name, so that the one called "new" is the new one; age is in minutes, the oldest
// having the smallest. It was scaled at deployment size desired with surge.
func setOf(name string, replicas int32, age int, desired, surge int32, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	t := templateOf(name)
	t.Labels[apps.DefaultDeploymentUniqueLabelKey] = name
	rs := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name + "-uid"), Generation: 1, ResourceVersion: "5",
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Minute)),
			Labels:            t.Labels,
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(deploymentOf(1, 0, 1), controllerKind)},
			Annotations: map[string]string{
				util.RevisionAnnotation:        fmt.Sprint(age + 1),
				util.DesiredReplicasAnnotation: fmt.Sprint(desired),
				util.MaxReplicasAnnotation:     fmt.Sprint(desired + surge),
			},
		},
		Spec: apps.ReplicaSetSpec{Replicas: &replicas, Template: t,
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(t.Labels)}},
		Status: apps.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1,
			TerminatingReplicas: new(int32(0))},
	}
	for _, change := range changes {
		change(rs)
	}
	return rs
}

func available(n int32) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Status.AvailableReplicas, rs.Status.ReadyReplicas = n, n }
}

func running(n int32) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Status.Replicas = n }
}

func revision(n int) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Annotations[util.RevisionAnnotation] = fmt.Sprint(n) }
}

func snapshotOf(d *apps.Deployment, sets ...*apps.ReplicaSet) snapshot {
	return snapshot{deployment: d, family: familyOf(d, sets), now: epoch.Add(time.Hour), terminatingReplicas: true}
}

// sizesAfter returns how many pods each ReplicaSet wants after the plan.
func sizesAfter(s snapshot, p plan) map[string]int32 {
	sizes := map[string]int32{}
	for _, rs := range s.family.all() {
		sizes[rs.Name] = sizeOf(rs)
	}
	if p.create != nil {
		sizes["created"] = sizeOf(p.create)
	}
	for _, u := range p.updates {
		sizes[u.is.Name] = sizeOf(u.is)
	}
	for _, rs := range p.deletes {
		delete(sizes, rs.Name)
	}
	return sizes
}

func planOf(t *testing.T, s snapshot) plan {
	t.Helper()
	before := s.deployment.DeepCopy()
	var sets []*apps.ReplicaSet
	for _, rs := range s.family.all() {
		sets = append(sets, rs.DeepCopy())
	}
	p, err := makePlan(s)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "the deployment in the cache", before, s.deployment)
	mustEqual(t, "the replica sets in the cache", sets, append([]*apps.ReplicaSet(nil), s.family.all()...))
	return p
}

func mustEqual(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}
