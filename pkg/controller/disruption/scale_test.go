// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"errors"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// owners is a scaleFinder over objects; scale requests are answered by answer.
type owners struct {
	*scaleFinder
	requests int
	answer   func() (*autoscaling.Scale, error)
}

func newOwners(t *testing.T, objects ...runtime.Object) *owners {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	apps1, core := factory.Apps().V1(), factory.Core().V1()
	for _, obj := range objects {
		var indexer cache.Indexer
		switch obj.(type) {
		case *v1.ReplicationController:
			indexer = core.ReplicationControllers().Informer().GetIndexer()
		case *apps.ReplicaSet:
			indexer = apps1.ReplicaSets().Informer().GetIndexer()
		case *apps.Deployment:
			indexer = apps1.Deployments().Informer().GetIndexer()
		case *apps.StatefulSet:
			indexer = apps1.StatefulSets().Informer().GetIndexer()
		}
		if err := indexer.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	o := &owners{answer: func() (*autoscaling.Scale, error) {
		return nil, apierrors.NewNotFound(widgets.GroupResource(), "owner")
	}}
	scaleClient := &scalefake.FakeScaleClient{}
	scaleClient.AddReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		o.requests++
		scale, err := o.answer()
		return true, scale, err
	})
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{
		widgets.GroupVersion().WithKind("Widget"), apps.SchemeGroupVersion.WithKind("ReplicaSet"), apps.SchemeGroupVersion.WithKind("StatefulSet"),
		v1.SchemeGroupVersion.WithKind("ReplicationController"),
	} {
		mapper.Add(gvk, apimeta.RESTScopeNamespace)
	}
	discovery := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{}}
	discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget"}, {Name: "widgets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1"},
	}}}
	o.scaleFinder = &scaleFinder{
		rcs: core.ReplicationControllers().Lister(), replicaSets: apps1.ReplicaSets().Lister(),
		deployments: apps1.Deployments().Lister(), statefulSets: apps1.StatefulSets().Lister(),
		mapper: mapper, scales: scaleClient, discovery: discovery,
	}
	return o
}

func ref(apiVersion, kind, name, uid string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}
}

func meta(name, uid string, owner *metav1.OwnerReference) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return m
}

func ownedBy(owner *metav1.OwnerReference) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{*owner} }
}

