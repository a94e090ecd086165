// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2/ktesting"
)

func TestSetNewReplicaSetAnnotations(t *testing.T) {
	longHistory := strings.TrimSuffix(strings.Repeat("1234,", 400), ",") // 1999 characters
	cases := map[string]struct {
		deployment, replicaSet map[string]string
		revision               int64
		want                   map[string]string
		changed                bool
	}{
		"a new one gets the revision and the deployment's annotations": {
			deployment: map[string]string{"a": "1"},
			revision:   3,
			want:       map[string]string{"a": "1", RevisionAnnotation: "3"},
			changed:    true,
		},
		"what belongs to the deployment itself is not copied": {
			deployment: map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": "{}", RevisionAnnotation: "9", RevisionHistoryAnnotation: "8",
				DesiredReplicasAnnotation: "7", MaxReplicasAnnotation: "6", "deprecated.deployment.rollback.to": "5",
			},
			replicaSet: map[string]string{RevisionAnnotation: "1"},
			revision:   1,
			want:       map[string]string{RevisionAnnotation: "1"},
		},
		"annotations are overwritten but never removed": {
			deployment: map[string]string{"a": "2"},
			replicaSet: map[string]string{"a": "1", "b": "1", RevisionAnnotation: "1"},
			revision:   1,
			want:       map[string]string{"a": "2", "b": "1", RevisionAnnotation: "1"},
			changed:    true,
		},
		"an empty annotation is copied too": {
			deployment: map[string]string{"a": ""},
			replicaSet: map[string]string{RevisionAnnotation: "1"},
			revision:   1,
			want:       map[string]string{"a": "", RevisionAnnotation: "1"},
			changed:    true,
		},
		"the former revision becomes history": {
			replicaSet: map[string]string{RevisionAnnotation: "1"},
			revision:   4,
			want:       map[string]string{RevisionAnnotation: "4", RevisionHistoryAnnotation: "1"},
			changed:    true,
		},
		"history grows": {
			replicaSet: map[string]string{RevisionAnnotation: "4", RevisionHistoryAnnotation: "1,2"},
			revision:   6,
			want:       map[string]string{RevisionAnnotation: "6", RevisionHistoryAnnotation: "1,2,4"},
			changed:    true,
		},
		"history is cut at its old end": {
			replicaSet: map[string]string{RevisionAnnotation: "56", RevisionHistoryAnnotation: longHistory},
			revision:   57,
			want:       map[string]string{RevisionAnnotation: "57", RevisionHistoryAnnotation: longHistory[5:] + ",56"},
			changed:    true,
		},
		"a revision is never lowered": {
			replicaSet: map[string]string{RevisionAnnotation: "5"},
			revision:   3,
			want:       map[string]string{RevisionAnnotation: "5"},
		},
		"a revision that is no number stays": {
			deployment: map[string]string{"a": "1"},
			replicaSet: map[string]string{RevisionAnnotation: "x"},
			revision:   3,
			want:       map[string]string{"a": "1", RevisionAnnotation: "x"},
			changed:    true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
			d.Annotations = c.deployment
			rs := replicaSet("rs", "a", 1, 0)
			rs.Annotations = c.replicaSet
			if got := SetNewReplicaSetAnnotations(d, rs, c.revision); got != c.changed {
				t.Errorf("changed: %v, want %v", got, c.changed)
			}
			if diff := cmp.Diff(c.want, rs.Annotations); diff != "" {
				t.Error(diff)
			}
			if SetNewReplicaSetAnnotations(d, rs, c.revision) {
				t.Error("a second call changed it again")
			}
		})
	}
}

func TestAppendHistory(t *testing.T) {
	if _, ok := appendHistory("1,2", "123456", 5); ok {
		t.Error("a revision longer than the limit was put in")
	}
	if got, ok := appendHistory("1,2,3", "4", 5); !ok || got != "2,3,4" {
		t.Errorf("got %q, %v", got, ok)
	}
}

