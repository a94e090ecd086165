// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/pkg/controller"
)

var (
	testNow   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	appLabels = map[string]string{"app": "web"}
	setKind   = apps.SchemeGroupVersion.WithKind("ReplicaSet")
)

func ago(d time.Duration) time.Time { return testNow.Add(-d) }

func newSet(name string, replicas int32) *apps.ReplicaSet {
	return &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1", Generation: 1},
		Spec: apps.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: appLabels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels}},
		},
	}
}

type podOption func(*v1.Pod)

func newPod(name string, owner *apps.ReplicaSet, options ...podOption) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1", Labels: appLabels},
		Spec:       v1.PodSpec{NodeName: "node"},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, setKind)}
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func onNode(node string) podOption        { return func(p *v1.Pod) { p.Spec.NodeName = node } }
func inPhase(phase v1.PodPhase) podOption { return func(p *v1.Pod) { p.Status.Phase = phase } }
func labelled(kv map[string]string) podOption {
	return func(p *v1.Pod) { p.Labels = kv }
}
func createdAt(at time.Time) podOption {
	return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}
func leaving() podOption {
	return func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testNow)) }
}
func readySince(at time.Time) podOption {
	return func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}
func ready() podOption { return readySince(ago(time.Hour)) }

func nPods(n int, owner *apps.ReplicaSet, options ...podOption) []*v1.Pod {
	var pods []*v1.Pod
	for i := range n {
		pods = append(pods, newPod(fmt.Sprintf("p%d", i), owner, options...))
	}
	return pods
}

func names(pods []*v1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return strings.Join(all, " ")
}

func TestMakePlan(t *testing.T) {
	set := newSet("web", 3)
	deleted := newSet("web", 3)
	deleted.DeletionTimestamp = new(metav1.NewTime(testNow))
	tests := []struct {
		name       string
		set        *apps.ReplicaSet
		claimed    int
		burst      int
		wantCreate int
		wantRemove int
	}{
		{"as many as wanted", set, 3, 500, 0, 0},
		{"too few", set, 1, 500, 2, 0},
		{"too few, within the burst", set, 0, 2, 2, 0},
		{"too many", set, 5, 500, 0, 2},
		{"too many, within the burst", set, 9, 4, 0, 4},
		{"in deletion: nothing is created", deleted, 0, 500, 0, 0},
		{"in deletion: nothing is deleted", deleted, 5, 500, 0, 0},
		{"replicas unset", &apps.ReplicaSet{}, 1, 500, 0, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := makePlan(&state{set: tc.set, claimed: nPods(tc.claimed, tc.set), burst: tc.burst, now: testNow})
			if p.create != tc.wantCreate || len(p.remove) != tc.wantRemove {
				t.Errorf("create %d and delete %d, want %d and %d", p.create, len(p.remove), tc.wantCreate, tc.wantRemove)
			}
		})
	}
}

func TestPodsToDelete(t *testing.T) {
	set := newSet("web", 0)
	unscheduled := newPod("unscheduled", set, onNode(""), inPhase(v1.PodPending))
	pending := newPod("pending", set, inPhase(v1.PodPending))
	notReady := newPod("not-ready", set)
	colocated := newPod("colocated", set, ready())
	alone := newPod("alone", set, ready(), onNode("other"))
	cheap := newPod("cheap", set, ready(), onNode("third"), func(p *v1.Pod) {
		p.Annotations = map[string]string{v1.PodDeletionCost: "-1"}
	})
	neighbour := newPod("neighbour", newSet("sibling", 1), ready())
	deadNeighbour := newPod("dead-neighbour", newSet("sibling", 1), onNode("other"), inPhase(v1.PodFailed))
	mixed := []*v1.Pod{alone, colocated, notReady, pending, unscheduled}
	tests := []struct {
		name    string
		claimed []*v1.Pod
		related []*v1.Pod
		count   int
		want    string
	}{
		{"none of none", nil, nil, 0, ""},
		{"all, as they come", mixed, nil, 5, "alone colocated not-ready pending unscheduled"},
		{"none", mixed, nil, 0, ""},
		{"unscheduled before scheduled", []*v1.Pod{pending, unscheduled}, nil, 1, "unscheduled"},
		{"pending before running", []*v1.Pod{notReady, pending}, nil, 1, "pending"},
		{"not ready before ready", []*v1.Pod{alone, notReady}, nil, 1, "not-ready"},
		{"on the crowded node before alone", []*v1.Pod{alone, colocated}, []*v1.Pod{alone, colocated, neighbour}, 1, "colocated"},
		{"finished neighbours make no crowd", []*v1.Pod{alone, colocated}, []*v1.Pod{alone, colocated, neighbour, deadNeighbour, deadNeighbour}, 1, "colocated"},
		{"cost before the crowd", []*v1.Pod{alone, colocated, cheap}, []*v1.Pod{alone, colocated, neighbour, cheap}, 1, "cheap"},
		{"in order (BC024)", append(mixed, cheap), []*v1.Pod{alone, colocated, neighbour, cheap}, 5, "unscheduled pending not-ready cheap colocated"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.claimed)
			got := podsToDelete(&state{set: set, claimed: tc.claimed, related: tc.related, now: testNow, features: Features{DeletionCost: true}}, tc.count)
			if names(got) != tc.want {
				t.Errorf("%q, want %q", names(got), tc.want)
			}
			if !slices.Equal(before, tc.claimed) {
				t.Error("the order of the claimed Pods changed")
			}
		})
	}
	// The gate is off: the annotation counts for nothing, the crowd does.
	got := podsToDelete(&state{set: set, claimed: []*v1.Pod{cheap, colocated}, related: []*v1.Pod{colocated, neighbour, cheap}, now: testNow}, 1)
	if names(got) != "colocated" {
		t.Errorf("PodDeletionCost off: %q", names(got))
	}
}

