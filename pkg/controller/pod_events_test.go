// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestPodEvents(t *testing.T) {
	owned := func(kind, apiVersion, name string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", OwnerReferences: []metav1.OwnerReference{
			{Kind: kind, APIVersion: apiVersion, Name: name, UID: "uid", Controller: new(true)},
		}}}
	}
	orphan := func(label string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Labels: map[string]string{"app": label}}}
	}
	going := func(pod *v1.Pod) *v1.Pod { pod.DeletionTimestamp = new(metav1.Now()); return pod }
	ours, theirs := owned("DaemonSet", "apps/v1", "a"), owned("ReplicaSet", "apps/v1", "b")
	tests := map[string]struct {
		event func(PodEvents)
		want  []string
	}{
		"added":                        {func(e PodEvents) { e.Added(ours, false) }, []string{"owner ns/a"}},
		"added, of an older version":   {func(e PodEvents) { e.Added(owned("DaemonSet", "apps/v1beta2", "a"), false) }, []string{"owner ns/a"}},
		"added, of another kind":       {func(e PodEvents) { e.Added(theirs, false) }, nil},
		"added, of another group":      {func(e PodEvents) { e.Added(owned("DaemonSet", "example.com/v1", "a"), false) }, nil},
		"added, malformed version":     {func(e PodEvents) { e.Added(owned("DaemonSet", "a/b/c", "a"), false) }, nil},
		"added, on its way out":        {func(e PodEvents) { e.Added(going(owned("DaemonSet", "apps/v1", "a")), false) }, []string{"owner ns/a"}},
		"orphan added":                 {func(e PodEvents) { e.Added(orphan("x"), false) }, []string{"orphan pod"}},
		"orphan added, on its way out": {func(e PodEvents) { e.Added(going(orphan("x")), false) }, nil},
		"updated":                      {func(e PodEvents) { e.Updated(ours, ours) }, []string{"owner ns/a"}},
		"taken by another":             {func(e PodEvents) { e.Updated(ours, theirs) }, []string{"owner ns/a"}},
		"taken over":                   {func(e PodEvents) { e.Updated(theirs, ours) }, []string{"owner ns/a"}},
		"handed on":                    {func(e PodEvents) { e.Updated(owned("DaemonSet", "apps/v1", "z"), ours) }, []string{"owner ns/z", "owner ns/a"}},
		"let go":                       {func(e PodEvents) { e.Updated(ours, orphan("x")) }, []string{"owner ns/a", "orphan pod"}},
		"orphan relabelled":            {func(e PodEvents) { e.Updated(orphan("x"), orphan("y")) }, []string{"orphan pod"}},
		"orphan merely updated":        {func(e PodEvents) { e.Updated(orphan("x"), orphan("x")) }, nil},
		"orphan on its way out":        {func(e PodEvents) { e.Updated(orphan("x"), going(orphan("y"))) }, nil},
		"deleted":                      {func(e PodEvents) { e.Deleted(ours) }, []string{"owner ns/a"}},
		"orphan deleted":               {func(e PodEvents) { e.Deleted(orphan("x")) }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			tc.event(PodEvents{
				Kind:   apps.SchemeGroupVersion.WithKind("DaemonSet").GroupKind(),
				Owned:  func(owner cache.ObjectName, _ bool) { got = append(got, "owner "+owner.String()) },
				Orphan: func(pod *v1.Pod, _ bool) { got = append(got, "orphan "+pod.Name) },
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("told of %q, want %q", got, tc.want)
			}
		})
	}
}
