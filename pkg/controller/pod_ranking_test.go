// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func sortBy(s sort.Interface) { sort.Sort(s) }

var testNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type podOption func(*v1.Pod)

func podWith(name string, options ...podOption) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{NodeName: "node"},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func onNode(node string) podOption        { return func(p *v1.Pod) { p.Spec.NodeName = node } }
func inPhase(phase v1.PodPhase) podOption { return func(p *v1.Pod) { p.Status.Phase = phase } }
func withUID(uid string) podOption        { return func(p *v1.Pod) { p.UID = types.UID(uid) } }

func readySince(at time.Time) podOption {
	return func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func createdAt(at time.Time) podOption {
	return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

func withRestarts(n int32) podOption {
	return func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 0}, {RestartCount: n}}
	}
}

func withSidecarRestarts(n int32) podOption {
	return func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}}
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", RestartCount: 99}, {Name: "sidecar", RestartCount: n}}
	}
}

func withCost(cost string) podOption {
	return func(p *v1.Pod) { p.Annotations = map[string]string{v1.PodDeletionCost: cost} }
}

func ago(d time.Duration) time.Time { return testNow.Add(-d) }

func TestActivePodsOrder(t *testing.T) {
	// In the order of deletion.
	want := []*v1.Pod{
		podWith("unassigned", onNode(""), inPhase(v1.PodPending)),
		podWith("pending", inPhase(v1.PodPending)),
		podWith("unknown", inPhase(v1.PodUnknown)),
		podWith("running"),
		podWith("ready-no-time", readySince(time.Time{})),
		podWith("ready-now", readySince(testNow), createdAt(testNow)),
		podWith("ready-restarts-8", readySince(ago(time.Hour)), withRestarts(8), createdAt(ago(time.Hour))),
		podWith("ready-restarts-3", readySince(ago(time.Hour)), withRestarts(3), withSidecarRestarts(0), createdAt(ago(time.Hour))),
		podWith("ready-sidecar-restarts-2", readySince(ago(time.Hour)), withSidecarRestarts(2), createdAt(ago(time.Hour))),
		podWith("ready-sidecar-restarts-1", readySince(ago(time.Hour)), withSidecarRestarts(1), createdAt(ago(time.Hour))),
		podWith("ready-no-creation-time", readySince(ago(time.Hour))),
		podWith("ready-newer", readySince(ago(time.Hour)), createdAt(ago(2*time.Hour))),
		podWith("ready-older", readySince(ago(time.Hour)), createdAt(ago(3*time.Hour))),
	}
	checkOrder(t, want, func(pods []*v1.Pod) sort.Interface { return ActivePods(pods) })
}

func TestActivePodsWithRanksOrder(t *testing.T) {
	// In the order of deletion; the rank of a Pod is the number of Pods of its node here.
	want := []*v1.Pod{
		podWith("unassigned", onNode(""), inPhase(v1.PodPending), withCost("100")),
		podWith("pending", inPhase(v1.PodPending), withCost("100")),
		podWith("unknown", inPhase(v1.PodUnknown)),
		podWith("running"),
		podWith("ready-cheap", readySince(ago(time.Hour)), withCost("-10")),
		podWith("ready-crowded", onNode("crowded"), readySince(ago(time.Hour))),
		podWith("ready-no-time", readySince(time.Time{})),
		podWith("ready-1m", readySince(ago(time.Minute))),
		podWith("ready-restarts", readySince(ago(time.Hour)), withRestarts(2)),
		podWith("ready-no-creation-time", readySince(ago(time.Hour))),
		podWith("ready-created-2h", readySince(ago(time.Hour)), createdAt(ago(2*time.Hour))),
		// 20 and 21 hours are of one power of two in nanoseconds: the UID decides.
		podWith("ready-created-20h-a", readySince(ago(time.Hour)), createdAt(ago(21*time.Hour)), withUID("a")),
		podWith("ready-created-21h-b", readySince(ago(time.Hour)), createdAt(ago(20*time.Hour)), withUID("b")),
		podWith("ready-30h", readySince(ago(30*time.Hour))),
		podWith("ready-dear", onNode("crowded"), readySince(ago(time.Minute)), withCost("10")),
	}
	rank := map[string]int{"crowded": 2}
	checkOrder(t, want, func(pods []*v1.Pod) sort.Interface {
		ranks := make([]int, len(pods))
		for i := range pods {
			ranks[i] = rank[pods[i].Spec.NodeName]
		}
		return ActivePodsWithRanks{Pods: pods, Rank: ranks, Now: metav1.NewTime(testNow)}
	})
}