func TestDeletionAgeRatios(t *testing.T) {
	set := newSet("web", 1)
	young := newPod("young", set, ready(), createdAt(ago(10*time.Second)))
	old := newPod("old", set, ready(), createdAt(ago(35*time.Second)))
	notReady := newPod("not-ready", set, createdAt(ago(time.Second)))
	if got := deletionAgeRatios([]*v1.Pod{young, old, notReady}, []*v1.Pod{old, notReady, young}, testNow); !slices.Equal(got, []float64{3, 1}) {
		t.Errorf("ratios %v, want 3 and 1: whole numbers, ready Pods alone", got)
	}
	now := newPod("now", set, ready(), createdAt(testNow))
	if got := deletionAgeRatios([]*v1.Pod{now}, []*v1.Pod{now}, testNow); !slices.Equal(got, []float64{0}) {
		t.Errorf("a Pod of this moment: %v", got)
	}
}

func TestNewStatusCounts(t *testing.T) {
	fully := map[string]string{"app": "web", "tier": "front"}
	set := newSet("web", 4)
	set.Spec.Template.Labels = fully
	set.Spec.MinReadySeconds = 60
	set.Generation = 7
	set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas = 9, 9, 9
	s := &state{
		set: set, now: testNow, terminating: 2,
		claimed: []*v1.Pod{
			newPod("a", set, labelled(fully), readySince(ago(time.Minute))),
			newPod("b", set, labelled(fully), readySince(ago(59*time.Second))),
			newPod("c", set, ready()),
			newPod("d", set),
		},
	}
	want := apps.ReplicaSetStatus{Replicas: 4, FullyLabeledReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 2, ObservedGeneration: 7}
	if got := newStatus(s, plan{}, nil); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.features.TerminatingReplicas = true
	want.TerminatingReplicas = new(int32(2))
	if got := newStatus(s, plan{}, nil); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("with terminating replicas: %+v, want %+v", got, want)
	}
	// The gate was turned off since the status was written.
	s.features.TerminatingReplicas = false
	set.Status.TerminatingReplicas = new(int32(2))
	if got := newStatus(s, plan{}, nil); got.TerminatingReplicas != nil {
		t.Errorf("terminatingReplicas stays %d with the gate off", *got.TerminatingReplicas)
	}
}

