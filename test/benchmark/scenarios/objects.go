// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"golang.org/x/sync/errgroup"

	"github.com/kcm-dev/kcm/test/benchmark"
)

// namespace is where scenarios with one namespace work.
const namespace = "bench"

// parallel calls f for 0 … n-1, 32 at a time: seeding is not measured, but waited for.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// podTemplate is a small pod with the label app.
func podTemplate(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{{Name: "main", Image: "example.com/app:1"}},
			AutomountServiceAccountToken: ptr.To(false),
		},
	}
}

// newDeployment is a Deployment with the label app on its pods.
func newDeployment(name string, replicas int) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name),
		},
	}
}

// deploymentSettled tells whether the Deployment's status says that all its pods are new and available.
func deploymentSettled(e *benchmark.Env, name string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		d, err := e.Informers.Apps().V1().Deployments().Lister().Deployments(namespace).Get(name)
		if err != nil {
			return false, err
		}
		want := *d.Spec.Replicas
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want, nil
	}
}

// watchDeployments makes deploymentSettled work.
func watchDeployments(ctx context.Context, e *benchmark.Env) error {
	e.Informers.Apps().V1().Deployments().Informer()
	return e.Sync(ctx)
}

// createConfigMaps creates n of them, each with the owners, in the namespace.
func createConfigMaps(ctx context.Context, e *benchmark.Env, ns string, n int, owners ...metav1.OwnerReference) error {
	return createNamed(ctx, e, ns, "c-%d", n, owners...)
}

// createNamed is createConfigMaps with names of another format.
func createNamed(ctx context.Context, e *benchmark.Env, ns, format string, n int, owners ...metav1.OwnerReference) error {
	return parallel(ctx, n, func(ctx context.Context, i int) error {
		_, err := e.Client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(format, i), OwnerReferences: owners},
			Data:       map[string]string{"key": "value"},
		}, metav1.CreateOptions{})
		return err
	})
}
