// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type planCase struct {
	name    string
	set     *apps.StatefulSet
	from    int
	pods    string
	gateOff bool
	want    string
}

func checkPlans(t *testing.T, cases []planCase) {
	t.Helper()
	for _, test := range cases {
		s := stateOf(t, test.set, test.from, test.pods)
		s.gates.maxUnavailable = !test.gateOff
		if got := makePlan(s).text(); got != test.want {
			t.Errorf("%s: planned %q, want %q", test.name, got, test.want)
		}
	}
}

func TestPlanScaling(t *testing.T) {
	deleted := func(set *apps.StatefulSet) { set.DeletionTimestamp = new(metav1.NewTime(testNow)) }
	checkPlans(t, []planCase{
		{"the first", newSet(3), 0, "", false, "create 0"},
		{"the next, when the one before is ready", newSet(3), 0, "R", false, "create 1"},
		{"not while it is not", newSet(3), 0, "U", false, ""},
		{"nor while it is pending", newSet(3), 0, "P", false, ""},
		{"nor while it goes", newSet(3), 0, "G", false, ""},
		{"nor before it is available", newSet(3, minReady(10)), 0, "M", false, ""},
		{"a gap first", newSet(3), 0, "- R -", false, "create 0"},
		{"all there", newSet(3), 0, "R R R", false, ""},
		{"one too many", newSet(2), 0, "R R R", false, "remove 2"},
		{"two too many, one after the other", newSet(1), 0, "R R R", false, "remove 2"},
		{"not while a higher one goes", newSet(1), 0, "R R G", false, ""},
		{"not below an unhealthy one", newSet(1), 0, "R U R", false, "remove 2"},
		{"the unhealthy one itself, if the first", newSet(1), 0, "R R U", false, "remove 2"},
		{"not the second unhealthy one", newSet(1), 0, "R U U", false, ""},
		{"finished ones, the highest first", newSet(0), 0, "F S", false, "remove 1"},
		{"condemned one within minReadySeconds is the first unhealthy one", newSet(1, minReady(10)), 0, "R R M", false, "remove 2"},
		{"no scale-down while a replica is not ready", newSet(2), 0, "R U R", false, ""},
		{"to none", newSet(0), 0, "R", false, "remove 0"},
		{"failed", newSet(2), 0, "F -", false, "remove 0"},
		{"succeeded", newSet(2), 0, "R S", false, "remove 1"},
		{"failed and going", newSet(2), 0, "X R", false, ""},
		{"set in deletion", newSet(3, deleted), 0, "R", false, ""},

		{"parallel, all at once", newSet(3, parallel), 0, "", false, "{create 0, create 1, create 2}"},
		{"parallel, around what is not ready", newSet(4, parallel), 0, "P - G -", false, "{create 1, create 3}"},
		{"parallel, down", newSet(1, parallel), 0, "R U G R", false, "{remove 3, remove 1}"},
		{"parallel, failed and missing", newSet(3, parallel), 0, "F - R R", false, "{remove 0, create 1}; {remove 3}"},
		{"parallel, to none", newSet(0, parallel), 0, "R R", false, "{remove 1, remove 0}"},

		{"from an ordinal", newSet(2, startingAt(3)), 0, "", false, "create 3"},
		{"next of them", newSet(2, startingAt(3)), 3, "R", false, "create 4"},
		{"range moved up: new ones first", newSet(2, startingAt(1)), 0, "R R", false, "create 2"},
		{"range moved up: old one then", newSet(2, startingAt(1)), 0, "R R R", false, "remove 0"},
		{"range moved down", newSet(2), 1, "R R", false, "create 0"},
		{"range moved down, the highest goes", newSet(2), 0, "R R R", false, "remove 2"},
		{"range moved, parallel", newSet(2, startingAt(1), parallel), 0, "R R", false, "{create 2}; {remove 0}"},
	})
}