func TestFailureCondition(t *testing.T) {
	failed := errors.New("fake manageReplicas error")
	condition := func(reason, message string) apps.ReplicaSetCondition {
		return apps.ReplicaSetCondition{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(testNow)}
	}
	foreign := apps.ReplicaSetCondition{Type: "example.com/Own", Status: v1.ConditionTrue}
	rejected := &backoff{last: newPod("r", nil, func(p *v1.Pod) { p.Status.Reason, p.Status.Message = "NodeAffinity", "no" })}
	tests := []struct {
		name string
		pods int // of 2
		have []apps.ReplicaSetCondition
		plan plan
		err  error
		want []apps.ReplicaSetCondition
	}{
		{"too few", 1, nil, plan{}, failed, []apps.ReplicaSetCondition{condition("FailedCreate", failed.Error())}},
		{"too many", 3, nil, plan{}, failed, []apps.ReplicaSetCondition{condition("FailedDelete", failed.Error())}},
		{"as many as wanted", 2, nil, plan{}, failed, nil},
		{"no failure", 1, nil, plan{}, nil, nil},
		{"failure mended", 2, []apps.ReplicaSetCondition{condition("FailedCreate", "x"), foreign}, plan{}, nil, []apps.ReplicaSetCondition{foreign}},
		{"one that stands is not replaced", 1, []apps.ReplicaSetCondition{condition("FailedDelete", "x")}, plan{}, failed, []apps.ReplicaSetCondition{condition("FailedDelete", "x")}},
		{"rejected Pods", 1, []apps.ReplicaSetCondition{foreign}, plan{backoff: rejected}, nil, []apps.ReplicaSetCondition{foreign, condition(podsFailingReason, rejected.String())}},
		{"failure tells more than rejected Pods", 1, nil, plan{backoff: rejected}, failed, []apps.ReplicaSetCondition{condition("FailedCreate", failed.Error())}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			set := newSet("web", 2)
			set.Status.Conditions = tc.have
			before := slices.Clone(tc.have)
			got := newStatus(&state{set: set, claimed: nPods(tc.pods, set), now: testNow}, tc.plan, tc.err)
			if !slices.Equal(got.Conditions, tc.want) {
				t.Errorf("conditions %+v, want %+v", got.Conditions, tc.want)
			}
			if !slices.Equal(before, set.Status.Conditions) {
				t.Error("the set's own conditions changed")
			}
		})
	}
}

func TestConditions(t *testing.T) {
	imagePull := apps.ReplicaSetCondition{Type: "ImagePullBackOff", Status: v1.ConditionTrue, Reason: "NonExistImage"}
	failure := apps.ReplicaSetCondition{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "OtherFailure"}
	both := func() apps.ReplicaSetStatus {
		return apps.ReplicaSetStatus{Conditions: []apps.ReplicaSetCondition{imagePull, failure}}
	}

	if got := GetCondition(both(), apps.ReplicaSetReplicaFailure); got == nil || *got != failure {
		t.Errorf("GetCondition: %v", got)
	}
	if got := GetCondition(apps.ReplicaSetStatus{Conditions: []apps.ReplicaSetCondition{imagePull}}, apps.ReplicaSetReplicaFailure); got != nil {
		t.Errorf("GetCondition of none: %v", got)
	}

	status := apps.ReplicaSetStatus{}
	SetCondition(&status, failure)
	if !slices.Equal(status.Conditions, []apps.ReplicaSetCondition{failure}) {
		t.Errorf("set for the first time: %v", status.Conditions)
	}
	SetCondition(&status, imagePull)
	if !slices.Equal(status.Conditions, []apps.ReplicaSetCondition{failure, imagePull}) {
		t.Errorf("set another: %v", status.Conditions)
	}
	other := failure
	other.Reason = "Overwritten"
	SetCondition(&status, other)
	if !slices.Equal(status.Conditions, []apps.ReplicaSetCondition{imagePull, other}) {
		t.Errorf("overwrite: %v", status.Conditions)
	}
	sameReason := other
	sameReason.Message = "news"
	SetCondition(&status, sameReason)
	if !slices.Equal(status.Conditions, []apps.ReplicaSetCondition{imagePull, other}) {
		t.Errorf("same status and reason: %v", status.Conditions)
	}

	status = apps.ReplicaSetStatus{}
	RemoveCondition(&status, apps.ReplicaSetReplicaFailure)
	if len(status.Conditions) != 0 {
		t.Errorf("remove from none: %v", status.Conditions)
	}
	status = both()
	RemoveCondition(&status, apps.ReplicaSetReplicaFailure)
	RemoveCondition(&status, "Missing")
	if !slices.Equal(status.Conditions, []apps.ReplicaSetCondition{imagePull}) {
		t.Errorf("remove: %v", status.Conditions)
	}
}

