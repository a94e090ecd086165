// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
)

// show writes a plan as one line.
func show(p plan) string {
	var parts []string
	for _, v := range p.victims {
		parts = append(parts, v.String())
	}
	for _, node := range p.outOfService {
		parts = append(parts, "out-of-service: "+node)
	}
	for _, node := range p.lost {
		parts = append(parts, "lost: "+node)
	}
	return strings.Join(parts, ", ")
}

func byName(nodes ...*v1.Node) map[string]*v1.Node {
	all := map[string]*v1.Node{}
	for _, node := range nodes {
		all[node.Name] = node
	}
	return all
}

func TestTerminated(t *testing.T) {
	tests := []struct {
		name      string
		threshold int
		pods      []*v1.Pod
		want      string // names, in order
	}{
		{"threshold 0 deletes none", 0, []*v1.Pod{newPod("a", "node", v1.PodFailed), newPod("b", "node", v1.PodSucceeded)}, ""},
		{"negative threshold deletes none", -1, []*v1.Pod{newPod("a", "node", v1.PodFailed)}, ""},
		{"failed and succeeded count, pending, running and unknown do not", 1, []*v1.Pod{
			newPod("a", "node", v1.PodFailed), newPod("b", "node", v1.PodSucceeded, created(1)), newPod("c", "node", v1.PodFailed, created(2)),
			newPod("p", "node", v1.PodPending), newPod("r", "node", v1.PodRunning), newPod("u", "node", v1.PodUnknown)}, "a b"},
		{"the oldest goes", 1, []*v1.Pod{newPod("a", "node", v1.PodFailed, created(3)), newPod("b", "node", v1.PodSucceeded, created(1))}, "b"},
		{"the oldest goes, whatever its phase", 1, []*v1.Pod{newPod("a", "node", v1.PodFailed, created(1)), newPod("b", "node", v1.PodSucceeded, created(3))}, "a"},
		{"of one age, by name", 1, []*v1.Pod{newPod("b", "node", v1.PodFailed), newPod("a", "node", v1.PodFailed), newPod("c", "node", v1.PodFailed)}, "a b"},
		{"at the threshold", 2, []*v1.Pod{newPod("a", "node", v1.PodFailed), newPod("b", "node", v1.PodSucceeded)}, ""},
		{"under the threshold", 5, []*v1.Pod{newPod("a", "node", v1.PodFailed), newPod("b", "node", v1.PodSucceeded)}, ""},
		{"evicted ones go first, the oldest of them first", 1, []*v1.Pod{
			newPod("old", "node", v1.PodFailed), newPod("young", "node", v1.PodFailed, created(9), evicted), newPod("middle", "node", v1.PodFailed, created(5), evicted)}, "middle young"},
		{"no phase is terminated", 1, []*v1.Pod{newPod("a", "node", ""), newPod("b", "node", "", created(1))}, "a"},
		{"evicted and running is not terminated", 1, []*v1.Pod{newPod("a", "node", v1.PodRunning, evicted), newPod("b", "node", v1.PodFailed)}, ""},
		{"one in deletion counts, and goes when it may go quicker", 1, []*v1.Pod{newPod("a", "node", v1.PodFailed, deleting), newPod("b", "node", v1.PodFailed, created(1))}, "a"},
		{"one that was force-deleted counts, and is left to its finalizers", 1, []*v1.Pod{newPod("a", "node", v1.PodFailed, forceDeleted, held), newPod("b", "node", v1.PodFailed, created(1))}, ""},
		{"on a node that is lost too, each goes once", 1, []*v1.Pod{newPod("a", "node", v1.PodFailed), newPod("b", "node", v1.PodFailed)}, "a"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var names []string
			for _, v := range makePlan(tc.pods, byName(newNode("node", v1.ConditionTrue)), tc.threshold).victims {
				names = append(names, v.name)
				if v.reason != metrics.PodGCReasonTerminated || v.uid != types.UID("uid-"+v.name) || v.namespace != "default" {
					t.Errorf("victim %+v", v)
				}
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("deletes %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPlanByNode(t *testing.T) {
	const outOfService = v1.TaintNodeOutOfService
	nodes := byName(
		newNode("ready", v1.ConditionTrue), newNode("not-ready", v1.ConditionFalse),
		newNode("ready-tainted", v1.ConditionTrue, outOfService), newNode("down", v1.ConditionFalse, outOfService),
		newNode("unknown-down", v1.ConditionUnknown, "example.com/other", outOfService), newNode("silent-down", "", outOfService),
		newNode("other-taint", v1.ConditionFalse, v1.TaintNodeUnreachable),
	)
	tests := []struct {
		name string
		pods []*v1.Pod
		want string
	}{
		{"nothing", nil, ""},
		{"running on a ready node", []*v1.Pod{newPod("a", "ready", v1.PodRunning)}, ""},
		{"scheduled pods in deletion are their kubelets'", []*v1.Pod{newPod("a", "ready", v1.PodRunning, deleting), newPod("b", "ready", v1.PodFailed, deleting), newPod("c", "ready", v1.PodSucceeded, deleting)}, ""},
		{"unscheduled pods in deletion, in any phase", []*v1.Pod{newPod("a", "", v1.PodFailed, deleting), newPod("b", "", v1.PodSucceeded, deleting), newPod("c", "", v1.PodRunning, deleting), newPod("d", "", "", deleting)},
			"default/a (unscheduled), default/b (unscheduled), default/c (unscheduled), default/d (unscheduled)"},
		{"unscheduled pods", []*v1.Pod{newPod("a", "", v1.PodPending)}, ""},
		{"node not ready, no taint", []*v1.Pod{newPod("a", "not-ready", v1.PodRunning, deleting), newPod("b", "other-taint", v1.PodRunning, deleting)}, ""},
		{"node tainted but ready", []*v1.Pod{newPod("a", "ready-tainted", v1.PodRunning, deleting)}, ""},
		{"node out of service, pods not in deletion", []*v1.Pod{newPod("a", "down", v1.PodRunning), newPod("b", "down", v1.PodFailed)}, ""},
		{"nodes out of service, pods in deletion of any phase", []*v1.Pod{newPod("a", "down", v1.PodRunning, deleting), newPod("b", "down", v1.PodFailed, deleting), newPod("c", "unknown-down", "", deleting), newPod("d", "silent-down", v1.PodSucceeded, deleting)},
			"out-of-service: down, out-of-service: silent-down, out-of-service: unknown-down"},
		{"pods on missing nodes, in any phase, in deletion or not", []*v1.Pod{newPod("a", "gone", v1.PodRunning), newPod("b", "gone", v1.PodSucceeded), newPod("c", "gone-too", v1.PodFailed, deleting), newPod("d", "ready", v1.PodRunning)},
			"lost: gone, lost: gone-too"},
		{"a force-deleted pod with finalizers asks for nothing", []*v1.Pod{newPod("a", "gone", v1.PodFailed, forceDeleted, held), newPod("b", "down", v1.PodSucceeded, forceDeleted, held), newPod("c", "", v1.PodFailed, forceDeleted, held)}, ""},
		{"one that has not failed yet does", []*v1.Pod{newPod("a", "gone", v1.PodRunning, forceDeleted, held)}, "lost: gone"},
		{"one in deletion with grace does", []*v1.Pod{newPod("a", "gone", v1.PodFailed, deleting, held)}, "lost: gone"},
		{"one without finalizers does", []*v1.Pod{newPod("a", "gone", v1.PodFailed, forceDeleted)}, "lost: gone"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := show(makePlan(tc.pods, nodes, 100)); got != tc.want {
				t.Errorf("plan %q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever there is, a plan deletes terminated Pods down to the threshold and no further,
// never one that may run where it is, and none twice.
func TestPlanProperties(t *testing.T) {
	nodes := byName(newNode("ready", v1.ConditionTrue), newNode("down", v1.ConditionFalse, v1.TaintNodeOutOfService))
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.IntRange(-1, 6).Draw(t, "threshold")
		var pods []*v1.Pod
		for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
			pod := newPod(fmt.Sprintf("p%02d", i),
				rapid.SampledFrom([]string{"", "ready", "down", "gone"}).Draw(t, "node"),
				rapid.SampledFrom([]v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodUnknown, v1.PodSucceeded, v1.PodFailed}).Draw(t, "phase"),
				created(rapid.IntRange(0, 3).Draw(t, "age")))
			for _, change := range []func(*v1.Pod){evicted, deleting, held, forceDeleted} {
				if rapid.Bool().Draw(t, "change") {
					change(pod)
				}
			}
			pods = append(pods, pod)
		}
		before := len(pods)
		p := makePlan(slices.Clone(pods), nodes, threshold)
		terminated, surplus, seen := 0, 0, map[string]bool{}
		byPodName := map[string]*v1.Pod{}
		for _, pod := range pods {
			byPodName[pod.Name] = pod
			if isTerminated(pod) {
				terminated++
			}
		}
		for _, v := range p.victims {
			pod := byPodName[v.name]
			if seen[v.name] {
				t.Fatalf("%v is deleted twice", v)
			}
			seen[v.name] = true
			switch v.reason {
			case metrics.PodGCReasonTerminated:
				surplus++
				if !isTerminated(pod) {
					t.Fatalf("%v is %s", v, pod.Status.Phase)
				}
			case metrics.PodGCReasonTerminatingUnscheduled:
				if pod.Spec.NodeName != "" || pod.DeletionTimestamp == nil {
					t.Fatalf("%v is on node %q, deleted at %v", v, pod.Spec.NodeName, pod.DeletionTimestamp)
				}
			default:
				t.Fatalf("%v before its node was asked for", v)
			}
		}
		if most := max(0, terminated-threshold); surplus > most || threshold <= 0 && surplus > 0 {
			t.Fatalf("%d of %d terminated pods are deleted with threshold %d", surplus, terminated, threshold)
		}
		if slices.Contains(p.lost, "") || slices.Contains(p.lost, "ready") || slices.Contains(p.lost, "down") || len(pods) != before {
			t.Fatalf("lost nodes %v", p.lost)
		}
	})
}

// The order of surplus Pods does not depend on the order in which they are listed.
func TestSurplusIsOrdered(t *testing.T) {
	pods := []*v1.Pod{
		newPod("b", "n", v1.PodFailed), newPod("a", "n", v1.PodFailed), newPod("c", "n", v1.PodFailed, evicted),
		newPod("d", "n", v1.PodSucceeded, created(-1)), newPod("a", "n", v1.PodFailed, func(p *v1.Pod) { p.Namespace = "other" }),
	}
	show := func(pods []*v1.Pod) string {
		var names []string
		for _, pod := range pods {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		return strings.Join(names, " ")
	}
	want := "default/c default/d default/a other/a"
	for range len(pods) {
		pods = append(pods[1:], pods[0])
		if got := show(surplusOf(pods, 1)); got != want {
			t.Errorf("surplus %q, want %q", got, want)
		}
	}
}
