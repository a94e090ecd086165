// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var testNow = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

type setOption func(*apps.StatefulSet)

// newSet returns a set "web" as the API server would default it.
func newSet(replicas int, options ...setOption) *apps.StatefulSet {
	set := &apps.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set-uid", Generation: 1, Annotations: map[string]string{"note": "x"}},
		Spec: apps.StatefulSetSpec{
			Replicas:    new(int32(replicas)),
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			ServiceName: "svc",
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i:1"}}},
			},
			PodManagementPolicy: apps.OrderedReadyPodManagement,
			UpdateStrategy: apps.StatefulSetUpdateStrategy{
				Type:          apps.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &apps.RollingUpdateStatefulSetStrategy{Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1))},
			},
			RevisionHistoryLimit: new(int32(10)),
		},
	}
	for _, option := range options {
		option(set)
	}
	return set
}

func parallel(set *apps.StatefulSet) { set.Spec.PodManagementPolicy = apps.ParallelPodManagement }

func strategy(kind apps.StatefulSetUpdateStrategyType) setOption {
	return func(set *apps.StatefulSet) {
		set.Spec.UpdateStrategy = apps.StatefulSetUpdateStrategy{Type: kind}
	}
}

func partitioned(partition int32) setOption {
	return func(set *apps.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &partition }
}

func unavailableUpTo(n int) setOption {
	return func(set *apps.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(int32(n)))
	}
}

func startingAt(start int32) setOption {
	return func(set *apps.StatefulSet) { set.Spec.Ordinals = &apps.StatefulSetOrdinals{Start: start} }
}

func minReady(seconds int32) setOption {
	return func(set *apps.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}

func withImage(image string) setOption {
	return func(set *apps.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Image = image
		set.Generation++
	}
}

func withClaim(set *apps.StatefulSet) {
	set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"tier": "disk", "app": "overridden"}},
	})
}

func retaining(whenDeleted, whenScaled apps.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(set *apps.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &apps.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: whenDeleted, WhenScaled: whenScaled}
	}
}

const (
	keep = apps.RetainPersistentVolumeClaimRetentionPolicyType
	drop = apps.DeletePersistentVolumeClaimRetentionPolicyType
)

// podIn returns the Pod of an ordinal in a state, given by one letter:
//
//	r ready for long   m ready since a second   u running, not ready   p pending
//	g going, ready     f failed                 s succeeded            x failed and going
//	c crash-looping    b not ready, for two minutes
//
// An upper-case letter is of the update revision, a lower-case one of the current, and a
// letter after an exclamation mark of a third.
func podIn(t tester, set *apps.StatefulSet, ordinal int, letter string) *v1.Pod {
	t.Helper()
	revision := "current"
	if strings.HasPrefix(letter, "!") {
		revision, letter = "third", letter[1:]
	} else if letter == strings.ToUpper(letter) {
		revision, letter = "update", strings.ToLower(letter)
	}
	pod, err := newPod(set, &set.Spec.Template, revision, ordinal)
	if err != nil {
		t.Fatalf("making a pod: %v", err)
	}
	pod.UID = types.UID("uid-of-" + pod.Name)
	pod.CreationTimestamp = metav1.NewTime(testNow.Add(-time.Hour))
	ready := func(status v1.ConditionStatus, since time.Duration) {
		pod.Status.Phase = v1.PodRunning
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(testNow.Add(-since))}}
	}
	switch letter {
	case "r":
		ready(v1.ConditionTrue, time.Hour)
	case "m":
		ready(v1.ConditionTrue, time.Second)
	case "u":
		ready(v1.ConditionFalse, time.Second)
	case "b":
		ready(v1.ConditionFalse, 2*time.Minute)
	case "c":
		ready(v1.ConditionFalse, time.Second)
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	case "p":
		pod.Status.Phase = v1.PodPending
		pod.CreationTimestamp = metav1.NewTime(testNow.Add(-time.Second))
	case "g":
		ready(v1.ConditionTrue, time.Hour)
		pod.DeletionTimestamp = new(metav1.NewTime(testNow))
	case "f":
		pod.Status.Phase = v1.PodFailed
	case "s":
		pod.Status.Phase = v1.PodSucceeded
	case "x":
		pod.Status.Phase = v1.PodFailed
		pod.DeletionTimestamp = new(metav1.NewTime(testNow))
	default:
		t.Fatalf("no such state of a pod: %q", letter)
	}
	return pod
}

// podsIn returns the Pods of ordinals from..., one letter each; "-" is none.
func podsIn(t tester, set *apps.StatefulSet, from int, letters string) []*v1.Pod {
	t.Helper()
	var pods []*v1.Pod
	for i, letter := range strings.Fields(letters) {
		if letter != "-" {
			pods = append(pods, podIn(t, set, from+i, letter))
		}
	}
	return pods
}

func noClaims(string) *v1.PersistentVolumeClaim { return nil }

func isDeleted(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil }

// stateOf returns the state of a set whose Pods are given by letters, with the gates of 1.37.
func stateOf(t tester, set *apps.StatefulSet, from int, letters string) *state {
	t.Helper()
	s := newState(set, podsIn(t, set, from, letters), isDeleted, noClaims)
	s.current, s.update, s.now = "current", "update", testNow
	s.gates = gates{maxUnavailable: true, semanticComparison: true}
	var err error
	if s.maxUnavailable, err = maxUnavailable(set); err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// text writes a plan as a line: steps that run together are in braces.
func (p plan) text() string {
	var steps []string
	for _, step := range p.steps {
		var actions []string
		for _, a := range step.actions {
			actions = append(actions, fmt.Sprintf("%v %d", a.verb, a.replica.ordinal))
		}
		text := strings.Join(actions, ", ")
		if step.together {
			text = "{" + text + "}"
		}
		steps = append(steps, text)
	}
	return strings.Join(steps, "; ")
}
