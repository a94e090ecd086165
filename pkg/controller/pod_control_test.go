// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

func podTemplate() *v1.PodTemplateSpec {
	return &v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ignored", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "1"}, Finalizers: []string{"f"},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}},
	}
}

// podControlFixture is a RealPodControl on a fake client that answers err to verb.
func podControlFixture(verb string, err error, objects ...runtime.Object) (RealPodControl, *fake.Clientset, *record.FakeRecorder, *[]string) {
	client := fake.NewClientset(objects...)
	if err != nil {
		client.PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	recorder := record.NewFakeRecorder(10)
	var written []string
	return RealPodControl{KubeClient: client, Recorder: recorder, OnWrite: func(pod *v1.Pod, ref *metav1.OwnerReference) {
		owner := "none"
		if ref != nil {
			owner = ref.Name
		}
		written = append(written, pod.Name+" of "+owner)
	}}, client, recorder, &written
}

func events(recorder *record.FakeRecorder) []string {
	var all []string
	for {
		select {
		case event := <-recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func TestCreatePods(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	ref := metav1.NewControllerRef(owner, rcKind)
	for _, tc := range []struct{ name, generateName, want string }{
		{"named after the owner", "", "owner-"},
		{"with a prefix of its own", "hello-", "hello-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			control, client, recorder, written := podControlFixture("", nil)
			if err := control.CreatePodsWithGenerateName(t.Context(), "ns", podTemplate(), owner, ref, tc.generateName); err != nil {
				t.Fatal(err)
			}
			actions := client.Actions()
			if len(actions) != 1 || actions[0].GetVerb() != "create" || actions[0].GetNamespace() != "ns" {
				t.Fatalf("actions %v", actions)
			}
			want := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					GenerateName: tc.want, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "1"},
					Finalizers: []string{"f"}, OwnerReferences: []metav1.OwnerReference{*ref},
				},
				Spec: podTemplate().Spec,
			}
			got := actions[0].(clienttesting.CreateAction).GetObject().(*v1.Pod).DeepCopy()
			name := got.Name
			got.Name, got.Namespace = "", "" // set by the fake
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("created\n%+v\nwant\n%+v", got, want)
			}
			if got := events(recorder); !slices.Equal(got, []string{"Normal SuccessfulCreate Created pod: " + name}) {
				t.Errorf("events %q", got)
			}
			if want := name + " of owner"; len(*written) != 1 || (*written)[0] != want {
				t.Errorf("OnWrite: %q, want %q", *written, want)
			}
		})
	}
}

func TestCreatePodsFailures(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	ref := func(change func(*metav1.OwnerReference)) *metav1.OwnerReference {
		r := metav1.NewControllerRef(owner, rcKind)
		change(r)
		return r
	}
	good := ref(func(*metav1.OwnerReference) {})
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "namespace is going",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}},
	}}
	noLabels := podTemplate()
	noLabels.Labels = nil
	tests := []struct {
		name      string
		template  *v1.PodTemplateSpec
		ref       *metav1.OwnerReference
		answer    error
		wantErr   string
		wantEvent string
		requests  int
	}{
		{"no reference", podTemplate(), nil, nil, "controllerRef is nil", "", 0},
		{"no apiVersion", podTemplate(), ref(func(r *metav1.OwnerReference) { r.APIVersion = "" }), nil, "controllerRef has empty APIVersion", "", 0},
		{"no kind", podTemplate(), ref(func(r *metav1.OwnerReference) { r.Kind = "" }), nil, "controllerRef has empty Kind", "", 0},
		{"not the controller", podTemplate(), ref(func(r *metav1.OwnerReference) { r.Controller = new(false) }), nil, "controllerRef.Controller is not set to true", "", 0},
		{"does not block", podTemplate(), ref(func(r *metav1.OwnerReference) { r.BlockOwnerDeletion = nil }), nil, "controllerRef.BlockOwnerDeletion is not set", "", 0},
		{"no labels", noLabels, good, nil, "unable to create pods, no labels", "", 0},
		{"refused", podTemplate(), good, errors.New("quota"), "quota", "Warning FailedCreate Error creating: quota", 1},
		{"namespace in deletion: no event", podTemplate(), good, terminating, "namespace is going", "", 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			control, client, recorder, written := podControlFixture("create", tc.answer)
			err := control.CreatePods(t.Context(), "ns", tc.template, owner, tc.ref)
			if err == nil || err.Error() != tc.wantErr {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if got := strings.Join(events(recorder), ";"); got != tc.wantEvent {
				t.Errorf("event %q, want %q", got, tc.wantEvent)
			}
			if len(client.Actions()) != tc.requests || len(*written) != 0 {
				t.Errorf("%d requests, want %d; OnWrite %v", len(client.Actions()), tc.requests, *written)
			}
		})
	}
}