func TestPlanRollingUpdate(t *testing.T) {
	checkPlans(t, []planCase{
		{"the highest first", newSet(3), 0, "r r r", false, "remove 2"},
		{"made anew", newSet(3), 0, "r r -", false, "create 2"},
		{"not before it is ready", newSet(3), 0, "r r U", false, ""},
		{"the next", newSet(3), 0, "r r R", false, "remove 1"},
		{"not before it is available", newSet(3, minReady(10)), 0, "r r M", false, ""},
		{"scale-down before the update", newSet(2), 0, "r r r", false, "remove 2"},
		{"scale-up before the update", newSet(3), 0, "r r", false, "create 2"},
		{"several", newSet(5, unavailableUpTo(2)), 0, "r r r r r", false, "remove 4, remove 3"},
		{"partition", newSet(3, partitioned(2)), 0, "r r r", false, "remove 2"},
		{"up to the partition", newSet(3, partitioned(2)), 0, "r r R", false, ""},
		{"partition beyond the end", newSet(3, partitioned(9)), 0, "r r r", false, ""},
		{"partition counts from the start ordinal", newSet(3, partitioned(2), startingAt(5)), 5, "r r r", false, "remove 7"},
		{"partition from the start ordinal is done", newSet(3, partitioned(2), startingAt(5)), 5, "r r R", false, ""},
		{"on delete", newSet(3, strategy(apps.OnDeleteStatefulSetStrategyType)), 0, "r r r", false, ""},
		{"on delete makes new ones", newSet(3, strategy(apps.OnDeleteStatefulSetStrategyType)), 0, "r - r", false, "create 1"},
		{"bad revision blocks (#67250)", newSet(3), 0, "R R !p", false, ""},

		{"gate off, the highest", newSet(3), 0, "r r r", true, "remove 2"},
		{"gate off, the next", newSet(3), 0, "r r R", true, "remove 1"},
		{"gate off, one only", newSet(5, unavailableUpTo(3)), 0, "r r r r r", true, "remove 4"},
		{"gate off, parallel, not ready", newSet(3, parallel), 0, "r r U", true, ""},
		{"gate off, parallel, old and not ready", newSet(3, parallel), 0, "r r u", true, "remove 2"},
		{"gate off, parallel, going", newSet(3, parallel), 0, "r r g", true, ""},
		{"gate off, partition", newSet(3, parallel, partitioned(2)), 0, "r r R", true, ""},
	})
}