func TestReplicasAnnotations(t *testing.T) {
	cases := map[string]struct {
		have  map[string]string
		needs bool
	}{
		"nil":     {nil, true},
		"desired": {map[string]string{DesiredReplicasAnnotation: "8", MaxReplicasAnnotation: "12"}, true},
		"max":     {map[string]string{DesiredReplicasAnnotation: "10", MaxReplicasAnnotation: "8"}, true},
		"neither": {map[string]string{DesiredReplicasAnnotation: "10", MaxReplicasAnnotation: "12"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rs := replicaSet("rs", "a", 1, 0)
			rs.Annotations = c.have
			if got := ReplicasAnnotationsNeedUpdate(rs, 10, 12); got != c.needs {
				t.Errorf("needs update: %v", got)
			}
			if got := SetReplicasAnnotations(rs, 10, 12); got != c.needs {
				t.Errorf("changed: %v", got)
			}
			want := map[string]string{DesiredReplicasAnnotation: "10", MaxReplicasAnnotation: "12"}
			if diff := cmp.Diff(want, rs.Annotations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNonNegativeInt32Annotation(t *testing.T) {
	cases := map[string]struct {
		value string
		want  int32
		ok    bool
	}{
		"empty": {"", 0, false}, "text": {"invalid", 0, false}, "negative": {"-1", 0, false},
		"zero": {"0", 0, true}, "one": {"1", 1, true}, "largest": {"2147483647", 2147483647, true},
		"beyond": {"2147483648", 0, false}, "far beyond": {"21474836489999", 0, false},
	}
	logger, _ := ktesting.NewTestContext(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rs := annotated(replicaSet("rs", "a", 1, 0), DesiredReplicasAnnotation, c.value)
			if got, ok := GetDesiredReplicasAnnotation(logger, rs); got != c.want || ok != c.ok {
				t.Errorf("got %d, %v", got, ok)
			}
			if got := DesiredReplicasDiffer(rs, c.want); got {
				t.Error("it differs from itself, or from nothing")
			}
			if got := DesiredReplicasDiffer(rs, c.want-1); got != c.ok {
				t.Errorf("differs from another size: %v", got)
			}
		})
	}
	if _, ok := GetDesiredReplicasAnnotation(logger, replicaSet("rs", "a", 1, 0)); ok {
		t.Error("a missing annotation has a value")
	}
}

func TestRevisions(t *testing.T) {
	sets := func(revisions ...any) []*apps.ReplicaSet {
		var out []*apps.ReplicaSet
		for i, v := range revisions {
			rs := replicaSet(fmt.Sprint("rs", i), "a", 0, i)
			if v != nil {
				annotated(rs, RevisionAnnotation, v)
			}
			out = append(out, rs)
		}
		return out
	}
	cases := map[string]struct {
		sets      []*apps.ReplicaSet
		max, last int64
	}{
		"none":             {nil, 0, 0},
		"one":              {sets(7), 7, 0},
		"rising":           {sets(1, 2, 3), 3, 2},
		"falling":          {sets(3, 2, 1), 3, 2},
		"the same twice":   {sets(2, 2), 2, 2},
		"no numbers, none": {sets("x", 4, nil, 3), 4, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := MaxRevision(c.sets); got != c.max {
				t.Errorf("max: %d", got)
			}
			if got := LastRevision(c.sets); got != c.last {
				t.Errorf("last: %d", got)
			}
		})
	}
}

func TestSetDeploymentRevision(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	if !SetDeploymentRevision(d, "1") || d.Annotations[RevisionAnnotation] != "1" {
		t.Error("not set")
	}
	if SetDeploymentRevision(d, "1") {
		t.Error("set again")
	}
}

func TestSetDeploymentAnnotationsTo(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	d.Annotations = map[string]string{"gone": "1", RevisionAnnotation: "2"}
	rs := annotated(replicaSet("rs", "a", 1, 0), "a", "1", RevisionAnnotation, "1", DesiredReplicasAnnotation, "3")
	SetDeploymentAnnotationsTo(d, rs)
	if diff := cmp.Diff(map[string]string{"a": "1", RevisionAnnotation: "2"}, d.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestRollbackTo(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	if _, ok := RollbackTo(d); ok {
		t.Error("no annotation asks for a rollback")
	}
	for value, want := range map[string]bool{"0": true, "12": true, "": false, "x": false} {
		d.Annotations = map[string]string{apps.DeprecatedRollbackTo: value}
		if _, ok := RollbackTo(d); ok != want {
			t.Errorf("%q: %v", value, ok)
		}
	}
}