func TestDeletePod(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a"}}
	conflict := apierrors.NewConflict(v1.Resource("pods"), "a", errors.New("Precondition failed: UID in precondition: uid-a, UID in object meta: uid-b"))
	missing := apierrors.NewNotFound(v1.Resource("pods"), "a")
	tests := []struct {
		name      string
		answer    error
		notFound  bool
		wantErr   string
		wantEvent string
	}{
		{"done", nil, false, "", "Normal SuccessfulDelete Deleted pod: a"},
		{"gone already: told as it is, no event", missing, true, missing.Error(), ""},
		{"another one has its name, or so: told, no event", conflict, false, "deleting pod a: " + conflict.Error(), ""},
		{"refused", errors.New("no"), false, "unable to delete pods: no", "Warning FailedDelete Error deleting: no"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			control, client, recorder, _ := podControlFixture("delete", tc.answer, pod)
			err := control.DeletePodByUID(t.Context(), pod, owner)
			if got := errText(err); got != tc.wantErr || apierrors.IsNotFound(err) != tc.notFound {
				t.Errorf("error %q (not found: %v), want %q", got, apierrors.IsNotFound(err), tc.wantErr)
			}
			if got := strings.Join(events(recorder), ";"); got != tc.wantEvent {
				t.Errorf("event %q, want %q", got, tc.wantEvent)
			}
			if len(client.Actions()) != 1 {
				t.Fatalf("actions %v", client.Actions())
			}
			options := client.Actions()[0].(clienttesting.DeleteAction).GetDeleteOptions()
			if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != "uid-a" {
				t.Errorf("no precondition on the UID: %+v", options)
			}
		})
	}
}

func TestDeletePodByNameAllowsMissing(t *testing.T) {
	control, client, recorder, _ := podControlFixture("", nil)
	err := control.DeletePod(t.Context(), "ns", "a", testOwner("owner-uid", "ns"))
	if !apierrors.IsNotFound(err) || len(events(recorder)) != 0 {
		t.Errorf("error %v, want NotFound and no event", err)
	}
	if options := client.Actions()[0].(clienttesting.DeleteAction).GetDeleteOptions(); options.Preconditions != nil {
		t.Errorf("preconditions %+v", options.Preconditions)
	}
}

func TestPatchPod(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	pod := claimPod("a", productive, owner)
	control, client, _, written := podControlFixture("", nil, pod)
	patch := `{"metadata":{"labels":{"x":"y"}}}`
	if err := control.PatchPod(t.Context(), "ns", "a", []byte(patch)); err != nil {
		t.Fatal(err)
	}
	action := client.Actions()[0].(clienttesting.PatchAction)
	if string(action.GetPatchType()) != "application/strategic-merge-patch+json" || string(action.GetPatch()) != patch {
		t.Errorf("%s %s", action.GetPatchType(), action.GetPatch())
	}
	if len(*written) != 1 || (*written)[0] != "a of owner" {
		t.Errorf("OnWrite %q", *written)
	}
	if err := control.PatchPod(t.Context(), "ns", "missing", []byte(patch)); !apierrors.IsNotFound(err) || len(*written) != 1 {
		t.Errorf("error %v, OnWrite %q: want NotFound and nothing more", err, *written)
	}
}

func TestPodNamePrefix(t *testing.T) {
	for owner, want := range map[string]string{"web": "web-", "Web": "Web"} {
		pod, err := GetPodFromTemplate(podTemplate(), &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: owner}}, nil)
		if err != nil || pod.GenerateName != want {
			t.Errorf("%v, %v, want %s", pod, err, want)
		}
	}
}

func TestGetPodFromTemplateSharesNothing(t *testing.T) {
	template := podTemplate()
	pod, err := GetPodFromTemplate(template, testOwner("u", "ns"), nil)
	if err != nil {
		t.Fatal(err)
	}
	pod.Labels["app"], pod.Annotations["note"], pod.Finalizers[0], pod.Spec.Containers[0].Image = "x", "x", "x", "x"
	if !equality.Semantic.DeepEqual(template, podTemplate()) {
		t.Errorf("the template changed with the Pod: %+v", template)
	}
}

func TestFakePodControl(t *testing.T) {
	owner := testOwner("owner-uid", "ns")
	ref := metav1.NewControllerRef(owner, rcKind)
	f := &FakePodControl{CreateLimit: 1}
	if err := f.CreatePods(t.Context(), "ns", podTemplate(), owner, ref); err != nil {
		t.Fatal(err)
	}
	err := f.CreatePods(t.Context(), "ns", podTemplate(), owner, ref)
	if want := "not creating pod, limit 1 already reached (create call 2)"; errText(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
	f.Err = errors.New("no")
	if err := f.DeletePod(t.Context(), "ns", "a", owner); !errors.Is(err, f.Err) {
		t.Errorf("error %v", err)
	}
	if len(f.Templates) != 1 || len(f.ControllerRefs) != 1 || f.CreateCallCount != 2 || len(f.DeletePodName) != 1 {
		t.Errorf("recorded %+v", f.Templates)
	}
	f.Clear()
	if f.Templates != nil || f.CreateCallCount != 0 || f.DeletePodName != nil || f.Err == nil {
		t.Error("Clear does not clear, or clears too much")
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
