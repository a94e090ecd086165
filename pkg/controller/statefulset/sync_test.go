// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
)

const statusUpdate = "update statefulsets/status web"

func TestCreatesAndScales(t *testing.T) {
	for _, options := range [][]setOption{{}, {parallel}, {startingAt(3)}, {withClaim}} {
		f := newFixture(t, newSet(3, options...))
		f.settle()
		set := f.web()
		if s := set.Status; s.Replicas != 3 || s.ReadyReplicas != 3 || s.AvailableReplicas != 3 || s.CurrentReplicas != 3 || s.UpdatedReplicas != 3 || s.ObservedGeneration != 1 ||
			s.CurrentRevision == "" || s.CurrentRevision != s.UpdateRevision || s.CurrentRevision != f.revisions()[0].Name {
			t.Errorf("status %+v", s)
		}
		if f.revisions()[0].Annotations["note"] != "x" {
			t.Errorf("annotations of the revision: %v", f.revisions()[0].Annotations)
		}
		for i, pod := range f.pods() {
			want, err := newPod(set, &set.Spec.Template, set.Status.CurrentRevision, startOrdinal(set)+i)
			if err != nil || pod.Name != want.Name || pod.Spec.Hostname != want.Name || pod.Spec.Subdomain != "svc" || !metav1.IsControlledBy(pod, set) || pod.Labels[apps.PodIndexLabel] != fmt.Sprint(startOrdinal(set)+i) {
				t.Errorf("pod %+v: %v", pod, err)
			}
		}
		f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(1)) })
		f.settle()
		if pods := f.pods(); len(pods) != 1 || ordinalOf(pods[0]) != startOrdinal(set) {
			t.Errorf("%d pods after the scale-down", len(pods))
		}
	}
}

// One sync of an ordered set makes one Pod; of a parallel set, all, and a status for all.
func TestRequestsOfOneSync(t *testing.T) {
	f := newFixture(t, newSet(2, withClaim))
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	if got, want := f.requests(), "create controllerrevisions …, create persistentvolumeclaims data-web-0, create pods web-0, "+statusUpdate; got != want {
		t.Errorf("sent %s", got)
	}
	if s := f.web().Status; s.Replicas != 1 || s.CurrentReplicas != 1 || s.UpdatedReplicas != 1 || s.ReadyReplicas != 0 {
		t.Errorf("the status does not tell what was done: %+v", s)
	}
	if got, want := f.told(), []string{
		"Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success",
		"Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful",
	}; !slices.Equal(got, want) {
		t.Errorf("told %v", got)
	}
	f.refresh()
	if err := f.syncWeb(); err != nil || f.requests() != "" {
		t.Errorf("sent again: %s: %v", f.requests(), err)
	}

	f = newFixture(t, newSet(7, parallel))
	if err := f.syncWeb(); err != nil || strings.Count(f.requests(), "create pods") != 7 || strings.Count(f.requests(), statusUpdate) != 1 {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

func TestRollingUpdateAndRollback(t *testing.T) {
	for _, options := range [][]setOption{{}, {parallel}, {unavailableUpTo(2)}} {
		f := newFixture(t, newSet(3, options...))
		f.settle()
		first := f.web().Status.CurrentRevision
		f.change(withImage("i:2"), func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(4)) })
		f.settle()
		if s := f.web().Status; s.CurrentRevision == first || s.CurrentRevision != s.UpdateRevision || s.CurrentReplicas != 4 {
			t.Errorf("status %+v", s)
		}
		f.change(withImage("i:1"), func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(2)) })
		f.settle()
		if s := f.web().Status; s.CurrentRevision != first || s.UpdatedReplicas != 2 {
			t.Errorf("status after the rollback %+v", s)
		}
		revisions := f.revisions()
		if len(revisions) != 2 || revisions[1].Name != first || revisions[1].Revision != 3 {
			t.Errorf("the rollback made revisions %v", revisions)
		}
		for _, pod := range f.pods() {
			if pod.Spec.Containers[0].Image != "i:1" || revisionOf(pod) != first {
				t.Errorf("pod %s has %s of %s", pod.Name, pod.Spec.Containers[0].Image, revisionOf(pod))
			}
		}
	}
}

