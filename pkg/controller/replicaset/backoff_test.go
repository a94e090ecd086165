// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rejectedPod(name string, at time.Time) *v1.Pod {
	return newPod(name, nil, inPhase(v1.PodFailed), createdAt(at), func(p *v1.Pod) {
		p.Status.Reason, p.Status.Message = "NodeAffinity", "Pod was rejected"
		p.Status.StartTime = new(metav1.NewTime(at))
	})
}

func TestRejectionBackoff(t *testing.T) {
	at := func(seconds int) time.Time { return ago(time.Duration(seconds) * time.Second) }
	ran := func(d time.Duration) podOption {
		return func(p *v1.Pod) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{
				Terminated: &v1.ContainerStateTerminated{StartedAt: metav1.NewTime(ago(d)), FinishedAt: metav1.NewTime(testNow)}}}}
		}
	}
	crashing := func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
	}
	initializing := func(p *v1.Pod) {
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	}
	many := func(n, newest int) (pods []*v1.Pod) {
		for i := range n {
			pods = append(pods, rejectedPod(fmt.Sprintf("r%d", i), at(newest+i)))
		}
		return pods
	}
	tests := []struct {
		name    string
		owned   []*v1.Pod
		missing int
		wait    time.Duration // -1: no back-off
	}{
		{"no Pods", nil, 1, -1},
		{"healthy Pods", nPods(3, nil), 1, -1},
		{"one rejected: replaced at once", many(1, 0), 1, -1},
		{"a whole round rejected: replaced at once", many(10, 0), 10, -1},
		{"the replacement too", many(2, 0), 1, time.Second},
		{"two rounds of ten", many(20, 0), 10, time.Second},
		{"three", many(3, 0), 1, 2 * time.Second},
		{"six", many(6, 0), 1, 16 * time.Second},
		{"time has passed", many(6, 10), 1, 6 * time.Second},
		{"the time has come", many(6, 60), 1, 0},
		{"very many", many(200, 0), 1, backoffMaxDelay},
		{"long ago: another story", many(6, 601), 1, -1},
		{"a gap ends the row", append(many(1, 0), many(6, 700)...), 1, -1},
		{"one has started since: progress", append(many(6, 5), newPod("ok", nil, createdAt(at(3)))), 1, -1},
		{"one has started in the same second", append(many(6, 5), newPod("ok", nil, createdAt(at(5)))), 1, -1},
		{"one had started before", append(many(2, 5), newPod("ok", nil, createdAt(at(100)))), 1, 0},
		{"only those since the last start count", append(many(3, 2), newPod("ok", nil, createdAt(at(3)))), 1, -1},
		{"evicted after it ran", []*v1.Pod{newPod("a", nil, inPhase(v1.PodFailed), ran(time.Minute)), newPod("b", nil, inPhase(v1.PodFailed), ran(time.Minute))}, 1, -1},
		{"evicted as soon as it ran", []*v1.Pod{newPod("a", nil, inPhase(v1.PodFailed), ran(time.Second), createdAt(testNow)), newPod("b", nil, inPhase(v1.PodFailed), ran(time.Second), createdAt(testNow))}, 1, time.Second},
		{"evicted after restarts", []*v1.Pod{newPod("a", nil, inPhase(v1.PodFailed), crashing), newPod("b", nil, inPhase(v1.PodFailed), crashing)}, 1, -1},
		{"one that initializes is progress", append(many(6, 5), newPod("p", nil, inPhase(v1.PodPending), initializing, createdAt(at(1)))), 1, -1},
		{"in deletion", []*v1.Pod{rejectedDeleted("a"), rejectedDeleted("b")}, 1, -1},
		{"one that waits is no judgement", append(many(2, 0), newPod("p", nil, inPhase(v1.PodPending))), 1, time.Second},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := creationBackoff(tc.owned, tc.missing, testNow)
			switch {
			case tc.wait < 0 && got != nil:
				t.Errorf("waits %v, want no back-off", got.wait)
			case tc.wait >= 0 && (got == nil || got.wait != tc.wait):
				t.Errorf("%+v, want to wait %v", got, tc.wait)
			}
		})
	}
}

func rejectedDeleted(name string) *v1.Pod {
	pod := rejectedPod(name, testNow)
	leaving()(pod)
	return pod
}

// BC027: one replica, and a kubelet that rejects every Pod at once.
func TestRejectedPodsAreRecreatedSlowly(t *testing.T) {
	set := newSet("web", 1)
	s := &state{set: set, burst: 500}
	start := testNow
	var gaps []time.Duration
	last := start
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(500 * time.Millisecond) {
		s.now = now
		if p := makePlan(s); p.create > 0 {
			pod := rejectedPod(fmt.Sprintf("r%d", len(s.owned)), now.Truncate(time.Second))
			s.owned = append(s.owned, pod)
			gaps = append(gaps, now.Sub(last))
			last = now
		}
		if now.Sub(start) == time.Minute && len(s.owned) > 20 {
			t.Fatalf("%d Pods in the first minute", len(s.owned))
		}
	}
	for i := 3; i < len(gaps); i++ {
		if gaps[i] < gaps[i-1] && gaps[i] < backoffMaxDelay {
			t.Errorf("the delay shrinks: %v", gaps)
		}
	}
	if len(s.owned) < 8 || len(s.owned) > 15 {
		t.Errorf("%d Pods in ten minutes, after %v", len(s.owned), gaps)
	}
}

func TestRejectionSaysWhy(t *testing.T) {
	got := creationBackoff([]*v1.Pod{rejectedPod("a", ago(time.Second)), rejectedPod("b", testNow)}, 1, testNow).String()
	if !strings.Contains(got, "pod b did: NodeAffinity: Pod was rejected") {
		t.Errorf("%q does not name the last Pod and its reason", got)
	}
}
