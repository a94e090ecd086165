// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
)

// statefulSet: one parallel StatefulSet with a claim per pod grows from nothing, and goes to none.
func statefulSet() benchmark.Scenario {
	const app = "web"
	return benchmark.Scenario{
		Name:        "statefulset",
		Title:       "a StatefulSet (Parallel) of 500 pods with a claim each: from 0 to all ready, and back",
		Controllers: []string{names.StatefulSetController},
		Nodes:       10,
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			if _, err := e.Client.AppsV1().StatefulSets(namespace).Create(ctx, newStatefulSet(app), metav1.CreateOptions{}); err != nil {
				return err
			}
			e.Informers.Apps().V1().StatefulSets().Informer()
			return e.Sync(ctx)
		},
		Warm: func(ctx context.Context, e *benchmark.Env) error {
			return e.Wait(ctx, "the empty StatefulSet", statefulSetSettled(e, app, 1))
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			for _, phase := range []struct {
				name     string
				replicas int
			}{{"up", e.N(500)}, {"down", 0}} {
				err := e.Measure(ctx, phase.name, func(ctx context.Context) error {
					patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, phase.replicas)
					set, err := e.Client.AppsV1().StatefulSets(namespace).Patch(ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
					if err != nil {
						return err
					}
					return e.Wait(ctx, "the StatefulSet to be complete", statefulSetSettled(e, app, set.Generation))
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// newStatefulSet is an empty StatefulSet with the label app on its pods.
func newStatefulSet(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            ptr.To(int32(0)),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			ServiceName:         name,
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template:            podTemplate(name),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}
}

// statefulSetSettled says whether the StatefulSet is complete, at that generation or a later one.
func statefulSetSettled(e *benchmark.Env, name string, generation int64) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		set, err := e.Informers.Apps().V1().StatefulSets().Lister().StatefulSets(namespace).Get(name)
		if err != nil || set.Generation < generation {
			return false, err // the harness does not see its own patch yet
		}
		want, s := *set.Spec.Replicas, set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == want && s.AvailableReplicas == want && s.UpdatedReplicas == want, nil
	}
}
