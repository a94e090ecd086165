// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// settledSet is a set whose status needs no write when it has this many ready Pods.
func settledSet(name string, replicas int32) *apps.ReplicaSet {
	set := newSet(name, replicas)
	set.Status = apps.ReplicaSetStatus{
		Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		ObservedGeneration: 1, TerminatingReplicas: new(int32(0)),
	}
	return set
}

func TestSyncDoesNothingWhenAllIsWell(t *testing.T) {
	set := settledSet("web", 2)
	f := newFixture(t, BurstReplicas, set)
	f.addPods(nPods(2, set, ready()))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 0, 0, 0)
	if got := f.requests(); got != "" {
		t.Errorf("requests %s", got)
	}
}

func TestSyncOfAMissingSet(t *testing.T) {
	f := newFixture(t, BurstReplicas)
	if err := f.syncSet(t, newSet("gone", 2)); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 0, 0, 0)
}

func TestSyncCreatesAndReports(t *testing.T) {
	set := newSet("web", 3)
	f := newFixture(t, BurstReplicas, set)
	f.add(newPod("a", set))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 2, 0, 0)
	if want := *metav1.NewControllerRef(set, setKind); !equality.Semantic.DeepEqual(f.podControl.ControllerRefs[0], want) {
		t.Errorf("owner %+v", f.podControl.ControllerRefs[0])
	}
	if got := f.requests(); got != "update replicasets/status" {
		t.Errorf("requests %s", got)
	}
	status := f.client.Actions()[0].(clienttesting.UpdateAction).GetObject().(*apps.ReplicaSet).Status
	if status.Replicas != 1 || status.ObservedGeneration != 1 {
		t.Errorf("status %+v: it tells what was seen, not what was asked for", status)
	}
}

func TestSyncDeletesUnderTheUID(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	f.add(newPod("keep", set, ready()), newPod("drop", set))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.podControl.DeletePodUID, []string{"drop-uid"}) {
		t.Errorf("deleted %v", f.podControl.DeletePodUID)
	}
}

func TestSyncBurst(t *testing.T) {
	set := newSet("web", 5)
	f := newFixture(t, 2, set)
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 2, 0, 0)

	none := newSet("none", 0)
	f = newFixture(t, 2, none)
	f.addPods(nPods(5, none))
	if err := f.syncSet(t, none); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 0, 2, 0)
}

func TestSyncCreateFailures(t *testing.T) {
	set := newSet("web", 10)
	f := newFixture(t, BurstReplicas, set)
	f.podControl.CreateLimit = 5
	err := f.syncSet(t, set)
	if err == nil || !strings.Contains(err.Error(), "limit 5 already reached") {
		t.Errorf("error %v", err)
	}
	// Batches of 1, 2 and 4, of which the last one failed in part.
	if f.podControl.CreateCallCount != 7 || len(f.podControl.Templates) != 5 {
		t.Errorf("%d calls, %d created; want 7 and 5", f.podControl.CreateCallCount, len(f.podControl.Templates))
	}
	status := f.client.Actions()[0].(clienttesting.UpdateAction).GetObject().(*apps.ReplicaSet).Status
	condition := GetCondition(status, apps.ReplicaSetReplicaFailure)
	if condition == nil || condition.Reason != "FailedCreate" || condition.Status != v1.ConditionTrue || !strings.HasPrefix(condition.Message, "not creating pod, limit 5 already reached") {
		t.Errorf("condition %+v", condition)
	}
}

// A set that has just created Pods does nothing until the cache shows them.
func TestSyncWaitsForItsOwnWrites(t *testing.T) {
	set := newSet("web", 2)
	f := newFixture(t, BurstReplicas, set)
	f.podIndexer.Bookmark("10")
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 2, 0, 0)
	f.onWrite(&v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "11"}})
	f.onWrite(&v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12"}})
	f.podControl.Clear()

	before := f.staleSkips(t)
	for _, pod := range []*v1.Pod{nil, newPod("p0", set, version("11"))} {
		if pod != nil {
			f.add(pod)
		}
		if err := f.syncSet(t, set); err == nil {
			t.Error("a sync with a stale cache does not come back later")
		}
		f.writes(t, 0, 0, 0)
	}
	if got := f.staleSkips(t) - before; got != 2 {
		t.Errorf("metric counts %v skips, want 2", got)
	}
	f.add(newPod("p1", set, version("12")))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 0, 0, 0)
}