// The cases are those of upstream's test of the same name.
func TestPlanMaxUnavailableAndUnavailableOldPods(t *testing.T) {
	up := func(n int, options ...setOption) []setOption { return append(options, unavailableUpTo(n)) }
	checkPlans(t, []planCase{
		{"parallel, single, unavailable", newSet(1, parallel), 0, "u", false, "remove 0"},
		{"parallel, highest unavailable", newSet(3, parallel), 0, "r r u", false, "remove 2"},
		{"parallel, two unavailable", newSet(5, parallel), 0, "r r r u u", false, "remove 4, remove 3"},
		{"ordered, single, unavailable", newSet(1), 0, "u", false, ""},
		{"ordered, highest unavailable", newSet(3), 0, "r r u", false, ""},
		{"ordered, two unavailable", newSet(5), 0, "r r r u u", false, ""},
		{"parallel, highest going", newSet(3, parallel), 0, "r r g", false, ""},
		{"parallel, highest failed and going", newSet(3, parallel), 0, "r r x", false, ""},
		{"ordered, highest going", newSet(3), 0, "r r g", false, ""},
		{"parallel, 3, one going, one crash-looping", newSet(5, up(3, parallel)...), 0, "r r r c g", false, "remove 3, remove 2"},
		{"parallel, within minReadySeconds", newSet(3, parallel, minReady(10)), 0, "r r m", false, "remove 2"},
		{"ordered, within minReadySeconds", newSet(3, minReady(10)), 0, "r r m", false, ""},
		{"parallel, 3 unavailable and 4 going", newSet(5, up(2, parallel)...), 0, "r r r u g", false, "remove 3"},
		{"parallel, 3 going and 4 unavailable", newSet(5, up(2, parallel)...), 0, "r r r g u", false, "remove 4"},
		{"ordered, 3 unavailable and 4 going", newSet(5, up(2)...), 0, "r r r u g", false, ""},
		{"ordered, 3 going and 4 unavailable", newSet(5, up(2)...), 0, "r r r g u", false, ""},
		{"parallel, partition 2, 4 unavailable", newSet(5, parallel, partitioned(2)), 0, "r r r r u", false, "remove 4"},
		{"parallel, partition 2, 2 unavailable", newSet(5, parallel, partitioned(2)), 0, "r r u r r", false, "remove 2"},
		{"parallel, partition 2, 1 unavailable", newSet(5, parallel, partitioned(2)), 0, "r u r r r", false, ""},
		{"ordered, partition 2, 4 unavailable", newSet(5, partitioned(2)), 0, "r r r r u", false, ""},
		{"parallel, partition 3, max 2, both unavailable", newSet(5, up(2, parallel, partitioned(3))...), 0, "r r r u u", false, "remove 4, remove 3"},
		{"parallel, partition 3, max 2, one below it", newSet(5, up(2, parallel, partitioned(3))...), 0, "r u r r u", false, "remove 4"},
		{"parallel, max 2, the lower ones unavailable", newSet(4, up(2, parallel)...), 0, "u u r r", false, "remove 1, remove 0"},
		{"parallel, max 3, two lower ones unavailable", newSet(5, up(3, parallel)...), 0, "u u r r r", false, "remove 1, remove 0, remove 4"},
	})
}

func TestPlanRecreate(t *testing.T) {
	recreating := func(options ...setOption) *apps.StatefulSet {
		return newSet(3, append(options, strategy(apps.RecreateStatefulSetStrategyType))...)
	}
	inProgress := func(set *apps.StatefulSet) {
		set.Status.Conditions = []apps.StatefulSetCondition{{Type: apps.StatefulSetProgressing, Status: v1.ConditionTrue, Reason: recreateInProgress}}
	}
	completed := func(set *apps.StatefulSet) {
		set.Status.Conditions = []apps.StatefulSetCondition{{Type: apps.StatefulSetProgressing, Status: v1.ConditionFalse, Reason: recreateCompleted}}
	}
	for _, test := range []struct {
		name      string
		set       *apps.StatefulSet
		pods      string
		want      string
		condition string
	}{
		{"old ones go, condemned too", recreating(), "r r r r", "{remove 0, remove 1, remove 2, remove 3}", "True RecreateInProgress Deleting old revision pods"},
		{"waits until they are gone", recreating(inProgress), "- R g", "", "True RecreateInProgress Deleting old revision pods"},
		{"stuck and failed ones go", recreating(), "u f p", "{remove 0, remove 1, remove 2}", "True RecreateInProgress Deleting old revision pods"},
		{"new ones come", recreating(inProgress), "", "create 0", "True RecreateInProgress Waiting for new-revision pods to be created"},
		{"new ones come, parallel", recreating(inProgress, parallel), "", "{create 0, create 1, create 2}", "True RecreateInProgress Waiting for new-revision pods to be created"},
		{"all are there", recreating(inProgress), "R R U", "", "False RecreateCompleted All pods recreated successfully"},
		{"nothing to do", recreating(), "R R R", "", ""},
		{"scale-up", recreating(), "R R", "create 2", ""},
		{"scale-up after a recreation", recreating(completed), "R R", "create 2", ""},
		{"scale-down", recreating(), "R R R R", "remove 3", ""},
	} {
		plan := makePlan(stateOf(t, test.set, 0, test.pods))
		got := ""
		if plan.condition != nil {
			got = fmt.Sprintf("%s %s %s", plan.condition.Status, plan.condition.Reason, plan.condition.Message)
		}
		if plan.text() != test.want || got != test.condition {
			t.Errorf("%s: planned %q with %q, want %q with %q", test.name, plan.text(), got, test.want, test.condition)
		}
	}
}