func TestPartitionMakesOldPodsFromTheOldRevision(t *testing.T) {
	f := newFixture(t, newSet(3, partitioned(2)))
	f.settle()
	first := f.web().Status.CurrentRevision
	f.change(withImage("i:2"))
	f.settle()
	if err := f.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "ns", "web-0"); err != nil {
		t.Fatal(err)
	}
	f.refresh()
	f.settle()
	images := []string{}
	for _, pod := range f.pods() {
		images = append(images, pod.Spec.Containers[0].Image)
	}
	if s := f.web().Status; !slices.Equal(images, []string{"i:1", "i:1", "i:2"}) || s.CurrentRevision != first || s.CurrentReplicas != 2 || s.UpdatedReplicas != 1 {
		t.Errorf("images %v, status %+v", images, s)
	}
}

func TestHistoryIsTruncated(t *testing.T) {
	for _, test := range []struct {
		limit *int32
		want  int
	}{
		{new(int32(-1)), 6}, {new(int32(0)), 1}, {new(int32(2)), 3}, {nil, 6},
	} {
		f := newFixture(t, newSet(1, func(set *apps.StatefulSet) { set.Spec.RevisionHistoryLimit = test.limit }))
		f.settle()
		for i := range 5 {
			f.change(withImage(fmt.Sprintf("i:%d", i+2)))
			f.settle()
		}
		if got := f.revisions(); len(got) != test.want || got[len(got)-1].Revision != 6 {
			t.Errorf("%d revisions left, want %d", len(got), test.want)
		}
	}
}

// A revision that a Pod still has is kept, whatever the limit: a roll-out may have to go back to it.
func TestRevisionOfAPodIsKept(t *testing.T) {
	named := func(name string) *apps.ControllerRevision {
		return &apps.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	r := &revisions{all: []*apps.ControllerRevision{named("1"), named("2"), named("3"), named("4")}}
	r.current, r.update = r.all[2], r.all[3]
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{apps.StatefulSetRevisionLabel: "1"}}}
	set := newSet(1, func(set *apps.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(0)) })
	if got := expired(set, r, []*v1.Pod{pod}); len(got) != 1 || got[0].Name != "2" {
		t.Errorf("expired: %v, want revision 2 alone", got)
	}
}

// The history goes on being truncated when a Pod cannot be created.
func TestHistoryIsTruncatedAfterAFailure(t *testing.T) {
	f := newFixture(t, newSet(1, func(set *apps.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(0)) }))
	f.settle()
	f.change(withImage("i:2"))
	f.settle()
	f.change(withImage("i:3"))
	f.settle()
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(2)) }, withImage("i:4"))
	f.fail("create", "pods", -1, errors.New("boom"))
	f.fail("delete", "controllerrevisions", 1, errors.New("bang"))
	for range 3 {
		err := f.syncWeb()
		if err == nil || !strings.Contains(err.Error(), "boom") {
			t.Fatalf("error %v", err)
		}
		f.refresh()
	}
	if got := f.revisions(); len(got) != 2 {
		t.Errorf("%d revisions left", len(got))
	}
}

func TestOldEncodingRollsNothing(t *testing.T) {
	for _, semantic := range []bool{true, false} {
		f := newFixture(t, newSet(2))
		f.settle()
		old := f.revisions()[0]
		old.Data.Raw = []byte(strings.Replace(string(old.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
		if err := f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("controllerrevisions"), old, "ns"); err != nil {
			t.Fatal(err)
		}
		f.refresh()
		f.gates.semanticComparison = semantic
		// Twice: the second time the answer is remembered.
		for range 2 {
			if err := f.syncWeb(); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.requests(); (got == "") != semantic {
			t.Errorf("semantic comparison %v: sent %s", semantic, got)
		}
		f.refresh()
		f.gates.semanticComparison = true
		f.change(withImage("i:2"))
		f.settle()
		if s := f.web().Status; s.CurrentRevision == old.Name {
			t.Error("a real change is not rolled out")
		}
	}
}

func TestCollision(t *testing.T) {
	f := newFixture(t, newSet(1))
	wanted := f.plannedRevisionName()
	taken := &apps.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: wanted}}
	if err := f.client.Tracker().Add(taken); err != nil {
		t.Fatal(err)
	}
	f.settle()
	s := f.web().Status
	if *s.CollisionCount != 1 || s.CurrentRevision == wanted || !strings.HasPrefix(s.CurrentRevision, "web-") {
		t.Errorf("status %+v", s)
	}
}

// plannedRevisionName is the name that the set's first revision gets elsewhere.
func (f *fixture) plannedRevisionName() string {
	other := newFixture(f.t, newSet(1))
	other.settle()
	return other.revisions()[0].Name
}

// The status is written whatever became of the Pods.
func TestStatusIsWrittenAfterAFailure(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	for _, test := range []struct {
		name, verb, resource string
		prepare              func(f *fixture)
		event                string
	}{
		{"create", "create", "pods", func(*fixture) {}, "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: "},
		{"claim", "create", "persistentvolumeclaims", func(*fixture) {}, "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: "},
		{"update", "patch", "pods", func(f *fixture) {
			f.settle()
			pod := f.pods()[0]
			delete(pod.Labels, apps.PodIndexLabel)
			f.update(pod)
			f.change()
		}, "Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: "},
		{"delete", "delete", "pods", func(f *fixture) {
			f.settle()
			f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(0)) })
		}, "Warning FailedDelete Delete Pod web-0 in StatefulSet web failed error: "},
	} {
		f := newFixture(t, newSet(1, withClaim))
		test.prepare(f)
		f.told()
		f.fail(test.verb, test.resource, -1, boom)
		if err := f.syncWeb(); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%s: error %v", test.name, err)
		}
		if got := f.requests(); !strings.HasSuffix(got, statusUpdate) {
			t.Errorf("%s: sent %s", test.name, got)
		}
		if told := f.told(); !slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, test.event) }) {
			t.Errorf("%s: told %v", test.name, told)
		}
		// What failed is tried again, as if it had not been.
		if err := f.syncWeb(); err == nil {
			t.Errorf("%s: not tried again", test.name)
		}
	}
}

