// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestSlowStartBatch(t *testing.T) {
	errLimit := errors.New("limit reached")
	tests := []struct {
		name          string
		count         int
		limit         int // calls beyond it fail
		wantCalls     int
		wantSuccesses int
	}{
		{"all fail: one call", 10, 0, 1, 0},
		{"all succeed", 10, 10, 10, 10},
		{"some succeed: the batch of the failure is finished", 10, 5, 7, 5},
		{"nothing to do", 0, 10, 0, 0},
		{"one", 1, 10, 1, 1},
		{"last batch is what is left", 8, 8, 8, 8},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			seen := make([]atomic.Bool, tc.count)
			successes, err := SlowStartBatch(t.Context(), tc.count, SlowStartInitialBatchSize, func(_ context.Context, i int) error {
				if seen[i].Swap(true) {
					t.Errorf("called twice for %d", i)
				}
				if int(calls.Add(1)) > tc.limit {
					return errLimit
				}
				return nil
			})
			if successes != tc.wantSuccesses || int(calls.Load()) != tc.wantCalls {
				t.Errorf("%d successes of %d calls, want %d of %d", successes, calls.Load(), tc.wantSuccesses, tc.wantCalls)
			}
			if want := tc.limit < tc.count; errors.Is(err, errLimit) != want {
				t.Errorf("error %v, want one: %v", err, want)
			}
		})
	}
}

func TestSlowStartBatchCallsInParallel(t *testing.T) {
	// Each call of the second batch waits for the other one.
	met := make(chan struct{}, 1)
	_, err := SlowStartBatch(t.Context(), 3, 1, func(ctx context.Context, i int) error {
		switch i {
		case 1:
			met <- struct{}{}
		case 2:
			<-met
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestResyncPeriods(t *testing.T) {
	if got := StaticResyncPeriodFunc(time.Minute)(); got != time.Minute {
		t.Errorf("StaticResyncPeriodFunc: %v", got)
	}
	if got := NoResyncPeriodFunc(); got != 0 {
		t.Errorf("NoResyncPeriodFunc: %v", got)
	}
}

func TestKeys(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	if got := PodKey(pod); got != "ns/a" {
		t.Errorf("PodKey: %s", got)
	}
	for _, obj := range []any{pod, cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod}} {
		if got, err := KeyFunc(obj); err != nil || got != "ns/a" {
			t.Errorf("KeyFunc(%T): %s, %v", obj, got, err)
		}
	}
}

func TestReplicaSetOrders(t *testing.T) {
	set := func(name string, second int64, size int32) *apps.ReplicaSet {
		return &apps.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)},
			Spec:       apps.ReplicaSetSpec{Replicas: &size},
		}
	}
	old, mid, young := set("c", 1, 2), set("b", 2, 5), set("a", 3, 2)
	twin := set("d", 3, 2)
	all := func() []*apps.ReplicaSet { return []*apps.ReplicaSet{young, twin, mid, old} }

	byAge := all()
	sortBy(ReplicaSetsByCreationTimestamp(byAge))
	byOlder := all()
	sortBy(ReplicaSetsBySizeOlder(byOlder))
	byNewer := all()
	sortBy(ReplicaSetsBySizeNewer(byNewer))
	for _, tc := range []struct {
		name string
		got  []*apps.ReplicaSet
		want string
	}{
		{"creation", byAge, "cbad"},
		{"size, older first", byOlder, "bcad"},
		{"size, newer first", byNewer, "bdac"},
	} {
		got := ""
		for _, rs := range tc.got {
			got += rs.Name
		}
		if got != tc.want {
			t.Errorf("by %s: %s, want %s", tc.name, got, tc.want)
		}
	}

	active := FilterActiveReplicaSets([]*apps.ReplicaSet{nil, set("zero", 1, 0), {ObjectMeta: metav1.ObjectMeta{Name: "unset"}}, old})
	if len(active) != 1 || active[0] != old {
		t.Errorf("FilterActiveReplicaSets: %v", active)
	}
}

func TestControllersByCreationTimestamp(t *testing.T) {
	rc := func(name string, second int64) *v1.ReplicationController {
		return &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)}}
	}
	rcs := []*v1.ReplicationController{rc("b", 2), rc("a", 2), rc("c", 1)}
	sortBy(ControllersByCreationTimestamp(rcs))
	if rcs[0].Name != "c" || rcs[1].Name != "a" || rcs[2].Name != "b" {
		t.Errorf("order %s %s %s", rcs[0].Name, rcs[1].Name, rcs[2].Name)
	}
}
