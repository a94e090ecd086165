// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPodFilters(t *testing.T) {
	pods := []*v1.Pod{
		podWith("pending", inPhase(v1.PodPending)),
		podWith("running"),
		podWith("succeeded", inPhase(v1.PodSucceeded)),
		podWith("failed", inPhase(v1.PodFailed)),
		inDeletion(podWith("running-leaving")),
		inDeletion(podWith("pending-leaving", inPhase(v1.PodPending))),
		inDeletion(podWith("failed-leaving", inPhase(v1.PodFailed))),
	}
	if got := podNames(FilterActivePods(pods)); !slices.Equal(got, []string{"pending", "running"}) {
		t.Errorf("active: %v", got)
	}
	if got := podNames(FilterTerminatingPods(pods)); !slices.Equal(got, []string{"running-leaving", "pending-leaving"}) {
		t.Errorf("terminating: %v", got)
	}
	if got := CountTerminatingPods(pods); got != 2 {
		t.Errorf("%d terminating", got)
	}
}

func TestFilterClaimedPods(t *testing.T) {
	owner, other := testOwner("owner-uid", "ns"), testOwner("other-uid", "ns")
	pods := []*v1.Pod{
		claimPod("mine", productive, owner),
		claimPod("mine-unlabelled", nil, owner),
		claimPod("others", productive, other),
		claimPod("orphan", productive, nil),
	}
	if got := podNames(FilterClaimedPods(owner, labels.SelectorFromSet(productive), pods)); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("claimed: %v", got)
	}
}

func TestFindMinNextPodAvailabilityCheck(t *testing.T) {
	notReady := podWith("not-ready")
	since := func(seconds int) *v1.Pod {
		return podWith("ready", readySince(ago(time.Duration(seconds)*time.Second)))
	}
	seconds := func(n int) *time.Duration { return new(time.Duration(n) * time.Second) }
	tests := []struct {
		name     string
		pods     []*v1.Pod
		minReady int32
		// evaluated is how long before now the status was computed.
		evaluated time.Duration
		want      *time.Duration
	}{
		{"no pods", nil, 10, 0, nil},
		{"not ready", []*v1.Pod{notReady}, 10, 0, nil},
		{"no minReadySeconds", []*v1.Pod{since(0)}, 0, 0, nil},
		{"transition time unknown", []*v1.Pod{podWith("p", readySince(time.Time{}))}, 10, 0, nil},
		{"just became ready", []*v1.Pod{since(0)}, 1, 0, seconds(1)},
		{"ready for 20 s of 30", []*v1.Pod{since(20)}, 30, 0, seconds(10)},
		{"available for long", []*v1.Pod{since(51)}, 50, 0, nil},
		{"becomes available this moment: it was counted", []*v1.Pod{since(50)}, 50, 0, nil},
		{"the next of several", []*v1.Pod{notReady, since(5), since(20), since(40)}, 30, 0, seconds(10)},
		{"the status is 6 s old, in which the wait went on", []*v1.Pod{notReady, since(20), since(5)}, 30, 6 * time.Second, seconds(10)},
		{"became available since the status was computed: look at once", []*v1.Pod{since(33), since(20)}, 30, 6 * time.Second, seconds(0)},
		{"evaluation took longer than minReadySeconds", []*v1.Pod{since(5)}, 2, 10 * time.Second, seconds(0)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := FindMinNextPodAvailabilityCheck(tc.pods, tc.minReady, ago(tc.evaluated), clocktesting.NewFakePassiveClock(testNow))
			if (got == nil) != (tc.want == nil) || (got != nil && *got != *tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestFilterPodsByOwner(t *testing.T) {
	informer := podInformer(t)
	indexer := informer.GetIndexer()
	owned := func(namespace, name, kind, owner, uid string, controller bool) {
		pod := podWith(name)
		pod.Namespace = namespace
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: podWith(uid).UID, Controller: &controller}}
		_ = indexer.Add(pod)
	}
	owned("ns", "mine-1", "ReplicaSet", "web", "u1", true)
	owned("ns", "mine-2", "ReplicaSet", "web", "u1", true)
	owned("other", "other-namespace", "ReplicaSet", "web", "u1", true)
	owned("ns", "other-uid", "ReplicaSet", "web", "u2", true)
	owned("ns", "other-kind", "Job", "web", "u1", true)
	owned("ns", "other-name", "ReplicaSet", "api", "u1", true)
	owned("ns", "not-controller", "ReplicaSet", "web", "u1", false)
	_ = indexer.Add(podWith("orphan"))
	stranger := podWith("orphan-elsewhere")
	stranger.Namespace = "other"
	_ = indexer.Add(stranger)

	owner := &metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1"}
	for _, tc := range []struct {
		orphans bool
		want    []string
	}{
		{false, []string{"mine-1", "mine-2"}},
		{true, []string{"mine-1", "mine-2", "not-controller", "orphan"}},
	} {
		pods, err := FilterPodsByOwner(indexer, owner, "ReplicaSet", tc.orphans)
		names := podNames(pods)
		slices.Sort(names)
		if err != nil || !slices.Equal(names, tc.want) {
			t.Errorf("orphans %v: %v, %v, want %v", tc.orphans, names, err, tc.want)
		}
	}

	for want, in := range map[string]struct {
		meta metav1.ObjectMeta
		kind string
	}{
		"no owner namespace provided": {metav1.ObjectMeta{Name: "web", UID: "u1"}, "ReplicaSet"},
		"no owner name provided":      {metav1.ObjectMeta{Namespace: "ns", UID: "u1"}, "ReplicaSet"},
		"no owner uid provided":       {metav1.ObjectMeta{Namespace: "ns", Name: "web"}, "ReplicaSet"},
		"no owner kind provided":      {*owner, ""},
	} {
		if _, err := FilterPodsByOwner(indexer, &in.meta, in.kind, true); errText(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