// checkOrder sorts the Pods from many shuffles and compares each neighbour both ways.
func checkOrder(t *testing.T, want []*v1.Pod, order func([]*v1.Pod) sort.Interface) {
	t.Helper()
	for i := range len(want) - 1 {
		pair := order([]*v1.Pod{want[i], want[i+1]})
		if !pair.Less(0, 1) || pair.Less(1, 0) {
			t.Errorf("%s does not go before %s", want[i].Name, want[i+1].Name)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		got := slices.Clone(want)
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		sort.Sort(order(got))
		if !slices.Equal(got, want) {
			t.Fatalf("order\n%v\nwant\n%v", podNames(got), podNames(want))
		}
	}
}

func podNames(pods []*v1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func TestActivePodsWithRanksVariants(t *testing.T) {
	hour, ninety := readySince(ago(20*time.Hour)), readySince(ago(21*time.Hour))
	tests := []struct {
		name       string
		a, b       *v1.Pod
		now        metav1.Time
		ignoreCost bool
		aFirst     bool
	}{
		{"ages of one power of two: smaller UID first", podWith("1", hour, withUID("b")), podWith("2", ninety, withUID("a")), metav1.NewTime(testNow), false, false},
		{"without now, exact times decide", podWith("1", hour, withUID("b")), podWith("2", ninety, withUID("a")), metav1.Time{}, false, true},
		{"equal times: restarts before the UID", podWith("1", hour, withUID("b"), withRestarts(1)), podWith("2", hour, withUID("a")), metav1.NewTime(testNow), false, true},
		{"cost that is no int32 counts as 0", podWith("1", hour, withCost("-1")), podWith("2", hour, withCost("-2147483649")), metav1.NewTime(testNow), false, true},
		{"cost with a plus sign counts as 0", podWith("1", hour, withCost("1")), podWith("2", hour, withCost("+5")), metav1.NewTime(testNow), false, false},
		{"cost with a leading zero counts as 0", podWith("1", hour, withCost("1")), podWith("2", hour, withCost("05")), metav1.NewTime(testNow), false, false},
		{"cost ignored by the gate", podWith("1", hour, withCost("9"), withUID("a")), podWith("2", hour, withCost("-9"), withUID("b")), metav1.NewTime(testNow), true, true},
		{"the future is as young as it gets", podWith("1", readySince(testNow.Add(time.Hour)), withUID("b")), podWith("2", readySince(ago(1)), withUID("a")), metav1.NewTime(testNow), false, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := ActivePodsWithRanks{Pods: []*v1.Pod{tc.a, tc.b}, Rank: []int{0, 0}, Now: tc.now, IgnoreDeletionCost: tc.ignoreCost}
			if got := s.Less(0, 1); got != tc.aFirst {
				t.Errorf("a before b: %v", got)
			}
			if got := s.Less(1, 0); got == tc.aFirst {
				t.Errorf("b before a: %v", got)
			}
		})
	}
}

func TestByLoggingOrder(t *testing.T) {
	want := []*v1.Pod{
		podWith("ready-long", readySince(ago(2*time.Hour))),
		podWith("ready-restarts", readySince(ago(time.Hour)), withRestarts(2), createdAt(ago(time.Hour))),
		podWith("ready-older", readySince(ago(time.Hour)), createdAt(ago(3*time.Hour))),
		podWith("ready-newer", readySince(ago(time.Hour)), createdAt(ago(2*time.Hour))),
		podWith("running"),
		podWith("unknown", inPhase(v1.PodUnknown)),
		podWith("pending", inPhase(v1.PodPending)),
		podWith("unassigned", onNode(""), inPhase(v1.PodPending)),
	}
	checkOrder(t, want, func(pods []*v1.Pod) sort.Interface { return ByLogging(pods) })
}

func genPod() *rapid.Generator[*v1.Pod] {
	return rapid.Custom(func(t *rapid.T) *v1.Pod {
		age := func(label string) time.Time {
			seconds := rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 60, 3600, 3601, 5000, 100000}).Draw(t, label)
			if seconds < 0 {
				return time.Time{}
			}
			return ago(time.Duration(seconds) * time.Second)
		}
		pod := podWith(fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "uid")),
			onNode(rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "node")),
			inPhase(rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodUnknown, v1.PodRunning}).Draw(t, "phase")),
			withRestarts(rapid.Int32Range(0, 2).Draw(t, "restarts")),
			withCost(rapid.SampledFrom([]string{"", "1", "-1", "x"}).Draw(t, "cost")),
			createdAt(age("created")))
		if rapid.Bool().Draw(t, "ready") {
			readySince(age("readySince"))(pod)
		}
		return pod
	})
}

// An order that is none (a before b before c before a) leaves the victims to chance.
func TestRankingIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOfN(genPod(), 3, 3).Draw(t, "pods")
		now := metav1.NewTime(testNow)
		if rapid.Bool().Draw(t, "withoutNow") {
			now = metav1.Time{}
		}
		for _, s := range []sort.Interface{
			ActivePods(pods), ByLogging(pods),
			ActivePodsWithRanks{Pods: pods, Rank: rapid.SliceOfN(rapid.IntRange(0, 1), 3, 3).Draw(t, "ranks"), Now: now},
		} {
			equal := func(i, j int) bool { return !s.Less(i, j) && !s.Less(j, i) }
			for i := range 3 {
				for j := range 3 {
					if s.Less(i, j) && s.Less(j, i) {
						t.Fatalf("%T: %d and %d go before each other", s, i, j)
					}
					for k := range 3 {
						if s.Less(i, j) && s.Less(j, k) && !s.Less(i, k) {
							t.Fatalf("%T: %d before %d before %d is no order", s, i, j, k)
						}
						if equal(i, j) && equal(j, k) && !equal(i, k) {
							t.Fatalf("%T: equality of %d, %d and %d is none", s, i, j, k)
						}
					}
				}
			}
		}
	})
}
