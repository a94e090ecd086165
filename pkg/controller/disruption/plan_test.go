// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newPDB(changes ...func(*policy.PodDisruptionBudget)) *policy.PodDisruptionBudget {
	pdb := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "budget", UID: "uid-budget", ResourceVersion: "5", Generation: 2},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	for _, change := range changes {
		change(pdb)
	}
	return pdb
}

func minAvailable(value string) func(*policy.PodDisruptionBudget) {
	return func(pdb *policy.PodDisruptionBudget) { pdb.Spec.MinAvailable = new(intstr.Parse(value)) }
}

func maxUnavailable(value string) func(*policy.PodDisruptionBudget) {
	return func(pdb *policy.PodDisruptionBudget) { pdb.Spec.MaxUnavailable = new(intstr.Parse(value)) }
}

func disrupted(pod string, ago time.Duration) func(*policy.PodDisruptionBudget) {
	return func(pdb *policy.PodDisruptionBudget) {
		if pdb.Status.DisruptedPods == nil {
			pdb.Status.DisruptedPods = map[string]metav1.Time{}
		}
		pdb.Status.DisruptedPods[pod] = metav1.NewTime(now.Add(-ago))
	}
}

func newPod(name string, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 3,
			Labels: map[string]string{"app": "web"},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unready(pod *v1.Pod)  { pod.Status.Conditions[0].Status = v1.ConditionFalse }
func deleting(pod *v1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(now)) }

func disruptionTarget(status v1.ConditionStatus, reason string, ago time.Duration) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: status, Reason: reason, Message: "why", LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
	}
}

// several returns ready Pods and, after them, unready ones.
func several(ready, notReady int) []*v1.Pod {
	var pods []*v1.Pod
	for i := range ready {
		pods = append(pods, newPod(fmt.Sprintf("ready-%d", i)))
	}
	for i := range notReady {
		pods = append(pods, newPod(fmt.Sprintf("unready-%d", i), unready))
	}
	return pods
}

func scaleOf(replicas ...int32) scales {
	s := scales{byController: map[types.UID]int32{}}
	for i, r := range replicas {
		s.byController[types.UID(fmt.Sprint(i))] = r
	}
	return s
}