func TestPlanMends(t *testing.T) {
	set := newSet(2, withClaim, retaining(drop, drop))
	held := map[string]*v1.PersistentVolumeClaim{}
	for ordinal := range 3 {
		c := claimsOf(set, ordinal, noClaims)[0]
		held[c.name] = newClaim(set, c)
	}
	get := func(name string) *v1.PersistentVolumeClaim { return held[name] }
	plan := func(change func(pods []*v1.Pod)) string {
		pods := podsIn(t, set, 0, "R R")
		change(pods)
		s := newState(set, pods, isDeleted, get)
		s.update, s.current, s.now, s.maxUnavailable = "update", "update", testNow, 1
		return makePlan(s).text()
	}
	if got := plan(func([]*v1.Pod) {}); got != "" {
		t.Errorf("nothing is wrong: planned %q", got)
	}
	if got := plan(func(pods []*v1.Pod) { delete(pods[1].Labels, apps.PodIndexLabel) }); got != "mend 1" {
		t.Errorf("no index label: planned %q", got)
	}
	if got := plan(func(pods []*v1.Pod) { pods[0].Labels[apps.StatefulSetPodNameLabel] = "x" }); got != "mend 0" {
		t.Errorf("wrong name label: planned %q", got)
	}
	if got := plan(func(pods []*v1.Pod) { pods[1].Spec.Volumes = nil }); got != "mend 1" {
		t.Errorf("no volume: planned %q", got)
	}
	held["data-web-1"].OwnerReferences = nil
	if got := plan(func([]*v1.Pod) {}); got != "mend 1" {
		t.Errorf("claim without owner: planned %q", got)
	}
	held["data-web-1"] = nil
	if got := plan(func([]*v1.Pod) {}); got != "" {
		t.Errorf("claim lost under a running pod: planned %q", got)
	}
	if got := plan(func(pods []*v1.Pod) { pods[1].Status = v1.PodStatus{Phase: v1.PodPending} }); got != "provide 1" {
		t.Errorf("claim lost under a pending pod: planned %q", got)
	}

	// A scaled-down pod's claim is handed over before the pod goes.
	set.Spec.Replicas = new(int32(1))
	held["data-web-1"] = held["data-web-2"]
	if got := plan(func([]*v1.Pod) {}); got != "retire 1; remove 1" {
		t.Errorf("scale-down: planned %q", got)
	}
	// And no pod is created on a claim that belongs to one that is gone.
	set.Spec.Replicas = new(int32(2))
	gone := podIn(t, set, 1, "R")
	gone.UID = "gone"
	held["data-web-1"] = newClaim(set, claimsOf(set, 1, noClaims)[0])
	held["data-web-1"].OwnerReferences, _ = retention{set: set, pod: gone, condemned: true}.refs(held["data-web-1"])
	s := newState(set, podsIn(t, set, 0, "R"), isDeleted, get)
	s.update, s.current, s.now, s.maxUnavailable = "update", "update", testNow, 1
	if got := makePlan(s).text(); got != "" {
		t.Errorf("claim of a pod that is gone: planned %q", got)
	}
}

