// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// podInformer returns an informer with both indexes, each asked for twice, as by
// several controllers. It is not started: tests fill its indexer.
func podInformer(t *testing.T) cache.SharedIndexInformer {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	for range 2 {
		if err := AddPodControllerIndexer(informer); err != nil {
			t.Fatal(err)
		}
		if err := AddPodNodeNameIndexer(informer); err != nil {
			t.Fatal(err)
		}
	}
	return informer
}

func TestPodNodeNameIndex(t *testing.T) {
	indexer := podInformer(t).GetIndexer()
	for _, pod := range []*v1.Pod{podWith("a", onNode("n1")), podWith("b", onNode("n2")), podWith("c", onNode("n1")), podWith("d", onNode(""))} {
		_ = indexer.Add(pod)
	}
	objs, err := indexer.ByIndex(PodNodeNameKeyIndex, "n1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, obj := range objs {
		names = append(names, obj.(*v1.Pod).Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("on n1: %v", names)
	}
	if values := indexer.ListIndexFuncValues(PodNodeNameKeyIndex); len(values) != 2 {
		t.Errorf("index values %v: a Pod without node is indexed", values)
	}
}

func TestReplicaSetControllerIndex(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Apps().V1().ReplicaSets().Informer()
	for range 2 {
		if err := AddReplicaSetControllerIndexer(informer); err != nil {
			t.Fatal(err)
		}
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1", Controller: new(true)}
	for name, refs := range map[string][]metav1.OwnerReference{"owned": {owner}, "orphan": nil} {
		_ = informer.GetIndexer().Add(&apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: refs}})
	}
	for key, want := range map[string]string{PodControllerIndexKey("ns", &owner): "owned", PodControllerIndexKey("ns", nil): "orphan"} {
		objs, err := informer.GetIndexer().ByIndex(ReplicaSetControllerIndex, key)
		if err != nil || len(objs) != 1 || objs[0].(*apps.ReplicaSet).Name != want {
			t.Errorf("under %q: %v, %v; want %s", key, objs, err, want)
		}
	}
}
