// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

var (
	rcKind     = v1.SchemeGroupVersion.WithKind("ReplicationController")
	productive = map[string]string{"type": "productive"}
)

func testOwner(uid types.UID, namespace string) *v1.ReplicationController {
	return &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner", UID: uid}}
}

func claimPod(name string, podLabels map[string]string, owner metav1.Object) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: podLabels}}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, rcKind)}
	}
	return pod
}

func inDeletion[T metav1.Object](obj T) T {
	obj.SetDeletionTimestamp(new(metav1.Now()))
	return obj
}

func TestClaimPods(t *testing.T) {
	owner, other := testOwner("owner-uid", "ns"), testOwner("other-uid", "ns")
	deleted := inDeletion(testOwner("owner-uid", "ns"))
	clusterScoped := testOwner("owner-uid", "")
	testing1 := map[string]string{"type": "testing"}
	adopt := func(uid string) string {
		return `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ReplicationController","name":"owner","uid":"owner-uid","controller":true,"blockOwnerDeletion":true}],"uid":"` + uid + `"}}`
	}
	release := func(uid string) string {
		return `{"metadata":{"uid":"` + uid + `","ownerReferences":[{"$patch":"delete","uid":"owner-uid"}]}}`
	}
	tests := []struct {
		name       string
		controller *v1.ReplicationController
		finalizers []string
		filter     func(*v1.Pod) bool
		pods       []*v1.Pod
		want       []string
		patches    []string
	}{
		{
			name: "adopts what the label matches", controller: owner,
			pods:    []*v1.Pod{claimPod("a", productive, nil), claimPod("b", testing1, nil)},
			want:    []string{"a"},
			patches: []string{adopt("a")},
		},
		{
			name: "in deletion it adopts nothing", controller: deleted,
			pods: []*v1.Pod{claimPod("a", productive, nil), claimPod("b", productive, nil)},
		},
		{
			name: "in deletion it keeps its own, and releases none", controller: deleted,
			pods: []*v1.Pod{claimPod("a", productive, deleted), claimPod("b", testing1, deleted), claimPod("c", productive, nil)},
			want: []string{"a"},
		},
		{
			name: "leaves those of another controller", controller: owner,
			pods: []*v1.Pod{claimPod("a", productive, owner), claimPod("b", productive, other)},
			want: []string{"a"},
		},
		{
			name: "releases what the selector no longer matches", controller: owner,
			pods:    []*v1.Pod{claimPod("a", productive, owner), claimPod("b", testing1, owner)},
			want:    []string{"a"},
			patches: []string{release("b")},
		},
		{
			name: "does not adopt Pods in deletion, but keeps its own", controller: owner,
			pods: []*v1.Pod{inDeletion(claimPod("a", productive, owner)), inDeletion(claimPod("b", productive, nil))},
			want: []string{"a"},
		},
		{
			name: "with finalizers", controller: owner, finalizers: []string{"foo-finalizer", "bar-finalizer"},
			pods: []*v1.Pod{claimPod("a", productive, owner), claimPod("b", testing1, owner), claimPod("c", productive, nil)},
			want: []string{"a", "c"},
			patches: []string{
				`{"metadata":{"uid":"b","ownerReferences":[{"$patch":"delete","uid":"owner-uid"}],"$deleteFromPrimitiveList/finalizers":["foo-finalizer","bar-finalizer"]}}`,
				strings.Replace(adopt("c"), `"uid":"c"`, `"uid":"c","finalizers":["foo-finalizer","bar-finalizer"]`, 1),
			},
		},
		{
			name: "does not adopt in another namespace", controller: testOwner("owner-uid", "elsewhere"),
			pods: []*v1.Pod{claimPod("a", productive, nil)},
		},
		{
			name: "cluster-scoped, it adopts in every namespace", controller: clusterScoped,
			pods:    []*v1.Pod{claimPod("a", productive, nil), claimPod("b", productive, clusterScoped)},
			want:    []string{"a", "b"},
			patches: []string{adopt("a")},
		},
		{
			name: "filters count as the selector does", controller: owner,
			filter:  func(pod *v1.Pod) bool { return pod.Name != "b" },
			pods:    []*v1.Pod{claimPod("a", productive, nil), claimPod("b", productive, nil), claimPod("c", productive, owner)},
			want:    []string{"a", "c"},
			patches: []string{adopt("a")},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			podControl := &FakePodControl{}
			manager := NewPodControllerRefManager(podControl, tc.controller, labels.SelectorFromSet(productive), rcKind, nil, tc.finalizers...)
			var filters []func(*v1.Pod) bool
			if tc.filter != nil {
				filters = append(filters, tc.filter)
			}
			claimed, err := manager.ClaimPods(t.Context(), tc.pods, filters...)
			if err != nil {
				t.Fatal(err)
			}
			if got := podNames(claimed); !slices.Equal(got, tc.want) {
				t.Errorf("claimed %v, want %v", got, tc.want)
			}
			var patches []string
			for _, patch := range podControl.Patches {
				patches = append(patches, string(patch))
			}
			if !slices.Equal(patches, tc.patches) {
				t.Errorf("patches\n%s\nwant\n%s", strings.Join(patches, "\n"), strings.Join(tc.patches, "\n"))
			}
		})
	}
}

