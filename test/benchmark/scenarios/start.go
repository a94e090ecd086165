// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
)

// workloads are the controllers of the scenarios that look at a whole manager.
func workloads() []string {
	return []string{
		names.DeploymentController, names.ReplicaSetController, names.ReplicationControllerController,
		names.NamespaceController, names.GarbageCollectorController, names.PodGarbageCollectorController,
		names.ServiceAccountController, names.RootCACertificatePublisherController, names.TTLAfterFinishedController,
	}
}

// seedCluster makes 100 Deployments of 20 pods, which nobody looks after yet, and 2,000 ConfigMaps.
func seedCluster(ctx context.Context, e *benchmark.Env) error {
	if err := e.Namespace(ctx, namespace); err != nil {
		return err
	}
	if err := createConfigMaps(ctx, e, namespace, e.N(2000)); err != nil {
		return err
	}
	err := parallel(ctx, e.N(100), func(ctx context.Context, i int) error {
		_, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(fmt.Sprintf("web-%d", i), 20), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return watchDeployments(ctx, e)
}

// seedsSettled waits until all Deployments of seedCluster are.
func seedsSettled(ctx context.Context, e *benchmark.Env) error {
	for i := range e.N(100) {
		name := fmt.Sprintf("web-%d", i)
		if err := e.Wait(ctx, "Deployment "+name, deploymentSettled(e, name)); err != nil {
			return err
		}
	}
	return nil
}

// settle brings the seed to rest with a manager that then goes.
func settle(ctx context.Context, e *benchmark.Env) error {
	m, err := e.StartManager(ctx)
	if err != nil {
		return err
	}
	if err := seedsSettled(ctx, e); err != nil {
		return err
	}
	if err := m.Kill(); err != nil {
		return err
	}
	return e.DropLease(ctx)
}

// coldStart: from the start of the process to the first thing that it does.
func coldStart() benchmark.Scenario {
	return benchmark.Scenario{
		Name:        "cold-start",
		Title:       "from the start of the process, on a settled cluster of 2,000 pods and 2,000 ConfigMaps, to a new Deployment's first pod",
		Controllers: workloads(),
		Nodes:       20,
		OwnManagers: true,
		Seed:        seedCluster,
		Run: func(ctx context.Context, e *benchmark.Env) error {
			if err := settle(ctx, e); err != nil {
				return err
			}
			const app = "new"
			if _, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(app, 1), metav1.CreateOptions{}); err != nil {
				return err
			}
			return e.Measure(ctx, "", func(ctx context.Context) error {
				if _, err := e.StartManager(ctx); err != nil {
					return err
				}
				return e.Wait(ctx, "the new Deployment", deploymentSettled(e, app))
			})
		},
	}
}

// atRest: what a manager costs that has nothing to do.
func atRest() benchmark.Scenario {
	return benchmark.Scenario{
		Name:        "at-rest",
		Title:       "half a minute in which nothing happens, on a settled cluster of 2,000 pods and 2,000 ConfigMaps",
		Controllers: workloads(),
		Nodes:       20,
		OwnManagers: true,
		Seed:        seedCluster,
		Run: func(ctx context.Context, e *benchmark.Env) error {
			if err := settle(ctx, e); err != nil {
				return err
			}
			if _, err := e.StartManager(ctx); err != nil {
				return err
			}
			if _, err := e.WaitForLeader(ctx, time.Minute); err != nil {
				return err
			}
			// The first lists and the first look at everything are cold start's business.
			if err := sleep(ctx, 20*time.Second); err != nil {
				return err
			}
			return e.Measure(ctx, "", func(ctx context.Context) error { return sleep(ctx, 30*time.Second) })
		},
	}
}

// sleep lets time pass: what is measured is that nothing happens.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
