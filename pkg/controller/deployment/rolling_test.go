// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	apps "k8s.io/api/apps/v1"
)

func TestScaleNew(t *testing.T) {
	cases := map[string]struct {
		want, surge, old, new int32
		size                  int32
		scaled                bool
	}{
		"may not scale up yet":        {10, 0, 10, 0, 0, false},
		"up by the surge":             {10, 2, 10, 0, 2, true},
		"up by what the surge leaves": {10, 2, 5, 0, 7, true},
		"at the surge already":        {10, 2, 10, 2, 2, false},
		"down, it should not happen":  {10, 2, 0, 11, 10, true},
		"there":                       {10, 2, 0, 10, 10, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(deploymentOf(c.want, c.surge, 1), setOf("new", c.new, 1, c.want, c.surge), setOf("old", c.old, 0, c.want, c.surge))
			r := round{snapshot: s, family: s.family.clone()}
			scaled, err := r.scaleNew()
			if err != nil || scaled != c.scaled || sizeOf(r.newRS) != c.size {
				t.Errorf("scaled %v to %d, %v", scaled, sizeOf(r.newRS), err)
			}
		})
	}
}

func TestScaleDownOld(t *testing.T) {
	cases := map[string]struct {
		want, surge, unavailable int32
		sets                     []*apps.ReplicaSet
		sizes                    map[string]int32
	}{
		"nothing to scale": {10, 0, 0, []*apps.ReplicaSet{setOf("new", 0, 9, 10, 0), setOf("old", 0, 0, 10, 0)},
			map[string]int32{"new": 0, "old": 0}},
		"all unavailable allowed": {10, 0, 10, []*apps.ReplicaSet{setOf("new", 0, 9, 10, 0), setOf("old", 10, 0, 10, 0)},
			map[string]int32{"new": 0, "old": 0}},
		"down to the minimum": {10, 0, 2, []*apps.ReplicaSet{setOf("new", 0, 9, 10, 0), setOf("old", 10, 0, 10, 0)},
			map[string]int32{"new": 0, "old": 8}},
		"new pods that are not up count against it": {10, 0, 2, []*apps.ReplicaSet{setOf("new", 2, 9, 10, 0, available(0)), setOf("old", 8, 0, 10, 0)},
			map[string]int32{"new": 2, "old": 8}},
		"surge pods that are up make room": {10, 2, 0, []*apps.ReplicaSet{setOf("new", 2, 9, 10, 2), setOf("old", 10, 0, 10, 2)},
			map[string]int32{"new": 2, "old": 8}},
		"unhealthy old pods go first": {10, 2, 0, []*apps.ReplicaSet{setOf("new", 2, 9, 10, 2), setOf("old", 10, 0, 10, 2, available(8))},
			map[string]int32{"new": 2, "old": 8}},
		"unhealthy ones go although none can be spared": {10, 2, 2, []*apps.ReplicaSet{setOf("new", 4, 9, 10, 2, available(0)), setOf("old", 8, 0, 10, 2, available(6))},
			map[string]int32{"new": 4, "old": 8}},
		"unhealthy ones of all, oldest first, up to the budget": {10, 4, 0,
			[]*apps.ReplicaSet{setOf("new", 2, 9, 10, 4), setOf("old", 6, 1, 10, 4, available(3)), setOf("older", 4, 0, 10, 4, available(2))},
			map[string]int32{"new": 2, "old": 6, "older": 2}},
		"healthy ones, oldest first": {10, 2, 3,
			[]*apps.ReplicaSet{setOf("new", 2, 9, 10, 2), setOf("old", 8, 1, 10, 2), setOf("older", 2, 0, 10, 2)},
			map[string]int32{"new": 2, "old": 5, "older": 0}},
		"unhealthy and healthy ones in one step": {10, 0, 5, []*apps.ReplicaSet{setOf("new", 0, 9, 10, 0), setOf("old", 10, 0, 10, 0, available(8))},
			map[string]int32{"new": 0, "old": 5}},
		"the old one's status is from before its last scale-down": {3, 1, 0, []*apps.ReplicaSet{setOf("new", 1, 9, 3, 1), setOf("old", 2, 0, 3, 1, available(3))},
			map[string]int32{"new": 1, "old": 2}},
		"the new one's status is from before it was shrunk": {3, 1, 1, []*apps.ReplicaSet{setOf("new", 1, 9, 3, 1, available(3)), setOf("old", 1, 0, 3, 1)},
			map[string]int32{"new": 1, "old": 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(deploymentOf(c.want, c.surge, c.unavailable), c.sets...)
			r := round{snapshot: s, family: s.family.clone()}
			scaled := r.scaleDownOld()
			mustEqual(t, "sizes", c.sizes, sizesAfter(s, r.plan))
			if scaled != (len(r.plan.updates) > 0) {
				t.Errorf("scaled: %v, updates %d", scaled, len(r.plan.updates))
			}
		})
	}
}

// TestRollSteps follows a whole rollout of three pods with a surge of one, which is the golden run
// of upstream's binary, event by event.
func TestRollSteps(t *testing.T) {
	d := deploymentOf(3, 1, 0)
	steps := []struct {
		name                   string
		new, newUp, old, oldUp int32
		wantNew, wantOld       int32
	}{
		{"the first new pod is not up yet", 1, 0, 3, 3, 1, 3},
		{"the first is up", 1, 1, 3, 3, 1, 2},
		{"room for the second", 1, 1, 2, 2, 2, 2},
		{"the second is up", 2, 2, 2, 2, 2, 1},
		{"room for the third", 2, 2, 1, 1, 3, 1},
		{"the third is up", 3, 3, 1, 1, 3, 0},
		{"done", 3, 3, 0, 0, 3, 0},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			s := snapshotOf(d, setOf("new", step.new, 1, 3, 1, available(step.newUp)), setOf("old", step.old, 0, 3, 1, available(step.oldUp)))
			p := planOf(t, s)
			mustEqual(t, "sizes", map[string]int32{"new": step.wantNew, "old": step.wantOld}, sizesAfter(s, p))
			if p.report != reportRollout {
				t.Errorf("report: %v", p.report)
			}
		})
	}
}

func TestRollCreatesAndScalesDownInOneRound(t *testing.T) {
	s := snapshotOf(deploymentOf(4, 1, 1), setOf("old", 4, 0, 4, 1))
	mustEqual(t, "sizes", map[string]int32{"created": 1, "old": 3}, sizesAfter(s, planOf(t, s)))
}
