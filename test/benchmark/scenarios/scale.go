// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
)

// scaleUp: one Deployment grows from nothing.
func scaleUp() benchmark.Scenario {
	const app = "web"
	return benchmark.Scenario{
		Name:        "scale-up",
		Title:       "a Deployment from 0 to 500 pods, all ready and counted in its status",
		Controllers: []string{names.DeploymentController, names.ReplicaSetController},
		Nodes:       10,
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			if _, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(app, 0), metav1.CreateOptions{}); err != nil {
				return err
			}
			return watchDeployments(ctx, e)
		},
		Warm: func(ctx context.Context, e *benchmark.Env) error {
			return e.Wait(ctx, "the empty Deployment", deploymentSettled(e, app))
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.Measure(ctx, "", func(ctx context.Context) error {
				if err := scaleTo(ctx, e, app, e.N(500)); err != nil {
					return err
				}
				return e.Wait(ctx, "the Deployment to be complete", deploymentSettled(e, app))
			})
		},
	}
}

// rollOut: a Deployment changes its image.
func rollOut() benchmark.Scenario {
	const app = "web"
	return benchmark.Scenario{
		Name:        "roll-out",
		Title:       "a new image for a Deployment of 200 pods, with the default strategy",
		Controllers: []string{names.DeploymentController, names.ReplicaSetController},
		Nodes:       10,
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			if _, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(app, e.N(200)), metav1.CreateOptions{}); err != nil {
				return err
			}
			return watchDeployments(ctx, e)
		},
		Warm: func(ctx context.Context, e *benchmark.Env) error {
			return e.Wait(ctx, "the first roll-out", deploymentSettled(e, app))
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.Measure(ctx, "", func(ctx context.Context) error {
				patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:2"}]}}}}`)
				if _, err := e.Client.AppsV1().Deployments(namespace).Patch(ctx, app, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
				settled := deploymentSettled(e, app)
				return e.Wait(ctx, "the second roll-out", func(ctx context.Context) (bool, error) {
					d, err := e.Informers.Apps().V1().Deployments().Lister().Deployments(namespace).Get(app)
					if err != nil || d.Generation < 2 {
						return false, err // the harness does not see its own patch yet
					}
					return settled(ctx)
				})
			})
		},
	}
}

func scaleTo(ctx context.Context, e *benchmark.Env, app string, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	d, err := e.Client.AppsV1().Deployments(namespace).Patch(ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return e.Wait(ctx, "the harness to see the new size", func(context.Context) (bool, error) {
		seen, err := e.Informers.Apps().V1().Deployments().Lister().Deployments(namespace).Get(app)
		return err == nil && seen.Generation >= d.Generation, err
	})
}
