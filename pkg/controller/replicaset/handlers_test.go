// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"slices"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/testutil"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func TestPodEvents(t *testing.T) {
	x, y := map[string]string{"app": "x"}, map[string]string{"app": "y"}
	selecting := func(name string, kv map[string]string) *apps.ReplicaSet {
		set := newSet(name, 1)
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: kv}
		return set
	}
	setX, setY, setX2 := selecting("x", x), selecting("y", y), selecting("x2", x)
	elsewhere := selecting("elsewhere", x)
	elsewhere.Namespace = "other"
	empty := selecting("empty", nil)
	job := newPod("p", nil, labelled(x), func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "x", UID: "j", Controller: new(true)}}
	})
	foreign := newPod("p", nil, labelled(x), func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "ReplicaSet", Name: "x", UID: "j", Controller: new(true)}}
	})
	orphan := func(kv map[string]string, options ...podOption) *v1.Pod {
		return newPod("p", nil, append([]podOption{labelled(kv)}, options...)...)
	}
	owned := func(set *apps.ReplicaSet, kv map[string]string, options ...podOption) *v1.Pod {
		return newPod("p", set, append([]podOption{labelled(kv)}, options...)...)
	}
	tests := []struct {
		name     string
		old, cur *v1.Pod // old nil: added; cur nil: deleted
		want     []string
	}{
		{"added, owned", nil, owned(setX, x), []string{"x"}},
		{"added, owned by what is no longer there", nil, owned(newSet("gone", 1), x), []string{"gone"}},
		{"added, owned by another kind", nil, job, nil},
		{"added, owned by a kind of that name in another group", nil, foreign, nil},
		{"added, orphan of one", nil, orphan(y), []string{"y"}},
		{"added, orphan of two", nil, orphan(x), []string{"x", "x2"}},
		{"added, orphan of none", nil, orphan(nil), nil},
		{"added, orphan that leaves", nil, orphan(x, leaving()), nil},
		{"added, orphan that has finished", nil, orphan(x, inPhase(v1.PodSucceeded)), nil},
		{"added, leaving", nil, owned(setX, x, leaving()), []string{"x"}},

		{"updated, owned", owned(setX, x), owned(setX, x), []string{"x"}},
		{"updated, labels changed, owned", owned(setX, x), owned(setX, y), []string{"x"}},
		{"updated, owner changed", owned(setX, x), owned(setY, x), []string{"x", "y"}},
		{"updated, released", owned(setX, x), orphan(y), []string{"x", "y"}},
		{"updated, adopted", orphan(x), owned(setX, x), []string{"x"}},
		{"updated, adopted by another kind", orphan(x), job, nil},
		{"updated, orphan with other labels", orphan(x), orphan(y), []string{"y"}},
		{"updated, orphan as it was", orphan(x), orphan(x, inPhase(v1.PodPending)), nil},
		{"updated, leaving", owned(setX, x), owned(setX, x, leaving()), []string{"x"}},
		{"updated, orphan leaving", orphan(x), orphan(y, leaving()), nil},

		{"deleted, owned", owned(setX, x), nil, []string{"x"}},
		{"deleted, orphan", orphan(x), nil, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, 1, setX, setY, setX2, elsewhere, empty)
			switch {
			case tc.old == nil:
				f.add(tc.cur)
				f.podEvents.Added(tc.cur, false)
			case tc.cur == nil:
				f.podEvents.Deleted(tc.old)
			default:
				f.add(tc.cur)
				f.podEvents.Updated(tc.old, tc.cur)
			}
			if got := f.queued(t); !slices.Equal(got, tc.want) {
				t.Errorf("queued %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTombstones(t *testing.T) {
	set := newSet("web", 1)
	pod := newPod("p", set)
	f := newFixture(t, 1, set)
	handler := worker.Handler(f.name, worker.HandlerFuncs[*v1.Pod]{Delete: f.podEvents.Deleted})
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: pod})
	if got := f.queued(t); !slices.Equal(got, []string{"web"}) {
		t.Errorf("queued %v", got)
	}
}

func TestInitialKeysYield(t *testing.T) {
	first, second := newSet("first", 1), newSet("second", 1)
	f := newFixture(t, 1, first, second)
	f.setAdded(first, true)
	f.podEvents.Added(newPod("p", first), true)
	f.podEvents.Added(newPod("orphan", nil), true)
	f.setUpdated(second, second)
	record := f.worker.Record()
	if record.Depth != 2 || record.DepthInitial != 1 {
		t.Errorf("%d keys wait, %d of them initial; want 2 and 1", record.Depth, record.DepthInitial)
	}
	if got := f.orphans.Record(); got.Depth != 1 || got.DepthInitial != 1 {
		t.Errorf("orphans: %d, %d", got.Depth, got.DepthInitial)
	}
}

// The whole controller on a fake API server, with informers that run.
func TestRun(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset()
	testutil.CountVersions(client, 100)
	factory := informers.NewSharedInformerFactory(client, 0)
	c := NewReplicaSetController(ctx, factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods(), client, BurstReplicas)
	if c.GroupVersionKind != setKind || c.Name() != "replicaset-controller" || len(c.Workers()) != 2 {
		t.Errorf("%v %s %v", c.GroupVersionKind, c.Name(), c.Workers())
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(runCtx.Done())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(runCtx, 2) }()

	set := newSet("web", 3)
	if _, err := client.AppsV1().ReplicaSets("ns").Create(ctx, set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	statusReplicas := func(want int32) func() bool {
		return func() bool {
			got, err := client.AppsV1().ReplicaSets("ns").Get(ctx, "web", metav1.GetOptions{})
			return err == nil && got.Status.Replicas == want
		}
	}
	eventually(t, "three Pods", func() bool { return livePods(t, client) == 3 })
	eventually(t, "the status", statusReplicas(3)) // the fake has no conflicts: a later write would undo ours

	set = set.DeepCopy()
	set.Status.Replicas = 3
	set.Spec.Replicas = new(int32(1))
	if _, err := client.AppsV1().ReplicaSets("ns").Update(ctx, set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one Pod", func() bool { return livePods(t, client) == 1 })
	eventually(t, "the status", statusReplicas(1))

	stop()
	<-done
	factory.Shutdown()
	reasons := map[string]int{}
	events, err := client.CoreV1().Events("ns").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		reasons[event.Reason+" by "+event.Source.Component]++
	}
	if reasons["SuccessfulCreate by replicaset-controller"] != 3 || reasons["SuccessfulDelete by replicaset-controller"] != 2 {
		t.Errorf("events %v", reasons)
	}
}

func livePods(t *testing.T, client *fake.Clientset) int {
	t.Helper()
	pods, err := client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(pods.Items)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if condition() {
			return
		}
		time.Sleep(5 * time.Millisecond) // between two looks at the condition
	}
	t.Fatalf("timed out waiting for %s", what)
}
