// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	apps "k8s.io/api/apps/v1"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// TestScaleWithDeployment has upstream's cases of scaling: what becomes of each ReplicaSet when
// spec.replicas goes from the desired-replicas of the ReplicaSets to the Deployment's.
func TestScaleWithDeployment(t *testing.T) {
	sets := func(rs ...*apps.ReplicaSet) []*apps.ReplicaSet { return rs }
	none := func(rs *apps.ReplicaSet) { rs.Annotations = nil }
	cases := map[string]struct {
		d    *apps.Deployment
		sets []*apps.ReplicaSet
		want map[string]int32
	}{
		"normal scaling: 10 -> 12": {deploymentOf(12, 0, 1), sets(setOf("new", 10, 2, 10, 0)), map[string]int32{"new": 12}},
		"normal scaling: 10 -> 5":  {deploymentOf(5, 0, 1), sets(setOf("new", 10, 2, 10, 0)), map[string]int32{"new": 5}},
		"proportional: 5 -> 10": {deploymentOf(10, 0, 1),
			sets(setOf("new", 2, 2, 5, 0), setOf("old", 3, 1, 5, 0)), map[string]int32{"new": 4, "old": 6}},
		"proportional: 5 -> 3": {deploymentOf(3, 0, 1),
			sets(setOf("new", 2, 2, 5, 0), setOf("old", 3, 1, 5, 0)), map[string]int32{"new": 1, "old": 2}},
		"proportional: 9 -> 4": {deploymentOf(4, 0, 1),
			sets(setOf("new", 8, 2, 9, 0), setOf("old", 1, 1, 9, 0)), map[string]int32{"new": 4, "old": 0}},
		"proportional: 7 -> 10": {deploymentOf(10, 0, 1),
			sets(setOf("new", 2, 2, 7, 0), setOf("old", 3, 1, 7, 0), setOf("older", 2, 0, 7, 0)), map[string]int32{"new": 3, "old": 4, "older": 3}},
		"proportional: 13 -> 8": {deploymentOf(8, 0, 1),
			sets(setOf("new", 2, 2, 13, 0), setOf("old", 8, 1, 13, 0), setOf("older", 3, 0, 13, 0)), map[string]int32{"new": 1, "old": 5, "older": 2}},
		"leftover: 3 -> 4 goes to the newest": {deploymentOf(4, 0, 1),
			sets(setOf("new", 1, 2, 3, 0), setOf("old", 1, 1, 3, 0), setOf("older", 1, 0, 3, 0)), map[string]int32{"new": 2, "old": 1, "older": 1}},
		"leftover: 3 -> 2 comes from the oldest": {deploymentOf(2, 0, 1),
			sets(setOf("new", 1, 2, 3, 0), setOf("old", 1, 1, 3, 0), setOf("older", 1, 0, 3, 0)), map[string]int32{"new": 1, "old": 1, "older": 0}},
		"no new one: 4 -> 5": {deploymentOf(5, 0, 1),
			sets(setOf("old", 2, 1, 4, 0), setOf("older", 2, 0, 4, 0)), map[string]int32{"old": 3, "older": 2}},
		"proportional: 6 -> 0": {deploymentOf(0, 0, 1),
			sets(setOf("new", 3, 2, 6, 0), setOf("old", 2, 1, 6, 0), setOf("older", 1, 0, 6, 0)), map[string]int32{"new": 0, "old": 0, "older": 0}},
		"proportional: 0 -> 6 goes to the new one": {deploymentOf(6, 0, 1),
			sets(setOf("new", 0, 2, 0, 0), setOf("old", 0, 1, 0, 0), setOf("older", 0, 0, 0, 0)), map[string]int32{"new": 6, "old": 0, "older": 0}},
		"a former update failed half-way: what is left goes to the others": {deploymentOf(5, 0, 1),
			sets(setOf("new", 2, 2, 5, 0), setOf("old", 1, 1, 4, 0), setOf("older", 1, 0, 4, 0)), map[string]int32{"new": 3, "old": 1, "older": 1}},
		"with surge pods": {deploymentOf(20, 2, 0),
			sets(setOf("new", 6, 2, 10, 2), setOf("old", 6, 1, 10, 2)), map[string]int32{"new": 11, "old": 11}},
		"both surge and size": {deploymentOf(50, 6, 0),
			sets(setOf("new", 5, 2, 10, 3), setOf("old", 8, 1, 10, 3)), map[string]int32{"new": 22, "old": 34}},
		"both size and template": {deploymentOf(14, 0, 1),
			sets(setOf("old", 7, 1, 10, 0), setOf("older", 3, 0, 10, 0)), map[string]int32{"old": 10, "older": 4}},
		"a new one of full size that is broken leaves the old pods alone": {deploymentOf(2, 1, 1),
			sets(setOf("new", 2, 2, 2, 1, available(0)), setOf("old", 1, 1, 2, 1)), map[string]int32{"new": 2, "old": 1}},
		"a saturated new one leaves nothing to the old": {deploymentOf(2, 1, 1),
			sets(setOf("new", 2, 2, 2, 1), setOf("old", 1, 1, 1, 1)), map[string]int32{"new": 2, "old": 0}},
		"only the surge changes": {deploymentOf(10, 4, 0),
			sets(setOf("new", 5, 2, 10, 2), setOf("old", 7, 1, 10, 2)), map[string]int32{"new": 6, "old": 8}},
		"annotations taken away by somebody": {deploymentOf(10, 0, 1, func(d *apps.Deployment) { d.Status.Replicas = 5 }),
			sets(setOf("new", 2, 2, 5, 0, none), setOf("old", 3, 1, 5, 0, none)), map[string]int32{"new": 4, "old": 6}},
		"BC017: a rollout in progress": {deploymentOf(15, 3, 2),
			sets(setOf("new", 5, 2, 10, 3, available(0)), setOf("old", 8, 1, 10, 3)), map[string]int32{"new": 7, "old": 11}},
		"recreate: several active ones are left to the rollout": {deploymentOf(5, 0, 1, recreating),
			sets(setOf("new", 2, 2, 3, 0, available(0)), setOf("old", 1, 1, 3, 0)), map[string]int32{"new": 2, "old": 1}},
	}
	for name, c := range cases {
		for _, mode := range []string{"running", "paused"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				d := c.d.DeepCopy()
				d.Spec.Paused = mode == "paused"
				s := snapshotOf(d, c.sets...)
				r := round{snapshot: s, family: s.family.clone()}
				r.scaleWithDeployment()
				mustEqual(t, "sizes", c.want, sizesAfter(s, r.plan))
				if r.plan.report != reportStatus || r.plan.create != nil || len(r.plan.deletes) != 0 {
					t.Errorf("plan: %+v", r.plan)
				}
				// Whatever was scaled, and whatever did not need to be, the rollout goes on then.
				if r.isScaling() {
					t.Error("the Deployment counts as being scaled still")
				}
				for _, u := range r.plan.updates {
					want, surge := *d.Spec.Replicas, util.MaxSurge(*d)
					if util.ReplicasAnnotationsNeedUpdate(u.is, want, want+surge) {
						t.Errorf("%s: stale annotations %v", u.is.Name, u.is.Annotations)
					}
				}
			})
		}
	}
}

