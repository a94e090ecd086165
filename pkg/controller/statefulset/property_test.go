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
	"pgregory.net/rapid"
)

var letters = []string{"-", "r", "R", "m", "M", "u", "U", "p", "P", "g", "G", "f", "F", "x", "X", "c", "b", "!r", "!b", "!u"}

func drawSet(t *rapid.T) *apps.StatefulSet {
	set := newSet(rapid.IntRange(0, 7).Draw(t, "replicas"), startingAt(int32(rapid.IntRange(0, 2).Draw(t, "start"))),
		partitioned(int32(rapid.IntRange(0, 8).Draw(t, "partition"))), unavailableUpTo(rapid.IntRange(1, 4).Draw(t, "maxUnavailable")))
	if rapid.Bool().Draw(t, "parallel") {
		parallel(set)
	}
	if rapid.Bool().Draw(t, "minReady") {
		minReady(10)(set)
	}
	return set
}

func drawState(t *rapid.T) *state {
	set := drawSet(t)
	pods := rapid.SliceOfN(rapid.SampledFrom(letters), 0, 9).Draw(t, "pods")
	s := stateOf(t, set, 0, strings.Join(pods, " "))
	s.gates.maxUnavailable = rapid.Bool().Draw(t, "gate")
	s.gates.leaveBadRevision = rapid.Bool().Draw(t, "leave")
	return s
}

// What a plan never does, whatever it finds.
func TestPlanSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		ordered := isOrdered(s.set)
		unavailable := s.unavailable()
		plan := makePlan(s)
		creates, removals, fresh := 0, 0, 0
		seen := map[*replica]bool{}
		for _, step := range plan.steps {
			for _, a := range step.actions {
				r := a.replica
				switch a.verb {
				case create:
					creates++
					if r.pod != nil || r.condemned {
						t.Fatalf("creates %d, which is there or not wanted", r.ordinal)
					}
				case remove:
					removals++
					if r.pod == nil || r.going {
						t.Fatalf("removes %d, which is not there or going", r.ordinal)
					}
					if !r.condemned && s.isHealthy(r) {
						fresh++
						if !s.isOld(r) || r.ordinal-startOrdinal(s.set) < partition(s.set) {
							t.Fatalf("removes %d, which is healthy and not due", r.ordinal)
						}
					}
				}
				if a.verb != provide && seen[r] && a.verb != remove {
					t.Fatalf("two actions for %d", r.ordinal)
				}
				seen[r] = true
			}
		}
		if ordered && creates > 1 {
			t.Fatalf("creates %d at a time", creates)
		}
		if ordered && creates+removals > max(1, s.maxUnavailable) {
			t.Fatalf("creates %d and removes %d at a time", creates, removals)
		}
		limit := s.maxUnavailable
		if !s.gates.maxUnavailable {
			limit = 1
			unavailable = 0 // without the gate only those above the Pod are looked at, as upstream does
		}
		if fresh > 0 && unavailable+fresh > limit {
			t.Fatalf("makes %d more unavailable where %d are and %d may be", fresh, unavailable, limit)
		}
	})
}

// live plays one round: the plan is carried out, Pods that go are
// gone, and Pods that came become ready, except those of the third revision.
func live(t tester, s *state) {
	for _, step := range makePlan(s).steps {
		for _, a := range step.actions {
			switch a.verb {
			case create:
				letter := "P"
				if wantsCurrent(s.set, a.replica.ordinal) {
					letter = "p"
				}
				a.replica.pod = podIn(t, s.set, a.replica.ordinal, letter)
			case remove:
				a.replica.going = true
			case mend:
				setIdentity(a.replica.pod, a.replica.ordinal)
			}
		}
	}
	s.now = s.now.Add(2 * time.Minute)
	for r := range s.all() {
		switch {
		case r.pod == nil:
		case r.going:
			r.pod, r.going = nil, false
		case r.pod.Status.Phase == v1.PodPending || r.pod.Status.Phase == v1.PodRunning && !isRunningAndReady(r.pod):
			if revisionOf(r.pod) != "third" {
				r.pod.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{
					Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now.Add(-time.Minute))}}}
			}
		}
	}
	kept := s.condemned[:0]
	for _, r := range s.condemned {
		if r.pod != nil {
			kept = append(kept, r)
		}
	}
	s.condemned = kept
}

// A set always ends with all its Pods, of the right revisions, and then rests. One Pod of
// a bad revision blocks an ordered roll-out, unless the set may leave it.
func TestPlanLiveness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		hasBad := false
		for r := range s.all() {
			hasBad = hasBad || r.pod != nil && revisionOf(r.pod) == "third"
		}
		for range 100 {
			live(t, s)
		}
		if hasBad && isOrdered(s.set) && (!s.gates.leaveBadRevision || partition(s.set) > 0 || len(s.condemned) > 0) {
			return // it may wait for a Pod that never becomes ready, as upstream's does
		}
		if hasBad && !isOrdered(s.set) && (!s.gates.maxUnavailable || partition(s.set) > 0) {
			return
		}
		if rest := makePlan(s).text(); rest != "" {
			t.Fatalf("still planned: %s", rest)
		}
		if len(s.condemned) != 0 {
			t.Fatalf("%d pods too many", len(s.condemned))
		}
		for i, r := range s.replicas {
			if r.pod == nil || !s.isHealthy(r) {
				t.Fatalf("%d is not there or not healthy", r.ordinal)
			}
			if i >= partition(s.set) && revisionOf(r.pod) != s.update {
				t.Fatalf("%d is of revision %s", r.ordinal, revisionOf(r.pod))
			}
		}
	})
}

// In an ordered set with maxUnavailable, whatever happens between two plans, there is never
// more than the budget taken (upstream's test of the invariant).
func TestPlanKeepsItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(1, 10).Draw(t, "replicas")
		s := stateOf(t, newSet(replicas, unavailableUpTo(rapid.IntRange(1, 4).Draw(t, "max"))), 0, strings.Repeat("r ", replicas))
		if rapid.Bool().Draw(t, "parallel") {
			parallel(s.set)
		}
		for round := range 60 {
			for _, step := range makePlan(s).steps {
				for _, a := range step.actions {
					switch a.verb {
					case create:
						a.replica.pod = podIn(t, s.set, a.replica.ordinal, "P")
					case remove:
						a.replica.going = true
					}
				}
			}
			if n := s.unavailable(); n > s.maxUnavailable {
				t.Fatalf("%d unavailable", n)
			}
			// Some of what is on its way arrives.
			for _, r := range s.replicas {
				if !rapid.Bool().Draw(t, fmt.Sprintf("arrives %d %d", round, r.ordinal)) {
					continue
				}
				switch {
				case r.going:
					r.pod, r.going = nil, false
				case r.pod != nil && r.pod.Status.Phase == v1.PodPending:
					r.pod = podIn(t, s.set, r.ordinal, "R")
				}
			}
		}
	})
}