func TestStatusErrors(t *testing.T) {
	conflict := apierrors.NewConflict(apps.Resource("statefulsets"), "web", errors.New("boom"))
	for _, test := range []struct {
		name   string
		times  int
		err    error
		writes int
		fails  bool
	}{
		{"conflict once", 1, conflict, 2, false},
		{"conflict for ever", -1, conflict, 2, true},
		{"failure", -1, errors.New("boom"), 2, true},
		{"gone", 1, apierrors.NewNotFound(apps.Resource("statefulsets"), "web"), 1, false},
	} {
		f := newFixture(t, newSet(0))
		f.fail("update", "statefulsets", test.times, test.err)
		err := f.syncWeb()
		if n := strings.Count(f.requests(), statusUpdate); n != test.writes || (err != nil) != test.fails {
			t.Errorf("%s: %d writes, error %v", test.name, n, err)
		}
	}
	f := newFixture(t, newSet(1))
	f.fail("update", "statefulsets", -1, errors.New("boom"))
	f.fail("create", "pods", -1, errors.New("bang"))
	if err := f.syncWeb(); err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "bang") {
		t.Errorf("both failed: %v", err)
	}
}

func TestPodThatIsThereAlready(t *testing.T) {
	f := newFixture(t, newSet(1))
	stranger := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}}
	if err := f.client.Tracker().Add(stranger); err != nil {
		t.Fatal(err)
	}
	if err := f.syncWeb(); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error %v", err)
	}
	if told := f.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

func TestPodsAreDeletedUnderTheirUID(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.settle()
	uid := f.pods()[0].UID
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(0)) })
	// The cache is late: it shows the Pod for some more syncs.
	for range 3 {
		if err := f.syncWeb(); err != nil {
			t.Fatal(err)
		}
	}
	var deletions []core.DeleteAction
	for _, action := range f.client.Actions() {
		if d, ok := action.(core.DeleteAction); ok {
			deletions = append(deletions, d)
		}
	}
	if len(deletions) != 1 || deletions[0].GetDeleteOptions().Preconditions == nil || *deletions[0].GetDeleteOptions().Preconditions.UID != uid {
		t.Errorf("deletions: %v", deletions)
	}
}

func TestPodGoneBeforeItsDeletion(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.settle()
	f.told()
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(0)) })
	f.fail("delete", "pods", -1, apierrors.NewNotFound(v1.Resource("pods"), "web-0"))
	if err := f.syncWeb(); err != nil {
		t.Errorf("error %v", err)
	}
	if told := f.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

// A conflict does not say that the Pod is gone: if it is still there, it is deleted after all.
func TestConflictOfADeletion(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.settle()
	f.told()
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(0)) })
	f.fail("delete", "pods", 1, apierrors.NewConflict(v1.Resource("pods"), "web-0", errors.New("not now")))
	if err := f.syncWeb(); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want the conflict", err)
	}
	if told := f.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
	f.settle()
	if pods := f.pods(); len(pods) != 0 {
		t.Errorf("pods %v are left", pods)
	}
}

