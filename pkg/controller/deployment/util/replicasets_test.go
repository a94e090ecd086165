// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestEqualIgnoreHash(t *testing.T) {
	labelled := func(labels map[string]string, node string) v1.PodTemplateSpec {
		t := template("a")
		t.Labels, t.Spec.NodeName = labels, node
		return t
	}
	const hash = apps.DefaultDeploymentUniqueLabelKey
	cases := map[string]struct {
		a, b v1.PodTemplateSpec
		want bool
	}{
		"the same, without the label":  {labelled(map[string]string{"x": "1"}, "n"), labelled(map[string]string{"x": "1"}, "n"), true},
		"the same, one with the label": {labelled(map[string]string{"x": "1", hash: "1"}, "n"), labelled(map[string]string{"x": "1"}, "n"), true},
		"the same, different hashes":   {labelled(map[string]string{"x": "1", hash: "1"}, "n"), labelled(map[string]string{"x": "1", hash: "2"}, "n"), true},
		"another spec":                 {labelled(map[string]string{"x": "1", hash: "1"}, "n"), labelled(map[string]string{"x": "1", hash: "1"}, "m"), false},
		"another label":                {labelled(map[string]string{"x": "1", hash: "1"}, "n"), labelled(map[string]string{"x": "2", hash: "1"}, "n"), false},
		"no labels and only the hash":  {labelled(nil, "n"), labelled(map[string]string{hash: "1"}, "n"), true},
		"only one has labels":          {labelled(nil, "n"), labelled(map[string]string{"x": "1"}, "n"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := *c.a.DeepCopy()
			if EqualIgnoreHash(&c.a, &c.b) != c.want || EqualIgnoreHash(&c.b, &c.a) != c.want {
				t.Errorf("want %v", c.want)
			}
			if diff := cmp.Diff(before, c.a); diff != "" {
				t.Error("the template was changed", diff)
			}
		})
	}
}