func TestClaimPodsErrors(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	notFound := apierrors.NewNotFound(v1.Resource("pods"), "x")
	invalid := apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "x", nil)
	failed := errors.New("no connection")
	tests := []struct {
		name     string
		patchErr error
		wantErrs int
	}{
		{"gone meanwhile", notFound, 0},
		{"another one of that name: adopting fails, releasing is done", invalid, 1},
		{"failure: every one is tried, and all are told", failed, 2},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			podControl := &FakePodControl{Err: tc.patchErr}
			manager := NewPodControllerRefManager(podControl, owner, labels.SelectorFromSet(productive), rcKind, nil)
			claimed, err := manager.ClaimPods(t.Context(), []*v1.Pod{
				claimPod("mine", productive, owner), claimPod("orphan", productive, nil), claimPod("leaving", nil, owner),
			})
			if got := podNames(claimed); !slices.Equal(got, []string{"mine"}) {
				t.Errorf("claimed %v, want only what was its own", got)
			}
			if len(podControl.Patches) != 2 {
				t.Errorf("%d patches, want 2", len(podControl.Patches))
			}
			var aggregate interface{ Errors() []error }
			switch {
			case tc.wantErrs == 0 && err != nil:
				t.Errorf("error %v", err)
			case tc.wantErrs > 0 && (!errors.As(err, &aggregate) || len(aggregate.Errors()) != tc.wantErrs):
				t.Errorf("error %v, want %d", err, tc.wantErrs)
			}
		})
	}
}