func TestPodsAreMendedUnderTheirUID(t *testing.T) {
	f := newFixture(t, newSet(1, withClaim))
	f.settle()
	f.told()
	pod := f.pods()[0]
	delete(pod.Labels, apps.StatefulSetPodNameLabel)
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}, {Name: "other"}}
	f.update(pod)
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	if got := f.requests(); got != "patch pods web-0" {
		t.Errorf("sent %s", got)
	}
	if told := f.told(); len(told) != 1 || told[0] != "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful" {
		t.Errorf("told %v", told)
	}
	for _, action := range f.client.Actions() {
		if patch, ok := action.(core.PatchAction); ok && !strings.Contains(string(patch.GetPatch()), `"uid":"`+string(pod.UID)+`"`) {
			t.Errorf("patch without the UID: %s", patch.GetPatch())
		}
	}
	mended := f.pods()[0]
	if !identityMatches(mended, 0) || !storageMatches(f.web(), mended, 0) || len(mended.Spec.Volumes) != 2 || mended.Spec.Volumes[0].EmptyDir != nil || mended.Labels["app"] != "web" {
		t.Errorf("mended to %+v", mended)
	}
	f.refresh()
	if err := f.syncWeb(); err != nil || f.requests() != "" {
		t.Errorf("sent again %s: %v", f.requests(), err)
	}
}

func TestMinReadySeconds(t *testing.T) {
	f := newFixture(t, newSet(1, minReady(10)))
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	f.allReady()
	f.refresh()
	f.clock.Step(3 * time.Second)
	err := f.syncWeb()
	if err == nil || !strings.Contains(err.Error(), "7s") {
		t.Errorf("to be looked at again: %v", err)
	}
	if s := f.web().Status; s.ReadyReplicas != 1 || s.AvailableReplicas != 0 {
		t.Errorf("status %+v", s)
	}
	f.refresh()
	f.clock.Step(7 * time.Second)
	if err := f.syncWeb(); err != nil {
		t.Errorf("again: %v", err)
	}
	if s := f.web().Status; s.AvailableReplicas != 1 {
		t.Errorf("status %+v", s)
	}
}

