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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
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
	if condition == nil || condition.Reason != "FailedCreate" || condition.Status != v1.ConditionTrue || !strings.Contains(condition.Message, "limit 5") {
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

func noAnswer() error { return errors.New("read tcp: connection reset by peer") }

// A creation that got no answer may have happened: it is looked up live before the next.
func TestCreateOfUnknownOutcome(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened=%v", happened), func(t *testing.T) {
			set := newSet("web", 1)
			f := newFixture(t, BurstReplicas, set)
			f.podIndexer.Bookmark("10")
			f.podControl.Err = noAnswer()
			if err := f.syncSet(t, set); err == nil {
				t.Fatal("no error")
			}
			f.podControl.Err = nil
			f.podControl.Clear()
			created := newPod("created", set, version("12"))
			if happened {
				_ = f.client.Tracker().Add(created)
				_ = f.client.Tracker().Add(newPod("orphan", nil, version("99"))) // none of the set's business
			}
			f.client.ClearActions()

			// At once, the request may still be on its way.
			if err := f.syncSet(t, set); err == nil {
				t.Error("acts while the request may still be on its way")
			}
			f.writes(t, 0, 0, 0)
			if got := f.requests(); got != "" {
				t.Errorf("requests %s", got)
			}

			f.clock.Step(settleDelay)
			err := f.syncSet(t, set)
			if !strings.HasPrefix(f.requests(), "list pods") {
				t.Errorf("requests %s", f.requests())
			}
			if !happened {
				if err != nil {
					t.Fatal(err)
				}
				f.writes(t, 1, 0, 0)
				return
			}
			if err == nil {
				t.Error("acts on a cache that does not show the Pod yet")
			}
			f.writes(t, 0, 0, 0)
			f.add(created)
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			f.writes(t, 0, 0, 0)
			if strings.Contains(f.requests(), "list pods") {
				t.Error("listed again")
			}
		})
	}
}

func TestDeleteOfUnknownOutcome(t *testing.T) {
	for _, outcome := range []string{"gone", "terminating", "unharmed"} {
		t.Run(outcome, func(t *testing.T) {
			set := newSet("web", 1)
			f := newFixture(t, BurstReplicas, set)
			keep, drop := newPod("keep", set, ready()), newPod("drop", set)
			f.add(keep, drop)
			f.podControl.Err = noAnswer()
			if err := f.syncSet(t, set); err == nil {
				t.Fatal("no error")
			}
			f.podControl.Err = nil
			f.podControl.Clear()
			_ = f.client.Tracker().Add(keep)
			switch outcome {
			case "terminating":
				_ = f.client.Tracker().Add(newPod("drop", set, leaving()))
			case "unharmed":
				_ = f.client.Tracker().Add(drop)
			}
			f.clock.Step(settleDelay)
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			if outcome == "unharmed" {
				f.writes(t, 0, 1, 0) // tried again
			} else {
				f.writes(t, 0, 0, 0) // and not one more
			}
		})
	}
}

func TestOutcomeUnknown(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}}
	}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{noAnswer(), true},
		{fmt.Errorf("unable to delete pods: %w", noAnswer()), true},
		{fmt.Errorf("post: %w", gate.ErrFenced), false},
		{apierrors.NewTimeoutError("t", 1), true},
		{apierrors.NewServerTimeout(v1.Resource("pods"), "create", 1), true},
		{status(http.StatusInternalServerError, ""), true}, // storage
		{status(http.StatusBadGateway, metav1.StatusReasonUnknown), true},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{apierrors.NewServiceUnavailable("shutting down"), false},
		{apierrors.NewTooManyRequests("t", 1), false},
		{apierrors.NewForbidden(v1.Resource("pods"), "a", errors.New("quota")), false},
	} {
		if got := outcomeUnknown(tc.err); got != tc.want {
			t.Errorf("%v: unknown %v", tc.err, got)
		}
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

func TestStatusWriteIsRetriedOnce(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	conflict := apierrors.NewConflict(apps.Resource("replicasets"), "web", errors.New("changed"))
	tests := []struct {
		name     string
		updates  []error // answers; nil afterwards
		get      error
		wantErr  bool
		requests string
	}{
		{"at once", nil, nil, false, "update replicasets/status"},
		{"conflict", []error{conflict}, nil, false, "update replicasets/status, get replicasets, update replicasets/status"},
		{"two conflicts", []error{conflict, conflict}, nil, true, "update replicasets/status, get replicasets, update replicasets/status"},
		{"the read fails", []error{conflict}, errors.New("no"), true, "update replicasets/status, get replicasets"},
		{"gone", []error{apierrors.NewNotFound(apps.Resource("replicasets"), "web")}, nil, false, "update replicasets/status"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, BurstReplicas, set)
			answers := tc.updates
			f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
				if len(answers) == 0 {
					return false, nil, nil
				}
				answer := answers[0]
				answers = answers[1:]
				return true, nil, answer
			})
			if tc.get != nil {
				f.client.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.get })
			}
			if err := f.syncSet(t, set); (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %v", err, tc.wantErr)
			}
			if got := f.requests(); got != tc.requests {
				t.Errorf("requests %s, want %s", got, tc.requests)
			}
		})
	}
}