func TestStatusNumbers(t *testing.T) {
	type numbers struct{ Allowed, Healthy, Desired, Expected int32 }
	tests := map[string]struct {
		pdb    *policy.PodDisruptionBudget
		pods   []*v1.Pod
		wanted scales
		want   numbers
	}{
		"integer minAvailable counts the pods":                {newPDB(minAvailable("3")), several(5, 1), scales{}, numbers{2, 5, 3, 6}},
		"fewer pods than minAvailable":                        {newPDB(minAvailable("3")), several(2, 0), scales{}, numbers{0, 2, 3, 2}},
		"minAvailable 0":                                      {newPDB(minAvailable("0")), several(2, 0), scales{}, numbers{2, 2, 0, 2}},
		"minAvailable without pods":                           {newPDB(minAvailable("3")), nil, scales{}, numbers{0, 0, 3, 0}},
		"percentage minAvailable is of the scale, rounded up": {newPDB(minAvailable("28%")), several(10, 0), scaleOf(10), numbers{7, 10, 3, 10}},
		"percentage of several controllers":                   {newPDB(minAvailable("28%")), several(11, 0), scaleOf(5, 6), numbers{7, 11, 4, 11}},
		"minAvailable 100%":                                   {newPDB(minAvailable("100%")), several(3, 0), scaleOf(3), numbers{0, 3, 3, 3}},
		"integer maxUnavailable is taken from the scale":      {newPDB(maxUnavailable("1")), several(5, 0), scaleOf(5), numbers{1, 5, 4, 5}},
		"maxUnavailable while pods are missing":               {newPDB(maxUnavailable("2")), several(5, 0), scaleOf(7), numbers{0, 5, 5, 7}},
		"maxUnavailable beyond the scale":                     {newPDB(maxUnavailable("9")), several(2, 0), scaleOf(3), numbers{2, 2, 0, 3}},
		"percentage maxUnavailable, rounded up":               {newPDB(maxUnavailable("30%")), several(7, 0), scaleOf(7), numbers{3, 7, 4, 7}},
		"scaled to nothing":                                   {newPDB(maxUnavailable("30%")), several(2, 0), scaleOf(0), numbers{0, 2, 0, 0}},
		"pods that are deleted or unready are not healthy":    {newPDB(minAvailable("1")), append(several(2, 1), newPod("d", deleting)), scales{}, numbers{1, 2, 1, 4}},
		"neither":                        {newPDB(), several(3, 0), scales{}, numbers{0, 3, 0, 0}},
		"a disrupted pod is not healthy": {newPDB(minAvailable("1"), disrupted("ready-0", time.Second)), several(3, 0), scales{}, numbers{1, 2, 1, 3}},
		"a pod that was not deleted in time is healthy again": {newPDB(minAvailable("1"), disrupted("ready-0", DeletionTimeout)), several(3, 0), scales{}, numbers{2, 3, 1, 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := makePlan(tc.pdb, tc.pods, tc.wanted, now)
			if err != nil {
				t.Fatal(err)
			}
			got := numbers{p.status.DisruptionsAllowed, p.status.CurrentHealthy, p.status.DesiredHealthy, p.status.ExpectedPods}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			if p.status.ObservedGeneration != 2 || !p.write {
				t.Errorf("generation %d, write %t", p.status.ObservedGeneration, p.write)
			}
			reason, status := policy.InsufficientPodsReason, metav1.ConditionFalse
			if tc.want.Allowed > 0 {
				reason, status = policy.SufficientPodsReason, metav1.ConditionTrue
			}
			if len(p.status.Conditions) != 1 || p.status.Conditions[0].Reason != reason || p.status.Conditions[0].Status != status ||
				p.status.Conditions[0].Type != policy.DisruptionAllowedCondition || p.status.Conditions[0].ObservedGeneration != 2 {
				t.Errorf("conditions %v, want %s %s", p.status.Conditions, status, reason)
			}
		})
	}
}

func TestMalformedPercentageIsAnError(t *testing.T) {
	for _, pdb := range []*policy.PodDisruptionBudget{newPDB(minAvailable("many")), newPDB(maxUnavailable("ten%"))} {
		if _, err := makePlan(pdb, nil, scaleOf(3), now); err == nil {
			t.Errorf("no error for %+v", pdb.Spec)
		}
	}
}

// A budget that is right is not written, and what others put into its conditions stays.
func TestStatusIsWrittenOnce(t *testing.T) {
	pdb := newPDB(maxUnavailable("1"))
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Because", LastTransitionTime: metav1.NewTime(now)}
	pdb.Status.Conditions = []metav1.Condition{other}
	p, err := makePlan(pdb, several(3, 0), scaleOf(3), now)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.status.Conditions) != 2 || p.status.Conditions[0] != other {
		t.Errorf("conditions %v, want the other one kept", p.status.Conditions)
	}
	pdb.Status = p.status
	again, err := makePlan(pdb, several(3, 0), scaleOf(3), now.Add(time.Hour))
	if err != nil || again.write {
		t.Errorf("written again: %t, %v", again.write, err)
	}
	pdb.Generation++
	if again, _ = makePlan(pdb, several(3, 0), scaleOf(3), now); !again.write {
		t.Error("a new generation is not acknowledged")
	}
}

func TestDisruptedPods(t *testing.T) {
	pdb := newPDB(minAvailable("1"),
		disrupted("young", 20*time.Second), disrupted("older", 30*time.Second), disrupted("overdue", DeletionTimeout),
		disrupted("deleting", time.Second), disrupted("gone", time.Second))
	pods := []*v1.Pod{newPod("young"), newPod("older"), newPod("overdue"), newPod("deleting", deleting), newPod("bystander")}
	p, err := makePlan(pdb, pods, scales{}, now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]metav1.Time{"young": pdb.Status.DisruptedPods["young"], "older": pdb.Status.DisruptedPods["older"]}
	if diff := cmp.Diff(want, p.status.DisruptedPods); diff != "" {
		t.Errorf("disrupted pods (-want +got):\n%s", diff)
	}
	if p.recheck != DeletionTimeout-30*time.Second {
		t.Errorf("recheck after %s, want when the older one is overdue", p.recheck)
	}
	if len(p.overdue) != 1 || p.overdue[0].Name != "overdue" {
		t.Errorf("overdue %v", p.overdue)
	}
}

