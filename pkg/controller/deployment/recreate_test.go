// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podsIn(phases ...v1.PodPhase) []*v1.Pod {
	var pods []*v1.Pod
	for _, phase := range phases {
		pods = append(pods, &v1.Pod{Status: v1.PodStatus{Phase: phase}})
	}
	return pods
}

func TestOldPodsMayRun(t *testing.T) {
	idle := func(changes ...func(*apps.ReplicaSet)) []*apps.ReplicaSet {
		return []*apps.ReplicaSet{setOf("old", 0, 0, 3, 0, changes...)}
	}
	cases := map[string]struct {
		sets []*apps.ReplicaSet
		pods map[types.UID][]*v1.Pod
		want bool
	}{
		"no old ones":                         {nil, nil, false},
		"running pods":                        {idle(running(1)), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodRunning)}, true},
		"no pods, but a status that has them": {idle(running(1)), nil, true},
		"no pods":                             {idle(), map[types.UID][]*v1.Pod{"old-uid": nil}, false},
		"pods that have ended":                {idle(), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodFailed, v1.PodSucceeded)}, false},
		"a pod of unknown phase":              {idle(), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodUnknown)}, true},
		"a pending pod":                       {idle(), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodPending)}, true},
		"a running pod the status forgot":     {idle(), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodRunning)}, true},
		"ended and pending pods":              {idle(), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodFailed, v1.PodPending, v1.PodSucceeded)}, true},
		"pods of the new one":                 {[]*apps.ReplicaSet{setOf("new", 1, 1, 3, 0)}, map[types.UID][]*v1.Pod{"new-uid": podsIn(v1.PodRunning)}, false},
		"scaled down, but its controller has not seen that": {idle(func(rs *apps.ReplicaSet) { rs.Generation = 2 }), nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(deploymentOf(3, 0, 0, recreating), c.sets...)
			s.pods = c.pods
			r := round{snapshot: s, family: s.family}
			if got := r.oldPodsMayRun(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRecreateSteps(t *testing.T) {
	d := deploymentOf(3, 0, 0, recreating)
	sets := func(rs ...*apps.ReplicaSet) []*apps.ReplicaSet { return rs }
	cases := []struct {
		name string
		sets []*apps.ReplicaSet
		pods map[types.UID][]*v1.Pod
		want map[string]int32
	}{
		{"all old ones are scaled down", sets(setOf("old", 3, 1, 3, 0), setOf("older", 1, 0, 3, 0)), nil, map[string]int32{"old": 0, "older": 0}},
		{"old pods run", sets(setOf("old", 0, 0, 3, 0, running(1))), nil, map[string]int32{"old": 0}},
		{"an old pod terminates", sets(setOf("old", 0, 0, 3, 0)), map[types.UID][]*v1.Pod{"old-uid": podsIn(v1.PodRunning)}, map[string]int32{"old": 0}},
		{"old pods are gone", sets(setOf("old", 0, 0, 3, 0)), nil, map[string]int32{"old": 0, "created": 3}},
		{"the template is one of before", sets(setOf("old", 0, 0, 3, 0), setOf("new", 0, 1, 3, 0)), nil, map[string]int32{"old": 0, "new": 3}},
		{"nothing is left to do", sets(setOf("new", 3, 1, 3, 0)), nil, map[string]int32{"new": 3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := snapshotOf(d, c.sets...)
			s.pods = c.pods
			p := planOf(t, s)
			mustEqual(t, "sizes", c.want, sizesAfter(s, p))
			if p.report != reportRollout {
				t.Errorf("report: %v", p.report)
			}
		})
	}
}