func version(v string) podOption { return func(p *v1.Pod) { p.ResourceVersion = v } }

func (f *fixture) staleSkips(t *testing.T) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(f.metrics.staleSyncSkips.WithLabelValues("", "pods"))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// A deletion gives no version: the Pod is off the count at once, whatever the cache shows.
func TestSyncCountsOffWhatItDeleted(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	keep, drop := newPod("keep", set, ready()), newPod("drop", set)
	f.add(keep, drop)
	for range 2 {
		if err := f.syncSet(t, set); err != nil {
			t.Fatal(err)
		}
		f.writes(t, 0, 1, 0)
	}
	last := f.client.Actions()[len(f.client.Actions())-1].(clienttesting.UpdateAction).GetObject().(*apps.ReplicaSet).Status
	if last.Replicas != 1 || *last.TerminatingReplicas != 1 {
		t.Errorf("status %+v", last)
	}
	// The one that stays is lost by other hands: it is replaced, and the deleted one, which
	// the cache still shows, does not take its place.
	_ = f.podIndexer.Delete(keep)
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 1, 1, 0)

	// Once the cache shows the deletion, nothing is remembered of it.
	_ = f.podIndexer.Delete(drop)
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	if f.guard.IsDeleting(types.NamespacedName{Namespace: "ns", Name: "web"}, drop.UID) {
		t.Error("the guard remembers a Pod that is gone")
	}
}

func TestSyncDeleteFailures(t *testing.T) {
	set := newSet("web", 0)
	pod := newPod("a", set)
	tests := []struct {
		name      string
		err       error
		wantErr   bool
		wantAgain int // deletions by the next sync
	}{
		{"refused", apierrors.NewForbidden(v1.Resource("pods"), "a", errors.New("no")), true, 1},
		{"gone already", apierrors.NewNotFound(v1.Resource("pods"), "a"), false, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, BurstReplicas, set)
			f.add(pod)
			f.podControl.Err = tc.err
			if err := f.syncSet(t, set); (err != nil) != tc.wantErr {
				t.Errorf("error %v", err)
			}
			f.podControl.Clear()
			f.podControl.Err = nil
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			f.writes(t, 0, tc.wantAgain, 0)
		})
	}
}

func TestNamespaceInDeletion(t *testing.T) {
	set := newSet("web", 100)
	f := newFixture(t, BurstReplicas, set)
	f.podControl.Err = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}},
	}}
	for range 3 {
		if err := f.syncSet(t, set); err != nil {
			t.Errorf("error %v: it is no failure of the set's", err)
		}
	}
	if f.podControl.CreateCallCount != 1 {
		t.Errorf("%d creations were tried, want one and then none", f.podControl.CreateCallCount)
	}
	for _, action := range f.client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok {
			if conditions := update.GetObject().(*apps.ReplicaSet).Status.Conditions; len(conditions) != 0 {
				t.Errorf("conditions %v", conditions)
			}
		}
	}
	f.clock.Step(terminatingMemory)
	_ = f.syncSet(t, set)
	if f.podControl.CreateCallCount != 2 {
		t.Errorf("%d creations were tried after a while", f.podControl.CreateCallCount)
	}
}

// A set that is deleted and made anew owes nothing to its predecessor.
func TestRecreatedSet(t *testing.T) {
	old := newSet("web", 1)
	f := newFixture(t, BurstReplicas, old)
	f.podIndexer.Bookmark("10")
	f.podControl.Err = noAnswer()
	_ = f.syncSet(t, old)
	f.onWrite(&v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99"}})
	f.podControl.Err = nil
	f.podControl.Clear()

	recreated := newSet("web", 1)
	recreated.UID, recreated.ResourceVersion = "other-uid", "2"
	_ = f.setIndexer.Update(recreated)
	f.setUpdated(old, recreated)
	if got := f.queued(t); !slices.Equal(got, []string{"web"}) {
		t.Errorf("queued %v", got)
	}
	if err := f.syncSet(t, recreated); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 1, 0, 0)
	if f.podControl.ControllerRefs[0].UID != "other-uid" {
		t.Errorf("owner %+v", f.podControl.ControllerRefs[0])
	}
	if strings.Contains(f.requests(), "list") {
		t.Error("looks for what its predecessor created")
	}
}