// The answer to the first write is lost: the live read shows that it was carried out.
func TestStatusWriteOfUnknownOutcome(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	f := newFixture(t, BurstReplicas, set)
	f.setIndexer.Bookmark("1")
	f.client.PrependReactor("update", "replicasets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written := action.(clienttesting.UpdateAction).GetObject().(*apps.ReplicaSet).DeepCopy()
		written.ResourceVersion = "5"
		return true, nil, errors.Join(noAnswer(), f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("replicasets"), written, "ns"))
	})
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	if got := f.requests(); got != "update replicasets/status, get replicasets" {
		t.Errorf("requests %s", got)
	}
	f.client.ClearActions()
	if err := f.syncSet(t, set); err == nil || f.requests() != "" {
		t.Errorf("acts on a cache that does not show the status yet: %v, requests %s", err, f.requests())
	}
}

func TestStatusRetryStopsAtAnotherUID(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	f := newFixture(t, BurstReplicas, set)
	other := newSet("web", 0)
	other.UID = "other"
	f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(apps.Resource("replicasets"), "web", errors.New("changed"))
	})
	f.client.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, other, nil })
	if err := f.syncSet(t, set); err != nil || f.requests() != "update replicasets/status, get replicasets" {
		t.Errorf("error %v, requests %s", err, f.requests())
	}
}

func TestFailureIsToldEvenIfTheStatusCannotBeWritten(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	f.podControl.Err = errors.New("no pods today")
	f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no status today")
	})
	err := f.syncSet(t, set)
	if err == nil || !strings.Contains(err.Error(), "no pods today") || !strings.Contains(err.Error(), "no status today") {
		t.Errorf("error %v", err)
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
	f.enqueue(cache.MetaObjectToName(set), false)
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
	f.enqueue(cache.MetaObjectToName(set), false)
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

func podSets(sets []*apps.ReplicaSet) string {
	var all []string
	for _, set := range sets {
		all = append(all, set.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func ownedBy(set *apps.ReplicaSet, uid types.UID) *apps.ReplicaSet {
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d-" + string(uid), UID: uid, Controller: new(true)}}
	return set
}

func TestSiblings(t *testing.T) {
	a, b, other := ownedBy(newSet("a", 1), "d1"), ownedBy(newSet("b", 1), "d1"), ownedBy(newSet("other", 1), "d2")
	pendingDeletion := ownedBy(newSet("gone", 1), "d1")
	pendingDeletion.DeletionTimestamp = new(metav1.NewTime(testNow))
	lone := newSet("lone", 1)
	for _, tc := range []struct {
		name string
		all  []runtime.Object
		of   *apps.ReplicaSet
		want string
	}{
		{"those of the same controller", []runtime.Object{a, b, other, lone}, a, "a b"},
		{"in deletion too", []runtime.Object{pendingDeletion, a}, a, "a gone"},
		{"of one in deletion", []runtime.Object{pendingDeletion}, pendingDeletion, "gone"},
		{"none but itself", []runtime.Object{a, other}, a, "a"},
		{"without controller", []runtime.Object{a, lone, newSet("lone-too", 1)}, lone, "lone"},
	} {
		f := newFixture(t, 1, tc.all...)
		got, err := f.kind.Siblings(tc.of)
		if err != nil || podSets(got) != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, podSets(got), err, tc.want)
		}
	}
}

func TestRelatedPods(t *testing.T) {
	selecting := func(set *apps.ReplicaSet, value string) *apps.ReplicaSet {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"set": value}}
		return set
	}
	of := func(value string) podOption { return labelled(map[string]string{"set": value}) }
	a, b := selecting(ownedBy(newSet("a", 1), "d1"), "a"), selecting(ownedBy(newSet("b", 1), "d1"), "b")
	other := selecting(ownedBy(newSet("other", 1), "d2"), "other")
	deleted := selecting(ownedBy(newSet("deleted", 1), "d1"), "deleted")
	deleted.DeletionTimestamp = new(metav1.NewTime(testNow))
	f := newFixture(t, 1, a, b, other, deleted)
	f.add(newPod("1-a", a, of("a")), newPod("2-b", b, of("b")), newPod("3-other", other, of("other")), newPod("4-deleted", deleted, of("deleted")),
		newPod("5-failed", a, of("a"), inPhase(v1.PodFailed)), newPod("6-orphan", nil, of("b")))
	for set, want := range map[*apps.ReplicaSet]string{
		a:     "1-a 2-b 4-deleted 6-orphan",
		other: "3-other",
	} {
		pods, err := f.relatedPods(set)
		slices.SortFunc(pods, func(x, y *v1.Pod) int { return strings.Compare(x.Name, y.Name) })
		if err != nil || names(pods) != want {
			t.Errorf("of %s: %q, %v; want %q", set.Name, names(pods), err, want)
		}
	}
}

// A Deployment's ReplicaSets among very many: the index makes the look-up independent of
// how many there are.
func BenchmarkSiblings(b *testing.B) {
	f := newFixture(b, 1)
	target := ownedBy(newSet("target", 1), "d-target")
	f.add(target)
	for i := range 10000 {
		f.add(ownedBy(newSet(fmt.Sprintf("set-%d", i), 1), types.UID(fmt.Sprint(i))))
	}
	for b.Loop() {
		if sets, err := f.kind.Siblings(target); err != nil || len(sets) != 1 {
			b.Fatal(sets, err)
		}
	}
}