func TestAdoption(t *testing.T) {
	set := newSet(1, strategy(apps.OnDeleteStatefulSetStrategyType))
	orphan := podIn(t, set, 0, "R")
	orphan.OwnerReferences = nil
	f := newFixture(t, set, orphan)
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	if pod := f.pods()[0]; !metav1.IsControlledBy(pod, set) {
		t.Error("not adopted")
	}

	// A set that is being deleted, as a live read tells, adopts nothing.
	going := newSet(1)
	f = newFixture(t, going, orphan)
	live := going.DeepCopy()
	live.DeletionTimestamp = new(metav1.NewTime(testNow))
	if err := f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("statefulsets"), live, "ns"); err != nil {
		t.Fatal(err)
	}
	if err := f.syncWeb(); err == nil || !strings.Contains(err.Error(), "just been deleted") || f.requests() != "" {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

func TestRevisionAdoption(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.settle()
	revision := f.revisions()[0]
	revision.OwnerReferences = nil
	resource := apps.SchemeGroupVersion.WithResource("controllerrevisions")
	if err := f.client.Tracker().Update(resource, revision, "ns"); err != nil {
		t.Fatal(err)
	}
	f.refresh()
	if err := f.syncWeb(); err != nil || f.requests() != "patch controllerrevisions …" {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
	if !metav1.IsControlledBy(f.revisions()[0], f.web()) {
		t.Error("not adopted")
	}
	// Not for a set that has been replaced.
	if err := f.client.Tracker().Update(resource, revision, "ns"); err != nil {
		t.Fatal(err)
	}
	f.refresh()
	other := f.web()
	other.UID = "another"
	if err := f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("statefulsets"), other, "ns"); err != nil {
		t.Fatal(err)
	}
	if err := f.syncWeb(); err == nil || !strings.HasPrefix(err.Error(), "can't adopt ControllerRevisions: ") {
		t.Errorf("error %v", err)
	}
}

func TestRelease(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.settle()
	pod := f.pods()[0]
	pod.Labels["app"] = "other"
	f.update(pod)
	err := f.syncWeb()
	if !strings.HasPrefix(f.requests(), "patch pods web-0") || metav1.GetControllerOf(f.pods()[0]) != nil {
		t.Errorf("not released: sent %s: %v", f.requests(), err)
	}
	// A Pod whose name is no longer one of the set's is released too.
	f = newFixture(t, newSet(0), func() *v1.Pod {
		pod := podIn(t, newSet(1), 0, "R")
		pod.Name = "web2-0"
		return pod
	}())
	if err := f.syncWeb(); err != nil || !strings.Contains(f.requests(), "patch pods web2-0") {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

func TestClaimLife(t *testing.T) {
	f := newFixture(t, newSet(2, withClaim, retaining(keep, drop)))
	f.settle()
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(1)) })
	uid := f.pods()[1].UID
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	if got := f.requests(); !strings.HasPrefix(got, "update persistentvolumeclaims data-web-1, delete pods web-1") {
		t.Errorf("sent %s", got)
	}
	claim, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "data-web-1", metav1.GetOptions{})
	if err != nil || len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != uid {
		t.Fatalf("claim %+v: %v", claim, err)
	}
	// Scaled up while the claim waits for the garbage collector.
	f.change(func(set *apps.StatefulSet) { set.Spec.Replicas = new(int32(2)) })
	if err := f.syncWeb(); err != nil || strings.Contains(f.requests(), "create") {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
	f.claimDeleted(claim)
	if got := f.queued(); got != "ns/web" {
		t.Errorf("queued %q when the claim was gone", got)
	}
	if err := f.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "ns", "data-web-1"); err != nil {
		t.Fatal(err)
	}
	f.refresh()
	if err := f.syncWeb(); err != nil || !strings.HasPrefix(f.requests(), "create persistentvolumeclaims data-web-1, create pods web-1") {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

// A claim that the cache does not show yet is no failure, and no success either.
func TestClaimThatIsThereAlready(t *testing.T) {
	f := newFixture(t, newSet(1, withClaim))
	f.fail("create", "persistentvolumeclaims", 1, apierrors.NewAlreadyExists(v1.Resource("persistentvolumeclaims"), "data-web-0"))
	if err := f.syncWeb(); err != nil {
		t.Error(err)
	}
	if told := f.told(); len(told) != 1 || !strings.Contains(told[0], "Create Pod web-0") {
		t.Errorf("told %q, want of the Pod alone", told)
	}
}

// A claim that was there before its Pod gets its owner with the Pod.
func TestClaimOfANewPodGetsItsOwner(t *testing.T) {
	set := newSet(1, withClaim, retaining(drop, keep))
	claim := newClaim(set, claimsOf(set, 0, noClaims)[0])
	claim.OwnerReferences = nil
	f := newFixture(t, set, claim)
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	got, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), claim.Name, metav1.GetOptions{})
	if err != nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != set.UID {
		t.Errorf("claim %+v: %v", got, err)
	}
}

func TestClaimInDeletionBlocksThePod(t *testing.T) {
	set := newSet(1, withClaim)
	claim := newClaim(set, claimsOf(set, 0, noClaims)[0])
	claim.DeletionTimestamp = new(metav1.NewTime(testNow))
	claim.Finalizers = []string{"hold"}
	f := newFixture(t, set, claim)
	if err := f.syncWeb(); err == nil || err.Error() != "pvc data-web-0 is being deleted" || strings.Contains(f.requests(), "create pods") {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

func TestConflictingClaimIsToldOnce(t *testing.T) {
	set := newSet(1, withClaim, retaining(drop, drop))
	claim := newClaim(set, claimsOf(set, 0, noClaims)[0])
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}}
	f := newFixture(t, set, claim)
	f.settle()
	f.settle()
	told := slices.DeleteFunc(f.told(), func(e string) bool { return !strings.Contains(e, "ConflictingController") })
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller") {
		t.Errorf("told %v", told)
	}
	if held := f.claimOf("data-web-0"); len(held.OwnerReferences) != 1 || held.OwnerReferences[0].Kind != "ConfigMap" {
		t.Errorf("owners %v", held.OwnerReferences)
	}
}

func (f *fixture) claimOf(name string) *v1.PersistentVolumeClaim {
	f.t.Helper()
	claim, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return claim
}