func TestCachedOwners(t *testing.T) {
	rc := &v1.ReplicationController{ObjectMeta: meta("rc", "1", nil), Spec: v1.ReplicationControllerSpec{Replicas: new(int32(2))}}
	rs := &apps.ReplicaSet{ObjectMeta: meta("rs", "2", nil), Spec: apps.ReplicaSetSpec{Replicas: new(int32(3))}}
	set := &apps.StatefulSet{ObjectMeta: meta("set", "3", nil), Spec: apps.StatefulSetSpec{Replicas: new(int32(4))}}
	deployment := &apps.Deployment{ObjectMeta: meta("d", "4", nil), Spec: apps.DeploymentSpec{Replicas: new(int32(5))}}
	rolled := &apps.ReplicaSet{ObjectMeta: meta("d-1", "5", ref("apps/v1", "Deployment", "d", "4")), Spec: apps.ReplicaSetSpec{Replicas: new(int32(1))}}
	foreign := &apps.ReplicaSet{ObjectMeta: meta("f-1", "6", ref("example.com/v1", "Deployment", "d", "4")), Spec: apps.ReplicaSetSpec{Replicas: new(int32(6))}}
	orphan := &apps.ReplicaSet{ObjectMeta: meta("o-1", "7", ref("apps/v1", "Deployment", "o", "8")), Spec: apps.ReplicaSetSpec{Replicas: new(int32(7))}}
	unset := &apps.ReplicaSet{ObjectMeta: meta("u", "9", nil)}
	tests := map[string]struct {
		ref  *metav1.OwnerReference
		want *target // nil: not in a cache
	}{
		"replication controller":               {ref("v1", "ReplicationController", "rc", "1"), &target{"1", 2}},
		"replication controller, other group":  {ref("example.com/v1", "ReplicationController", "rc", "1"), nil},
		"replication controller, other UID":    {ref("v1", "ReplicationController", "rc", "x"), nil},
		"replica set":                          {ref("apps/v1", "ReplicaSet", "rs", "2"), &target{"2", 3}},
		"replica set, old group":               {ref("extensions/v1beta1", "ReplicaSet", "rs", "2"), &target{"2", 3}},
		"replica set, other group":             {ref("example.com/v1", "ReplicaSet", "rs", "2"), nil},
		"replica set, other UID":               {ref("apps/v1", "ReplicaSet", "rs", "x"), nil},
		"replica set without replicas":         {ref("apps/v1", "ReplicaSet", "u", "9"), &target{"9", 1}},
		"stateful set":                         {ref("apps/v1", "StatefulSet", "set", "3"), &target{"3", 4}},
		"stateful set, old group":              {ref("extensions/v1beta1", "StatefulSet", "set", "3"), nil},
		"stateful set, other kind":             {ref("apps/v1", "Stateful", "set", "3"), nil},
		"stateful set, other UID":              {ref("apps/v1", "StatefulSet", "set", "x"), nil},
		"deployment by its replica set":        {ref("apps/v1", "ReplicaSet", "d-1", "5"), &target{"4", 5}},
		"replica set of somebody's Deployment": {ref("apps/v1", "ReplicaSet", "f-1", "6"), &target{"6", 6}},
		"replica set of a lost deployment":     {ref("apps/v1", "ReplicaSet", "o-1", "7"), nil},
		"malformed version":                    {ref("a/b/c", "ReplicaSet", "rs", "2"), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOwners(t, rc, rs, set, deployment, rolled, foreign, orphan, unset)
			got, err := o.find(t.Context(), "default", tc.ref)
			if tc.want == nil {
				if got != nil {
					t.Errorf("found %+v in a cache", *got)
				}
				return
			}
			if err != nil || got == nil || *got != *tc.want {
				t.Errorf("got %+v, %v, want %+v", got, err, *tc.want)
			}
			if o.requests != 0 {
				t.Error("the API server was asked")
			}
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	owner := ref("example.com/v1", "Widget", "w", "10")
	scaled := func(uid string) func() (*autoscaling.Scale, error) {
		return func() (*autoscaling.Scale, error) {
			return &autoscaling.Scale{ObjectMeta: meta("w", uid, nil), Spec: autoscaling.ScaleSpec{Replicas: 8}}, nil
		}
	}
	tests := map[string]struct {
		ref     *metav1.OwnerReference
		answer  func() (*autoscaling.Scale, error)
		kinds   []metav1.APIResource
		want    *target
		wantErr string
	}{
		"has one":          {ref: owner, answer: scaled("10"), want: &target{"10", 8}},
		"other UID":        {ref: owner, answer: scaled("11")},
		"is gone":          {ref: owner},
		"cannot be scaled": {ref: owner, kinds: []metav1.APIResource{{Name: "widgets", Kind: "Widget"}}, wantErr: "widgets.example.com does not implement the scale subresource"},
		"scale of another kind": {ref: owner, kinds: []metav1.APIResource{{Name: "widgets", Kind: "Widget"}, {Name: "widgets/scale", Kind: "Size", Group: "example.com"}},
			wantErr: "does not implement the scale subresource"},
		"request fails":     {ref: owner, answer: func() (*autoscaling.Scale, error) { return nil, errors.New("disk full") }, wantErr: "disk full"},
		"unknown kind":      {ref: ref("example.com/v1", "Gadget", "g", "12"), wantErr: "Gadget.example.com"},
		"malformed version": {ref: ref("a/b/c", "Widget", "w", "10"), wantErr: "apiVersion"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOwners(t)
			if tc.answer != nil {
				o.answer = tc.answer
			}
			if tc.kinds != nil {
				o.discovery.(*discoveryfake.FakeDiscovery).Resources = []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: tc.kinds}}
			}
			got, err := o.find(t.Context(), "default", tc.ref)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || (got == nil) != (tc.want == nil) || (got != nil && *got != *tc.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

func TestScalesOf(t *testing.T) {
	rs := &apps.ReplicaSet{ObjectMeta: meta("rs", "2", nil), Spec: apps.ReplicaSetSpec{Replicas: new(int32(3))}}
	set := &apps.StatefulSet{ObjectMeta: meta("set", "3", nil), Spec: apps.StatefulSetSpec{Replicas: new(int32(4))}}
	ofRS, ofSet := ownedBy(ref("apps/v1", "ReplicaSet", "rs", "2")), ownedBy(ref("apps/v1", "StatefulSet", "set", "3"))
	ofWidget := ownedBy(ref("example.com/v1", "Widget", "w", "10"))

	o := newOwners(t, rs, set)
	got, err := o.scalesOf(t.Context(), []*v1.Pod{newPod("a", ofRS), newPod("b", ofRS), newPod("c", ofSet), newPod("naked")})
	if err != nil || got.total() != 7 || len(got.unmanaged) != 1 || got.unmanaged[0] != "naked" {
		t.Errorf("got %+v, %v", got, err)
	}

	o.answer = func() (*autoscaling.Scale, error) {
		return &autoscaling.Scale{ObjectMeta: meta("w", "10", nil), Spec: autoscaling.ScaleSpec{Replicas: 8}}, nil
	}
	got, err = o.scalesOf(t.Context(), []*v1.Pod{newPod("a", ofWidget), newPod("b", ofWidget), newPod("c", ofRS)})
	if err != nil || got.total() != 11 {
		t.Errorf("got %+v, %v", got, err)
	}
	if o.requests != 1 {
		t.Errorf("%d scale requests for one owner", o.requests)
	}

	_, err = newOwners(t).scalesOf(t.Context(), []*v1.Pod{newPod("lost", ofWidget)})
	if err == nil || err.Error() != `found no controllers for pod "lost"` {
		t.Errorf("error %v", err)
	}
}
