// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func TestListReplicaSetsAndPods(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(0))
	mine, stranger, unlabelled := replicaSet("mine", "a", 1, 0), replicaSet("stranger", "a", 1, 0), replicaSet("unlabelled", "a", 1, 0)
	stranger.OwnerReferences[0].UID = "another"
	unlabelled.Labels = nil
	pod := func(name string, owner types.UID) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", UID: owner, Controller: ptr.To(true)}}}}
	}
	client := fake.NewClientset(mine, stranger, unlabelled, pod("p", mine.UID), pod("q", stranger.UID))

	sets, err := ListReplicaSets(d, RsListFromClient(client.AppsV1()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine"}, names(sets)); diff != "" {
		t.Error(diff)
	}
	pods, err := ListPods(d, sets, func(namespace string, options metav1.ListOptions) (*v1.PodList, error) {
		return client.CoreV1().Pods(namespace).List(t.Context(), options)
	})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "p" {
		t.Errorf("got %v, %v", pods, err)
	}

	d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bad"}}
	if _, err := ListReplicaSets(d, RsListFromClient(client.AppsV1())); err == nil {
		t.Error("an invalid selector lists")
	}
	if _, err := ListPods(d, sets, nil); err == nil {
		t.Error("an invalid selector lists")
	}
}

func TestWaitForObservedDeployment(t *testing.T) {
	seen := int64(0)
	get := func() (*apps.Deployment, error) {
		seen++
		return &apps.Deployment{Status: apps.DeploymentStatus{ObservedGeneration: seen}}, nil
	}
	if err := WaitForObservedDeployment(get, 3, time.Millisecond, time.Minute); err != nil || seen != 3 {
		t.Errorf("after %d: %v", seen, err)
	}
	want := errors.New("down")
	if err := WaitForObservedDeployment(func() (*apps.Deployment, error) { return nil, want }, 3, time.Millisecond, time.Minute); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if err := WaitForObservedDeployment(func() (*apps.Deployment, error) { return &apps.Deployment{}, nil }, 3, time.Millisecond, 5*time.Millisecond); err == nil {
		t.Error("no error after the timeout")
	}
}