func TestFailSafe(t *testing.T) {
	pdb := newPDB(maxUnavailable("1"))
	pdb.Status = policy.PodDisruptionBudgetStatus{DisruptionsAllowed: 3, CurrentHealthy: 4, ObservedGeneration: 1}
	status, write := failSafe(pdb, errors.New("nobody knows"), now)
	if !write || status.DisruptionsAllowed != 0 || status.CurrentHealthy != 4 || status.ObservedGeneration != 1 {
		t.Errorf("write %t, status %+v", write, status)
	}
	if c := status.Conditions[0]; c.Reason != policy.SyncFailedReason || c.Status != metav1.ConditionFalse || c.Message != "nobody knows" || c.ObservedGeneration != 1 {
		t.Errorf("condition %+v", c)
	}
	pdb.Status = status
	if _, write := failSafe(pdb, errors.New("nobody knows"), now.Add(time.Hour)); write {
		t.Error("the same failure is written again")
	}
	recovered, err := makePlan(pdb, several(3, 0), scaleOf(3), now)
	if err != nil || recovered.status.Conditions[0].Reason != policy.SufficientPodsReason || recovered.status.Conditions[0].Message != "" {
		t.Errorf("after the failure: %+v, %v", recovered.status.Conditions, err)
	}
}

func TestStaleness(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		left time.Duration
		want bool
	}{
		"no condition":           {newPod("p"), 0, false},
		"in progress":            {newPod("p", disruptionTarget(v1.ConditionTrue, "EvictionByEvictionAPI", 30*time.Second)), 90 * time.Second, true},
		"stale":                  {newPod("p", disruptionTarget(v1.ConditionTrue, "PreemptionByScheduler", 3*time.Minute)), -time.Minute, true},
		"taken back":             {newPod("p", disruptionTarget(v1.ConditionFalse, "", 3*time.Minute)), 0, false},
		"the pod is going":       {newPod("p", deleting, disruptionTarget(v1.ConditionTrue, "EvictionByEvictionAPI", 3*time.Minute)), 0, false},
		"the pod has failed":     {newPod("p", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, disruptionTarget(v1.ConditionTrue, "EvictionByEvictionAPI", 3*time.Minute)), 0, false},
		"the kubelet's decision": {newPod("p", disruptionTarget(v1.ConditionTrue, v1.PodReasonTerminationByKubelet, 3*time.Minute)), 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			when, ok := staleness(tc.pod, 2*time.Minute)
			if ok != tc.want || (ok && when.Sub(now) != tc.left) {
				t.Errorf("got %s (in %s), %t", when, when.Sub(now), ok)
			}
		})
	}
}

// Whatever the budget and the Pods: if what is allowed is disrupted, the desired number stays healthy.
func TestAllowedDisruptionsLeaveEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "value"))
		if rapid.Bool().Draw(t, "percentage") {
			value = fmt.Sprint(rapid.IntRange(0, 100).Draw(t, "percent"), "%")
		}
		bound := rapid.SampledFrom([]func(string) func(*policy.PodDisruptionBudget){minAvailable, maxUnavailable}).Draw(t, "bound")
		pods := several(rapid.IntRange(0, 15).Draw(t, "ready"), rapid.IntRange(0, 5).Draw(t, "unready"))
		wanted := scaleOf(rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 3).Draw(t, "scales")...)
		p, err := makePlan(newPDB(bound(value)), pods, wanted, now)
		if err != nil {
			t.Fatal(err)
		}
		s := p.status
		if s.DisruptionsAllowed < 0 || s.CurrentHealthy-s.DisruptionsAllowed < min(s.DesiredHealthy, s.CurrentHealthy) {
			t.Fatalf("%+v allows too much", s)
		}
		if s.DisruptionsAllowed > 0 && s.ExpectedPods == 0 {
			t.Fatalf("%+v allows disruptions of nothing expected", s)
		}
	})
}