func TestBlockedRollout(t *testing.T) {
	for _, test := range []struct {
		name    string
		set     *apps.StatefulSet
		pods    string
		leave   bool
		blocked string // pod
		want    string
		again   time.Duration
	}{
		{"new pod starts", newSet(3), "r r U", false, "", "", 59 * time.Second},
		{"new pod does not become ready", newSet(3), "r r B", false, "web-2", "", 0},
		{"new pod crashes", newSet(3), "r r C", false, "web-2", "", 0},
		{"pod of a bad revision", newSet(3), "R R !b", false, "web-2", "", 0},
		{"old pod was not ready before", newSet(3), "b r r", false, "web-0", "", 0},
		{"no roll-out", newSet(3), "R R B", false, "", "", 0},
		{"partition excludes it", newSet(3, partitioned(3)), "r r b", false, "", "", 0},
		{"on delete", newSet(3, strategy(apps.OnDeleteStatefulSetStrategyType)), "r r b", false, "", "", 0},
		{"pod goes", newSet(3), "r r g", false, "", "", 0},
		{"ready, not available", newSet(3, minReady(10)), "r r M", false, "", "", 0},
		{"parallel, new pod does not become ready", newSet(3, parallel), "r r B", false, "web-2", "", 0},
		{"parallel, goes on", newSet(3, parallel, unavailableUpTo(2)), "r r B", false, "", "remove 1", 0},

		{"leaves a bad revision", newSet(3), "R R !b", true, "web-2", "remove 2", 0},
		{"leaves one that crashes", newSet(3), "r r !c", true, "web-2", "remove 2", 0},
		{"not before it is stuck", newSet(3), "r r !u", true, "", "", 59 * time.Second},
		{"not the new revision", newSet(3), "r r B", true, "web-2", "", 0},
		{"not below the partition", newSet(3, partitioned(1)), "b r r", true, "web-0", "", 0},
	} {
		s := stateOf(t, test.set, 0, test.pods)
		s.gates.leaveBadRevision = test.leave
		plan := makePlan(s)
		blocked := ""
		if plan.blocked != nil {
			blocked = plan.blocked.pod.Name
			if text := plan.blocked.String(); !strings.Contains(text, blocked) || !strings.Contains(text, "update") {
				t.Errorf("%s: told %q", test.name, text)
			}
		}
		if blocked != test.blocked || plan.text() != test.want || plan.lookAgain != test.again {
			t.Errorf("%s: blocked by %q, planned %q, again in %v; want %q, %q, %v", test.name, blocked, plan.text(), plan.lookAgain, test.blocked, test.want, test.again)
		}
	}
}

func TestMaxUnavailable(t *testing.T) {
	for _, test := range []struct {
		replicas int
		value    *intstr.IntOrString
		want     int
	}{
		{10, nil, 1},
		{10, new(intstr.FromInt32(3)), 3},
		{10, new(intstr.FromInt32(0)), 1},
		{10, new(intstr.FromString("25%")), 2},
		{10, new(intstr.FromString("1%")), 1},
		{0, new(intstr.FromString("50%")), 1},
	} {
		set := newSet(test.replicas)
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = test.value
		if got, err := maxUnavailable(set); err != nil || got != test.want {
			t.Errorf("%v of %d: %d, %v", test.value, test.replicas, got, err)
		}
	}
	set := newSet(1)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("many"))
	if _, err := maxUnavailable(set); err == nil {
		t.Error("nonsense is accepted")
	}
	if got, err := maxUnavailable(newSet(3, strategy(apps.OnDeleteStatefulSetStrategyType))); got != 1 || err != nil {
		t.Errorf("on delete: %d, %v", got, err)
	}
}

func TestWantsCurrent(t *testing.T) {
	noBlock := newSet(5, strategy(apps.RollingUpdateStatefulSetStrategyType), startingAt(2))
	noBlock.Status.CurrentReplicas = 2
	for _, test := range []struct {
		name    string
		set     *apps.StatefulSet
		ordinal int
		want    bool
	}{
		{"below the partition", newSet(5, partitioned(2)), 1, true},
		{"at the partition", newSet(5, partitioned(2)), 2, false},
		{"below, from a start ordinal", newSet(5, partitioned(2), startingAt(3)), 4, true},
		{"at, from a start ordinal", newSet(5, partitioned(2), startingAt(3)), 5, false},
		{"on delete", newSet(5, strategy(apps.OnDeleteStatefulSetStrategyType)), 0, false},
		{"no block, below", noBlock, 3, true},
		{"no block, above", noBlock, 4, false},
	} {
		if got := wantsCurrent(test.set, test.ordinal); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