func TestDeletedSetIsForgotten(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	f.podIndexer.Bookmark("10")
	f.podControl.Err = noAnswer()
	_ = f.syncSet(t, set)
	f.onWrite(&v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99"}})
	_ = f.setIndexer.Delete(set)
	f.setDeleted(set)
	if got := f.queued(t); !slices.Equal(got, []string{"web"}) {
		t.Errorf("queued %v", got)
	}
	name := types.NamespacedName{Namespace: "ns", Name: "web"}
	if err := f.guard.EnsureReady(name); err != nil {
		t.Errorf("the guard remembers it: %v", err)
	}
	if len(f.memory.sets) != 0 {
		t.Error("the memory remembers it")
	}
}

func TestSyncClaims(t *testing.T) {
	set := settledSet("web", 2)
	other := newSet("other", 1)
	tests := []struct {
		name    string
		pods    []*v1.Pod
		creates int
		deletes int
		patches int
	}{
		{"leaves those of another set", []*v1.Pod{newPod("a", other), newPod("b", set), newPod("c", set)}, 0, 0, 0},
		{"adopts an orphan", []*v1.Pod{newPod("a", nil), newPod("b", set)}, 0, 0, 1},
		{"adopts, then deletes the surplus", []*v1.Pod{newPod("a", nil), newPod("b", set), newPod("c", set)}, 0, 1, 1},
		{"releases", []*v1.Pod{newPod("a", set, labelled(nil)), newPod("b", set)}, 1, 0, 1},
		{"finished and leaving Pods do not count, nor are they adopted", []*v1.Pod{
			newPod("a", set, inPhase(v1.PodFailed)), newPod("b", set, inPhase(v1.PodSucceeded)), newPod("c", set, leaving()),
			newPod("d", nil, inPhase(v1.PodFailed)), newPod("e", nil, leaving()), newPod("f", set)}, 1, 0, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, BurstReplicas, set)
			f.addPods(tc.pods)
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			f.writes(t, tc.creates, tc.deletes, tc.patches)
		})
	}
}

func TestClaimFailureStopsTheSync(t *testing.T) {
	set := newSet("web", 2)
	f := newFixture(t, BurstReplicas, set)
	f.add(newPod("orphan", nil))
	f.podControl.Err = errors.New("fake error")
	err := f.syncSet(t, set)
	if err == nil || !strings.Contains(err.Error(), "fake error") {
		t.Errorf("error %v", err)
	}
	f.writes(t, 0, 0, 1)
	if got := f.requests(); got != "get replicasets" {
		t.Errorf("requests %s: counts are unknown, and no status is to be written", got)
	}
}

func TestSetInDeletion(t *testing.T) {
	set := newSet("web", 2)
	set.DeletionTimestamp = new(metav1.NewTime(testNow))
	f := newFixture(t, BurstReplicas, set)
	f.add(newPod("orphan", nil))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 0, 0, 0)
}

