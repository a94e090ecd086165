// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informerfactory

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

type existing map[schema.GroupVersionResource]cache.SharedIndexInformer

func (e existing) Existing(resource schema.GroupVersionResource) cache.SharedIndexInformer {
	return e[resource]
}

func TestContents(t *testing.T) {
	pods, secrets := corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("secrets")
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(pod("a", "1"), pod("a", "2"), pod("b", "1")), 0)
	made := existing{}
	contents := Contents{existing{}, made}
	expect := func(resource schema.GroupVersionResource, namespace string, want int, wantKnown bool) {
		t.Helper()
		if got, known := contents.Count(resource, namespace); got != want || known != wantKnown {
			t.Errorf("%s in %s: %d, known %t, want %d, %t", resource.Resource, namespace, got, known, want, wantKnown)
		}
	}

	expect(pods, "a", 0, false)
	informer := factory.Core().V1().Pods().Informer()
	made[pods] = informer
	expect(pods, "a", 0, false) // not synced

	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	expect(pods, "a", 2, true)
	expect(pods, "b", 1, true)
	expect(pods, "c", 0, true)
	expect(secrets, "a", 0, false)
	cancel()
	factory.Shutdown()
	expect(pods, "a", 0, false) // stopped
}
