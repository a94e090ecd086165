// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewStatus(t *testing.T) {
	s := stateOf(t, newSet(5, minReady(10)), 0, "R m u G g F R")
	s.set.Status.Conditions = []apps.StatefulSetCondition{{Type: "Mine"}}
	got := newStatus(s, nil, 3)
	want := apps.StatefulSetStatus{ObservedGeneration: 1, Replicas: 7, ReadyReplicas: 5, AvailableReplicas: 4, CurrentReplicas: 2, UpdatedReplicas: 3,
		CurrentRevision: "current", UpdateRevision: "update"}
	if got.Replicas != want.Replicas || got.ReadyReplicas != want.ReadyReplicas || got.AvailableReplicas != want.AvailableReplicas ||
		got.CurrentReplicas != want.CurrentReplicas || got.UpdatedReplicas != want.UpdatedReplicas || got.ObservedGeneration != 1 ||
		got.CurrentRevision != want.CurrentRevision || got.UpdateRevision != want.UpdateRevision || *got.CollisionCount != 3 || len(got.Conditions) != 1 {
		t.Errorf("status %+v", got)
	}
}

// A Pod that the API server has not put in a phase does not count yet.
func TestPodWithoutPhaseDoesNotCount(t *testing.T) {
	s := stateOf(t, newSet(2), 0, "R R")
	s.replicas[1].pod.Status = v1.PodStatus{}
	if got := newStatus(s, nil, 0); got.Replicas != 1 || got.UpdatedReplicas != 1 {
		t.Errorf("status %+v", got)
	}
}

func TestCompleteUpdate(t *testing.T) {
	for _, test := range []struct {
		name string
		set  *apps.StatefulSet
		pods string
		want string
	}{
		{"all updated and ready", newSet(2), "R R", "update"},
		{"on delete, all updated and ready", newSet(2, strategy(apps.OnDeleteStatefulSetStrategyType)), "R R", "update"},
		{"on delete, one of two", newSet(2, strategy(apps.OnDeleteStatefulSetStrategyType)), "R r", "current"},
		{"not all ready", newSet(2), "R U", "current"},
		{"not all there", newSet(2), "R", "current"},
		{"too many", newSet(2), "R R R", "current"},
		{"too many, one of them old and not ready", newSet(2), "R R u", "current"},
		{"one goes", newSet(2), "R G", "current"},
		{"none wanted", newSet(0), "", "update"},
		{"partition, all updated by hand", newSet(2, partitioned(1)), "R R", "update"},
	} {
		s := stateOf(t, test.set, 0, test.pods)
		got := newStatus(s, nil, 0)
		if got.CurrentRevision != test.want {
			t.Errorf("%s: current revision %s", test.name, got.CurrentRevision)
		}
		if test.want == "update" && got.CurrentReplicas != got.UpdatedReplicas {
			t.Errorf("%s: %d current, %d updated", test.name, got.CurrentReplicas, got.UpdatedReplicas)
		}
	}
}

func TestStatusDiffers(t *testing.T) {
	s := stateOf(t, newSet(2), 0, "R r")
	base := newStatus(s, nil, 0)
	set := newSet(2)
	set.Status = base
	if statusDiffers(set, &base) {
		t.Error("a status differs from itself")
	}
	set.Status.CollisionCount = nil
	if statusDiffers(set, &base) {
		t.Error("no count differs from none")
	}
	set.Status.CollisionCount = new(int32)
	for name, change := range map[string]func(*apps.StatefulSetStatus){
		"generation": func(s *apps.StatefulSetStatus) { s.ObservedGeneration++ },
		"replicas":   func(s *apps.StatefulSetStatus) { s.Replicas++ },
		"ready":      func(s *apps.StatefulSetStatus) { s.ReadyReplicas++ },
		"available":  func(s *apps.StatefulSetStatus) { s.AvailableReplicas++ },
		"current":    func(s *apps.StatefulSetStatus) { s.CurrentReplicas++ },
		"updated":    func(s *apps.StatefulSetStatus) { s.UpdatedReplicas++ },
		"revision":   func(s *apps.StatefulSetStatus) { s.CurrentRevision = "x" },
		"update":     func(s *apps.StatefulSetStatus) { s.UpdateRevision = "x" },
		"collisions": func(s *apps.StatefulSetStatus) { s.CollisionCount = new(int32(1)) },
		"conditions": func(s *apps.StatefulSetStatus) { s.Conditions = []apps.StatefulSetCondition{{Type: "x"}} },
	} {
		changed := base
		change(&changed)
		if !statusDiffers(set, &changed) {
			t.Errorf("%s makes no difference", name)
		}
	}
	older := base
	older.ObservedGeneration--
	if statusDiffers(set, &older) {
		t.Error("an older generation is written")
	}
}

func TestSetCondition(t *testing.T) {
	earlier := metav1.NewTime(testNow.Add(-time.Hour))
	list := []apps.StatefulSetCondition{{Type: "Other"}, {Type: apps.StatefulSetProgressing, Status: v1.ConditionTrue, Reason: "a", LastTransitionTime: earlier}}
	status := apps.StatefulSetStatus{Conditions: list}
	now := metav1.NewTime(testNow)
	setCondition(&status, *progressing(v1.ConditionTrue, "b", "text"), now)
	if got := status.Conditions[1]; got.Reason != "b" || got.Message != "text" || !got.LastTransitionTime.Equal(&earlier) || list[1].Reason != "a" {
		t.Errorf("condition %+v, before %+v", got, list[1])
	}
	setCondition(&status, *progressing(v1.ConditionFalse, "c", ""), now)
	if got := status.Conditions[1]; got.Status != v1.ConditionFalse || !got.LastTransitionTime.Equal(&now) || len(status.Conditions) != 2 {
		t.Errorf("conditions %+v", status.Conditions)
	}
	empty := apps.StatefulSetStatus{}
	if setCondition(&empty, *progressing(v1.ConditionTrue, "b", ""), now); len(empty.Conditions) != 1 || !empty.Conditions[0].LastTransitionTime.Equal(&now) {
		t.Errorf("conditions %+v", empty.Conditions)
	}
}