func TestFindNewAndOldReplicaSets(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	oldest, newer := replicaSet("oldest", "a", 1, 0), replicaSet("newer", "a", 1, 2)
	other, idle := replicaSet("other", "b", 1, 1), replicaSet("idle", "c", 0, 1)
	twin := replicaSet("later-by-name", "a", 1, 0)
	twin.Name = "zzz"
	cases := map[string]struct {
		sets        []*apps.ReplicaSet
		new         *apps.ReplicaSet
		active, old []string
	}{
		"none":                             {nil, nil, []string{}, []string{}},
		"no new one":                       {[]*apps.ReplicaSet{other, idle}, nil, []string{"other"}, []string{"other", "idle"}},
		"one":                              {[]*apps.ReplicaSet{other, newer}, newer, []string{"other"}, []string{"other"}},
		"the oldest of several is new":     {[]*apps.ReplicaSet{newer, other, oldest}, oldest, []string{"newer", "other"}, []string{"newer", "other"}},
		"of the same age, by name":         {[]*apps.ReplicaSet{twin, oldest}, oldest, []string{"zzz"}, []string{"zzz"}},
		"idle ones are old but not active": {[]*apps.ReplicaSet{idle, oldest}, oldest, []string{}, []string{"idle"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FindNewReplicaSet(d, c.sets); got != c.new {
				t.Errorf("new: %v", got)
			}
			active, old := FindOldReplicaSets(d, c.sets)
			if diff := cmp.Diff(c.active, names(active)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.old, names(old)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindActiveOrLatest(t *testing.T) {
	sets := func(rs ...*apps.ReplicaSet) []*apps.ReplicaSet { return rs }
	cases := map[string]struct {
		newRS *apps.ReplicaSet
		old   []*apps.ReplicaSet
		want  string
	}{
		"nothing":                         {nil, nil, ""},
		"none active: the new one":        {replicaSet("new", "b", 0, 2), sets(replicaSet("old", "a", 0, 0)), "new"},
		"none active, no new: the newest": {nil, sets(replicaSet("a", "a", 0, 0), replicaSet("c", "c", 0, 2), replicaSet("b", "b", 0, 1)), "c"},
		"one active":                      {replicaSet("new", "b", 0, 2), sets(replicaSet("old", "a", 3, 0), replicaSet("older", "c", 0, 0)), "old"},
		"several active":                  {replicaSet("new", "b", 1, 2), sets(replicaSet("old", "a", 3, 0)), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := FindActiveOrLatest(c.newRS, c.old)
			if (got == nil) != (c.want == "") || got != nil && got.Name != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestReplicaSetsByRevision(t *testing.T) {
	sets := []*apps.ReplicaSet{
		annotated(replicaSet("ten", "a", 0, 0), RevisionAnnotation, 10),
		annotated(replicaSet("nine", "a", 0, 3), RevisionAnnotation, 9),
		annotated(replicaSet("two-young", "a", 0, 2), RevisionAnnotation, 2),
		annotated(replicaSet("two-old", "a", 0, 1), RevisionAnnotation, 2),
		replicaSet("none", "a", 0, 4),
	}
	sort.Sort(ReplicaSetsByRevision(sets))
	if diff := cmp.Diff([]string{"none", "two-old", "two-young", "nine", "ten"}, names(sets)); diff != "" {
		t.Error(diff)
	}
	spoilt := []*apps.ReplicaSet{annotated(replicaSet("young", "a", 0, 1), RevisionAnnotation, 1), annotated(replicaSet("old", "a", 0, 0), RevisionAnnotation, "x")}
	sort.Sort(ReplicaSetsByRevision(spoilt))
	if spoilt[0].Name != "old" {
		t.Error("where a revision does not parse the older one comes first")
	}
}

func TestSetFromReplicaSetTemplate(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	rs := replicaSet("rs", "z", 1, 0)
	if SetFromReplicaSetTemplate(d, rs.Spec.Template) != d {
		t.Error("another deployment came back")
	}
	if diff := cmp.Diff(template("z"), d.Spec.Template); diff != "" {
		t.Error(diff)
	}
	if d.Spec.Template.Labels["x"] = "1"; rs.Spec.Template.Labels["x"] == "1" || rs.Spec.Template.Labels[apps.DefaultDeploymentUniqueLabelKey] != "rs" {
		t.Error("the replica set's template was changed")
	}
}

func TestCountsOfReplicaSets(t *testing.T) {
	counts := func(spec, replicas, ready, available int32, terminating *int32) *apps.ReplicaSet {
		rs := replicaSet("rs", "a", spec, 0)
		rs.Status = apps.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: available, TerminatingReplicas: terminating, ObservedGeneration: 1}
		return rs
	}
	unknown := counts(2, 2, 2, 2, nil)
	unsynced := replicaSet("unsynced", "a", 1, 0)
	rs1, rs2, rs3 := counts(1, 2, 1, 1, ptr.To[int32](3)), counts(2, 3, 2, 1, ptr.To[int32](1)), counts(3, 1, 0, 0, ptr.To[int32](0))
	cases := map[string]struct {
		sets                           []*apps.ReplicaSet
		spec, actual, ready, available int32
		terminating                    *int32
	}{
		"nothing":                      {nil, 0, 0, 0, 0, ptr.To[int32](0)},
		"scaling down one":             {[]*apps.ReplicaSet{rs1}, 1, 2, 1, 1, ptr.To[int32](3)},
		"scaling down two":             {[]*apps.ReplicaSet{rs1, rs2}, 3, 5, 3, 2, ptr.To[int32](4)},
		"scaling up one":               {[]*apps.ReplicaSet{rs3}, 3, 1, 0, 0, ptr.To[int32](0)},
		"down two, up one, none there": {[]*apps.ReplicaSet{rs1, nil, rs2, rs3}, 6, 6, 3, 2, ptr.To[int32](4)},
		"one does not tell":            {[]*apps.ReplicaSet{unknown}, 2, 2, 2, 2, nil},
		"one of several does not tell": {[]*apps.ReplicaSet{rs1, rs2, rs3, unknown}, 8, 8, 5, 4, nil},
		"one that was not synced yet":  {[]*apps.ReplicaSet{rs1, unsynced}, 2, 2, 1, 1, ptr.To[int32](3)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := []int32{
				GetReplicaCountForReplicaSets(c.sets), GetActualReplicaCountForReplicaSets(c.sets),
				GetReadyReplicaCountForReplicaSets(c.sets), GetAvailableReplicaCountForReplicaSets(c.sets),
			}
			if diff := cmp.Diff([]int32{c.spec, c.actual, c.ready, c.available}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.terminating, GetTerminatingReplicaCountForReplicaSets(c.sets)); diff != "" {
				t.Error("terminating", diff)
			}
		})
	}
}