func TestCanAdoptIsAskedOnce(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	asked := 0
	manager := NewPodControllerRefManager(&FakePodControl{}, owner, labels.SelectorFromSet(productive), rcKind, func(context.Context) error {
		asked++
		return errors.New("no")
	})
	claimed, err := manager.ClaimPods(t.Context(), []*v1.Pod{claimPod("a", productive, nil), claimPod("b", productive, nil), claimPod("c", productive, owner)})
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if got := podNames(claimed); !slices.Equal(got, []string{"c"}) {
		t.Errorf("claimed %v", got)
	}
	if want := "can't adopt Pod ns/a (a): no"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestCanAdoptIsNotAskedWithoutOrphans(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	manager := NewPodControllerRefManager(&FakePodControl{}, owner, labels.SelectorFromSet(productive), rcKind, func(context.Context) error {
		t.Error("asked, which costs a request")
		return nil
	})
	if _, err := manager.ClaimPods(t.Context(), []*v1.Pod{claimPod("a", productive, owner), claimPod("b", nil, owner), claimPod("c", nil, nil)}); err != nil {
		t.Fatal(err)
	}
}

type fakeRSControl struct{ patches []string }

func (f *fakeRSControl) PatchReplicaSet(_ context.Context, namespace, name string, data []byte) error {
	f.patches = append(f.patches, fmt.Sprintf("%s/%s %s", namespace, name, data))
	return nil
}

func (f *fakeRSControl) PatchControllerRevision(_ context.Context, namespace, name string, data []byte) error {
	f.patches = append(f.patches, fmt.Sprintf("%s/%s %s", namespace, name, data))
	return nil
}

func TestClaimOtherKinds(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	selector := labels.SelectorFromSet(productive)
	meta := func(name string) metav1.ObjectMeta { return claimPod(name, productive, nil).ObjectMeta }

	control := &fakeRSControl{}
	sets, err := NewReplicaSetControllerRefManager(control, owner, selector, rcKind, nil).
		ClaimReplicaSets(t.Context(), []*apps.ReplicaSet{{ObjectMeta: meta("rs")}, inDeletion(&apps.ReplicaSet{ObjectMeta: meta("gone")})})
	if err != nil || len(sets) != 1 || sets[0].Name != "rs" || len(control.patches) != 1 || !strings.HasPrefix(control.patches[0], "ns/rs {") {
		t.Errorf("ReplicaSets: %v, %v, %v", sets, err, control.patches)
	}
	control = &fakeRSControl{}
	revisions, err := NewControllerRevisionControllerRefManager(control, owner, selector, rcKind, nil).
		ClaimControllerRevisions(t.Context(), []*apps.ControllerRevision{{ObjectMeta: meta("cr")}})
	if err != nil || len(revisions) != 1 || len(control.patches) != 1 || !strings.HasPrefix(control.patches[0], "ns/cr {") {
		t.Errorf("ControllerRevisions: %v, %v, %v", revisions, err, control.patches)
	}
}

func TestRecheckDeletionTimestamp(t *testing.T) {
	live := func(obj metav1.Object, err error) func(context.Context) (metav1.Object, error) {
		return func(context.Context) (metav1.Object, error) { return obj, err }
	}
	if err := RecheckDeletionTimestamp(live(testOwner("u", "ns"), nil))(t.Context()); err != nil {
		t.Errorf("alive: %v", err)
	}
	err := RecheckDeletionTimestamp(live(inDeletion(testOwner("u", "ns")), nil))(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "ns/owner has just been deleted at ") {
		t.Errorf("in deletion: %v", err)
	}
	err = RecheckDeletionTimestamp(live(nil, errors.New("no answer")))(t.Context())
	if err == nil || err.Error() != "can't recheck DeletionTimestamp: no answer" {
		t.Errorf("unreadable: %v", err)
	}
	got := UIDMismatchError("ReplicaSet", testOwner("old", "ns"), "new").Error()
	if want := "original ReplicaSet ns/owner is gone: got uid new, wanted old"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGenerateDeleteOwnerRefStrategicMergeBytes(t *testing.T) {
	tests := []struct {
		name       string
		owners     []types.UID
		dependent  types.UID
		finalizers []string
		want       string
	}{
		{"structure", []types.UID{"ss1"}, "ss2", nil,
			`{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"}]}}`},
		{"owner UID is escaped", []types.UID{`ss1"hello`}, "ss2", nil,
			`{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1\"hello"}]}}`},
		{"dependent UID is escaped", []types.UID{"ss1"}, `ss2"hello`, nil,
			`{"metadata":{"uid":"ss2\"hello","ownerReferences":[{"$patch":"delete","uid":"ss1"}]}}`},
		{"several owners", []types.UID{"ss1", "ss2"}, "ss3", nil,
			`{"metadata":{"uid":"ss3","ownerReferences":[{"$patch":"delete","uid":"ss1"},{"$patch":"delete","uid":"ss2"}]}}`},
		{"a finalizer and several owners", []types.UID{"ss1", "ss2"}, "ss3", []string{"f"},
			`{"metadata":{"uid":"ss3","ownerReferences":[{"$patch":"delete","uid":"ss1"},{"$patch":"delete","uid":"ss2"}],"$deleteFromPrimitiveList/finalizers":["f"]}}`},
	}
	for _, tc := range tests {
		got, err := GenerateDeleteOwnerRefStrategicMergeBytes(tc.dependent, tc.owners, tc.finalizers...)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.name, got, err, tc.want)
		}
	}
}