// A blocked roll-out is told once per Pod and revision, not once per sync.
func TestBlockedRolloutIsToldOnce(t *testing.T) {
	set := newSet(2)
	f := newFixture(t, set)
	f.settle()
	f.change(withImage("bad"))
	if err := f.syncWeb(); err != nil { // deletes web-1
		t.Fatal(err)
	}
	f.refresh()
	if err := f.syncWeb(); err != nil { // creates it
		t.Fatal(err)
	}
	f.refresh()
	f.told()
	err := f.syncWeb()
	if err == nil || !strings.Contains(err.Error(), "1m0s") {
		t.Errorf("to be looked at again: %v", err)
	}
	f.clock.Step(2 * time.Minute)
	for range 3 {
		if err := f.syncWeb(); err != nil {
			t.Fatal(err)
		}
	}
	if told := f.told(); len(told) != 1 || !strings.Contains(told[0], "Warning RolloutBlocked") || !strings.Contains(told[0], "Pod web-1") {
		t.Errorf("told %v", told)
	}
	f.change(withImage("worse"))
	if err := f.syncWeb(); err != nil {
		t.Fatal(err)
	}
	if told := f.told(); len(told) != 1 {
		t.Errorf("told of the next block: %v", told)
	}
}

func TestNamespaceInDeletionIsAskedOnce(t *testing.T) {
	f := newFixture(t, newSet(5, parallel))
	f.fail("create", "pods", -1, namespaceTerminating())
	for range 3 {
		if err := f.syncWeb(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(f.requests(), "create pods"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if told := f.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

func namespaceTerminating() error {
	err := apierrors.NewForbidden(v1.Resource("pods"), "web-0", errors.New("unable to create new content in namespace ns because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceTerminatingCause})
	return err
}

func TestRecreateWithoutItsGate(t *testing.T) {
	f := newFixture(t, newSet(1, strategy(apps.RecreateStatefulSetStrategyType)))
	err := f.syncWeb()
	const want = "statefulset ns/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled"
	if err == nil || !strings.Contains(err.Error(), want) || f.requests() != "" {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
	if told := f.told(); len(told) != 1 || told[0] != "Warning UnknownStrategy "+want {
		t.Errorf("told %v", told)
	}
}

func TestRecreateKeepsClaims(t *testing.T) {
	f := newFixture(t, newSet(3, withClaim, retaining(drop, drop), strategy(apps.RecreateStatefulSetStrategyType)))
	f.gates.recreate = true
	f.settle()
	f.change(withImage("i:2"))
	f.settle()
	s := f.web().Status
	if len(s.Conditions) != 1 || s.Conditions[0].Reason != recreateCompleted || s.Conditions[0].Status != v1.ConditionFalse || s.UpdatedReplicas != 3 {
		t.Errorf("status %+v", s)
	}
	for i := range 3 {
		f.claimOf(fmt.Sprintf("data-web-%d", i))
	}
}

func TestInvalidSelector(t *testing.T) {
	f := newFixture(t, newSet(1, func(set *apps.StatefulSet) {
		set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}
	}))
	if err := f.syncWeb(); err == nil || f.requests() != "" {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
}

func TestMetrics(t *testing.T) {
	for _, test := range []struct {
		name   string
		set    *apps.StatefulSet
		pods   string
		limit  float64
		absent float64
	}{
		{"ordered, within", newSet(3, unavailableUpTo(2)), "R R U", 2, 1},
		{"parallel, exceeding", newSet(3, parallel), "U U R", 1, 2},
		{"parallel, all there", newSet(3, parallel, unavailableUpTo(3)), "R R R", 3, 0},
		{"on delete", newSet(2, strategy(apps.OnDeleteStatefulSetStrategyType)), "R U", 1, 1},
		{"single", newSet(1), "-", 1, 1},
	} {
		f := newFixture(t)
		f.metrics = newCollectors()
		f.metrics.maxUnavailable.Create(nil)
		f.metrics.unavailable.Create(nil)
		s := &syncer{StatefulSetController: f.StatefulSetController, set: test.set}
		s.show(stateOf(t, test.set, 0, test.pods))
		labels := []string{"ns", "web", string(test.set.Spec.PodManagementPolicy)}
		limit, err := testutil.GetGaugeMetricValue(f.metrics.maxUnavailable.WithLabelValues(labels...))
		if err != nil {
			t.Fatal(err)
		}
		absent, err := testutil.GetGaugeMetricValue(f.metrics.unavailable.WithLabelValues(labels...))
		if err != nil {
			t.Fatal(err)
		}
		if limit != test.limit || absent != test.absent {
			t.Errorf("%s: %v unavailable of %v", test.name, absent, limit)
		}
	}
}

func TestSetThatIsGone(t *testing.T) {
	f := newFixture(t)
	f.memories.of(types.NamespacedName{Namespace: "ns", Name: "web"}, "u")
	if err := f.syncWeb(); err != nil || f.requests() != "" {
		t.Errorf("sent %s: %v", f.requests(), err)
	}
	if len(f.memories.sets) != 0 {
		t.Error("it is remembered")
	}
}
