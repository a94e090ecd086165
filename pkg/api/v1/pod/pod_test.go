// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func withReady(status v1.ConditionStatus, since metav1.Time) *v1.Pod {
	return &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodReady, Status: status, LastTransitionTime: since},
	}}}
}

func TestIsPodAvailable(t *testing.T) {
	before := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	tests := []struct {
		name     string
		pod      *v1.Pod
		minReady int32
		want     bool
	}{
		{"no condition", &v1.Pod{}, 0, false},
		{"not ready", withReady(v1.ConditionFalse, before(time.Hour)), 0, false},
		{"unknown", withReady(v1.ConditionUnknown, before(time.Hour)), 0, false},
		{"ready, nothing to wait for", withReady(v1.ConditionTrue, now), 0, true},
		{"ready, nothing to wait for, time unknown", withReady(v1.ConditionTrue, metav1.Time{}), 0, true},
		{"time unknown", withReady(v1.ConditionTrue, metav1.Time{}), 1, false},
		{"too short", withReady(v1.ConditionTrue, before(29*time.Second)), 30, false},
		{"this moment", withReady(v1.ConditionTrue, before(30*time.Second)), 30, true},
		{"for long", withReady(v1.ConditionTrue, before(time.Minute)), 30, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := IsPodAvailable(tc.pod, tc.minReady, now); got != tc.want {
				t.Errorf("available: %v", got)
			}
		})
	}
}

func TestIsPodTerminal(t *testing.T) {
	for phase, want := range map[v1.PodPhase]bool{
		v1.PodPending: false, v1.PodRunning: false, v1.PodUnknown: false, "": false, v1.PodSucceeded: true, v1.PodFailed: true,
	} {
		if got := IsPodTerminal(&v1.Pod{Status: v1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("%q: %v", phase, got)
		}
	}
}

func TestGetPodCondition(t *testing.T) {
	pod := withReady(v1.ConditionTrue, now)
	if i, c := GetPodCondition(&pod.Status, v1.PodReady); i != 1 || c != &pod.Status.Conditions[1] {
		t.Errorf("Ready: %d, %v", i, c)
	}
	if i, c := GetPodCondition(&pod.Status, v1.PodInitialized); i != -1 || c != nil {
		t.Errorf("Initialized: %d, %v", i, c)
	}
	if i, c := GetPodCondition(nil, v1.PodReady); i != -1 || c != nil {
		t.Errorf("of nil: %d, %v", i, c)
	}
}

func TestUpdatePodCondition(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	tests := []struct {
		name     string
		update   v1.PodCondition
		changed  bool
		wantTime metav1.Time
		wantLen  int
	}{
		{"new type", v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue}, true, now, 3},
		{"same", v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}, false, earlier, 2},
		{"same status, another reason: the time stays", v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "r"}, true, earlier, 2},
		{"another status", v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}, true, now, 2},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pod := withReady(v1.ConditionTrue, earlier)
			if got := UpdatePodConditionAt(&pod.Status, &tc.update, now); got != tc.changed {
				t.Errorf("changed: %v", got)
			}
			_, c := GetPodCondition(&pod.Status, tc.update.Type)
			if len(pod.Status.Conditions) != tc.wantLen || c.Status != tc.update.Status || c.Reason != tc.update.Reason || !c.LastTransitionTime.Equal(&tc.wantTime) {
				t.Errorf("conditions %+v", pod.Status.Conditions)
			}
		})
	}
}