func TestStatusDiffers(t *testing.T) {
	set := newSet("web", 1)
	set.Status = apps.ReplicaSetStatus{
		Replicas: 1, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, ObservedGeneration: 1,
		TerminatingReplicas: new(int32(1)), Conditions: []apps.ReplicaSetCondition{{Type: "T"}},
	}
	for name, change := range map[string]func(*apps.ReplicaSetStatus){
		"replicas":             func(s *apps.ReplicaSetStatus) { s.Replicas++ },
		"fullyLabeledReplicas": func(s *apps.ReplicaSetStatus) { s.FullyLabeledReplicas++ },
		"readyReplicas":        func(s *apps.ReplicaSetStatus) { s.ReadyReplicas++ },
		"availableReplicas":    func(s *apps.ReplicaSetStatus) { s.AvailableReplicas++ },
		"observedGeneration":   func(s *apps.ReplicaSetStatus) { s.ObservedGeneration++ },
		"terminatingReplicas":  func(s *apps.ReplicaSetStatus) { s.TerminatingReplicas = new(int32(0)) },
		"terminating unset":    func(s *apps.ReplicaSetStatus) { s.TerminatingReplicas = nil },
		"conditions":           func(s *apps.ReplicaSetStatus) { s.Conditions = nil },
	} {
		changed := *set.Status.DeepCopy()
		if statusDiffers(set, changed) {
			t.Fatal("a copy differs")
		}
		change(&changed)
		if !statusDiffers(set, changed) {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}

func genPods(set *apps.ReplicaSet) *rapid.Generator[[]*v1.Pod] {
	return rapid.Custom(func(t *rapid.T) []*v1.Pod {
		var pods []*v1.Pod
		for i := range rapid.IntRange(0, 12).Draw(t, "count") {
			pod := newPod(fmt.Sprintf("p%d", i), set,
				onNode(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node")),
				inPhase(rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning}).Draw(t, "phase")),
				createdAt(ago(time.Duration(rapid.IntRange(0, 100000).Draw(t, "age"))*time.Second)))
			if rapid.Bool().Draw(t, "ready") {
				readySince(ago(time.Duration(rapid.IntRange(0, 100000).Draw(t, "since")) * time.Second))(pod)
			}
			if cost := rapid.IntRange(-1, 1).Draw(t, "cost"); cost != 0 {
				pod.Annotations = map[string]string{v1.PodDeletionCost: fmt.Sprint(cost)}
			}
			pods = append(pods, pod)
		}
		return pods
	})
}

// Safety: a plan never leads past the wanted number, and never spares a Pod that goes
// before one it deletes. Liveness: carried out again and again it ends at that number.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := newSet("web", rapid.Int32Range(0, 12).Draw(t, "replicas"))
		want := int(*set.Spec.Replicas)
		s := &state{
			set: set, now: testNow, burst: rapid.IntRange(1, 5).Draw(t, "burst"),
			features: Features{DeletionCost: rapid.Bool().Draw(t, "costGate")},
		}
		s.claimed = genPods(set).Draw(t, "pods")
		for rounds := 0; ; rounds++ {
			s.owned, s.related = s.claimed, s.claimed
			p := makePlan(s)
			if p.create == 0 && len(p.remove) == 0 {
				break
			}
			if rounds > 24 {
				t.Fatal("the plan has no end")
			}
			if p.create > 0 && len(p.remove) > 0 {
				t.Fatal("creates and deletes at once")
			}
			if len(s.claimed)+p.create > max(want, len(s.claimed)) || len(s.claimed)-len(p.remove) < min(want, len(s.claimed)) {
				t.Fatalf("%d Pods, %d wanted: create %d, delete %d", len(s.claimed), want, p.create, len(p.remove))
			}
			if p.create > s.burst || len(p.remove) > s.burst {
				t.Fatalf("burst %d: create %d, delete %d", s.burst, p.create, len(p.remove))
			}
			s.claimed = checkVictims(t, s, p.remove)
			for i := range p.create {
				s.claimed = append(s.claimed, newPod(fmt.Sprintf("new-%d-%d", rounds, i), set))
			}
		}
		if len(s.claimed) != want {
			t.Fatalf("ends with %d of %d", len(s.claimed), want)
		}
	})
}

// checkVictims returns the Pods that stay.
func checkVictims(t *rapid.T, s *state, victims []*v1.Pod) []*v1.Pod {
	stay := slices.DeleteFunc(slices.Clone(s.claimed), func(p *v1.Pod) bool { return slices.Contains(victims, p) })
	if len(stay)+len(victims) != len(s.claimed) {
		t.Fatalf("deletes what is not claimed, or one twice: %s", names(victims))
	}
	for _, victim := range victims {
		for _, other := range stay {
			pair := []*v1.Pod{other, victim}
			var order sort.Interface = controller.ActivePodsWithRanks{
				Pods: pair, Rank: ranks(pair, s.related), Now: metav1.NewTime(s.now), IgnoreDeletionCost: !s.features.DeletionCost,
			}
			if order.Less(0, 1) {
				t.Fatalf("%s goes before %s, but stays", other.Name, victim.Name)
			}
		}
	}
	return stay
}