// The cache does not know yet that the set is being deleted.
func TestSetInDeletionRace(t *testing.T) {
	set := newSet("web", 2)
	live := newSet("web", 2)
	live.DeletionTimestamp = new(metav1.NewTime(testNow))
	recreated := newSet("web", 2)
	recreated.UID = "other"
	for want, obj := range map[string]*apps.ReplicaSet{"has just been deleted": live, "is gone: got uid other": recreated} {
		f := newFixture(t, BurstReplicas)
		_ = f.setIndexer.Add(set)
		_ = f.client.Tracker().Add(obj)
		f.add(newPod("orphan", nil))
		err := f.syncSet(t, set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		f.writes(t, 0, 0, 0)
	}
}

func TestOverlappingSets(t *testing.T) {
	a, b := settledSet("a", 1), settledSet("b", 1)
	f := newFixture(t, BurstReplicas, a, b)
	f.add(newPod("of-a", a, ready()), newPod("of-b", b, ready()))
	for _, set := range []*apps.ReplicaSet{a, b} {
		if err := f.syncSet(t, set); err != nil {
			t.Fatal(err)
		}
	}
	f.writes(t, 0, 0, 0)
	if f.requests() != "" {
		t.Errorf("requests %s", f.requests())
	}
}

func TestBadSelector(t *testing.T) {
	set := newSet("web", 2)
	set.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bad"}}}
	f := newFixture(t, BurstReplicas, set)
	f.worker.Add(cache.MetaObjectToName(set))
	f.worker.ProcessNextItem(t.Context())
	f.writes(t, 0, 0, 0)
	if failing := f.worker.Record().Failing; len(failing) != 1 || failing[0].Retrying {
		t.Errorf("%+v: retried, which cannot mend it", failing)
	}
}

func TestFailedSyncIsRetried(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	f.podControl.Err = errors.New("no")
	f.worker.Add(cache.MetaObjectToName(set))
	f.worker.ProcessNextItem(t.Context())
	if failing := f.worker.Record().Failing; len(failing) != 1 || !failing[0].Retrying {
		t.Errorf("%+v", failing)
	}
}

func TestComesBackForAvailability(t *testing.T) {
	tests := []struct {
		name string
		pods []podOption
		want error
	}{
		{"ready for 20 s of 30", []podOption{readySince(ago(20 * time.Second))}, worker.RequeueAfter(10 * time.Second)},
		{"available", []podOption{ready()}, nil},
		{"not ready", nil, nil},
		{"transition time unknown", []podOption{readySince(time.Time{})}, worker.RequeueAfter(30 * time.Second)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			set := newSet("web", 1)
			set.Spec.MinReadySeconds = 30
			f := newFixture(t, BurstReplicas, set)
			f.add(newPod("a", set, tc.pods...))
			got := f.syncSet(t, set)
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestRejectedPodsSlowTheSyncDown(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	own := func(pod *v1.Pod) *v1.Pod {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)}
		return pod
	}
	f.add(own(rejectedPod("a", testNow)), own(rejectedPod("b", testNow)))
	if got := f.syncSet(t, set); fmt.Sprint(got) != fmt.Sprint(worker.RequeueAfter(time.Second)) {
		t.Errorf("%v, want to come back after 1s", got)
	}
	f.writes(t, 0, 0, 0)
	updated, err := f.client.AppsV1().ReplicaSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if condition := GetCondition(updated.Status, apps.ReplicaSetReplicaFailure); condition == nil || condition.Reason != podsFailingReason {
		t.Errorf("condition %+v", condition)
	}
	if got := <-f.recorder.Events; !strings.HasPrefix(got, "Warning PodsFailing Pods are created with growing delay") {
		t.Errorf("event %q", got)
	}

	// The time has come; the condition stays, and neither it nor an event is told anew.
	updated.ResourceVersion = "2"
	_ = f.setIndexer.Update(updated)
	f.client.ClearActions()
	f.clock.Step(time.Second)
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	f.writes(t, 1, 0, 0)
	if len(f.recorder.Events) != 0 || f.requests() != "" {
		t.Errorf("%d events, requests %s", len(f.recorder.Events), f.requests())
	}
}

func TestDeletionAgeMetric(t *testing.T) {
	set := newSet("web", 0)
	f := newFixture(t, BurstReplicas, set)
	f.metrics = newCollectors()
	registry := testutil.NewFakeKubeRegistry("1.37.0")
	registry.MustRegister(f.metrics.deletionAgeRatio, f.metrics.staleSyncSkips)
	f.add(newPod("a", set, ready(), createdAt(ago(time.Minute))))
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	want := `# HELP replicaset_controller_sorting_deletion_age_ratio [ALPHA] The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should be <2. The intent of this metric is to measure the rough efficacy of the sorting (and deletion) of pods when a replicaset scales down. This only considers Ready pods when calculating and reporting.
# TYPE replicaset_controller_sorting_deletion_age_ratio histogram
replicaset_controller_sorting_deletion_age_ratio_bucket{le="0.25"} 0
replicaset_controller_sorting_deletion_age_ratio_bucket{le="0.5"} 0
replicaset_controller_sorting_deletion_age_ratio_bucket{le="1"} 1
replicaset_controller_sorting_deletion_age_ratio_bucket{le="2"} 1
replicaset_controller_sorting_deletion_age_ratio_bucket{le="4"} 1
replicaset_controller_sorting_deletion_age_ratio_bucket{le="8"} 1
replicaset_controller_sorting_deletion_age_ratio_bucket{le="+Inf"} 1
replicaset_controller_sorting_deletion_age_ratio_sum 1
replicaset_controller_sorting_deletion_age_ratio_count 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "replicaset_controller_sorting_deletion_age_ratio"); err != nil {
		t.Error(err)
	}
}