func TestIsScaling(t *testing.T) {
	cases := map[string]struct {
		sets []*apps.ReplicaSet
		want bool
	}{
		"new one scaled at this size":     {[]*apps.ReplicaSet{setOf("new", 3, 1, 3, 1)}, false},
		"new one scaled at another size":  {[]*apps.ReplicaSet{setOf("new", 3, 1, 2, 1)}, true},
		"old one scaled at another size":  {[]*apps.ReplicaSet{setOf("new", 3, 1, 3, 1), setOf("old", 1, 0, 2, 1)}, true},
		"one without pods does not count": {[]*apps.ReplicaSet{setOf("new", 3, 1, 3, 1), setOf("old", 0, 0, 2, 1)}, false},
		"one that does not say does not count": {[]*apps.ReplicaSet{setOf("new", 3, 1, 2, 1, func(rs *apps.ReplicaSet) {
			delete(rs.Annotations, util.DesiredReplicasAnnotation)
		})}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(deploymentOf(3, 1, 0), c.sets...)
			r := round{snapshot: s, family: s.family}
			if got := r.isScaling(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestStaleAnnotationIsRepaired is BC018: an annotation that never matches must not keep the
// Deployment in the scaling branch.
func TestStaleAnnotationIsRepaired(t *testing.T) {
	cases := map[string]*apps.Deployment{
		"rolling without surge": deploymentOf(3, 0, 1),
		"recreate":              deploymentOf(3, 0, 1, recreating),
	}
	for name, d := range cases {
		t.Run(name, func(t *testing.T) {
			old := setOf("old", 3, 0, 2, 0)
			s := snapshotOf(d, setOf("new", 0, 1, 3, 0), old)
			p := planOf(t, s)
			if len(p.updates) != 1 || p.updates[0].is.Name != "old" || sizeOf(p.updates[0].is) != 3 {
				t.Fatalf("plan: %+v", p)
			}
			p = planOf(t, snapshotOf(d, setOf("new", 0, 1, 3, 0), p.updates[0].is))
			if p.report != reportRollout {
				t.Errorf("the rollout does not go on: %+v", p)
			}
		})
	}
}
