// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/benchmark"
)

// failOver: the leader ends, by SIGTERM or SIGKILL, while a standby waits.
func failOver(signal string) benchmark.Scenario {
	titles := map[string]string{
		"term": "SIGTERM to the leader, on a settled cluster of 2,000 pods and 2,000 ConfigMaps, until the standby has made a new Deployment's pod ready",
		"kill": "SIGKILL to the leader, on a settled cluster of 2,000 pods and 2,000 ConfigMaps, until the standby has made a new Deployment's pod ready",
	}
	return benchmark.Scenario{
		Name:        "fail-over-" + signal,
		Title:       titles[signal],
		Controllers: workloads(),
		Nodes:       20,
		OwnManagers: true,
		Seed:        seedCluster,
		Run: func(ctx context.Context, e *benchmark.Env) error {
			leader, err := e.StartManager(ctx)
			if err != nil {
				return err
			}
			if err := seedsSettled(ctx, e); err != nil {
				return err
			}
			if _, err := e.StartManager(ctx); err != nil {
				return err
			}
			// The standby must have seen the lease before it can wait for its end; ours fills its caches.
			if err := sleep(ctx, 5*time.Second); err != nil {
				return err
			}
			return e.Measure(ctx, "", func(ctx context.Context) error {
				end := leader.Kill
				if signal == "term" {
					end = leader.Terminate
				}
				if err := end(); err != nil {
					return err
				}
				const app = "after"
				if _, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(app, 1), metav1.CreateOptions{}); err != nil {
					return err
				}
				return e.Wait(ctx, "the standby's work", deploymentSettled(e, app))
			})
		},
	}
}
