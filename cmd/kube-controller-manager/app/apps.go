// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/kcm-dev/kcm/pkg/controller/daemon"
	"github.com/kcm-dev/kcm/pkg/controller/deployment"
	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/pkg/controller/statefulset"
)

func newDeploymentController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("deployment-controller")
	if err != nil {
		return nil, err
	}
	c, err := deployment.NewDeploymentController(ctx,
		cc.InformerFactory.Apps().V1().Deployments(),
		cc.InformerFactory.Apps().V1().ReplicaSets(),
		cc.InformerFactory.Core().V1().Pods(),
		client)
	if err != nil {
		return nil, fmt.Errorf("creating the Deployment controller: %w", err)
	}
	return newWorkerLoop(name, c, cc.ComponentConfig.DeploymentController.ConcurrentDeploymentSyncs), nil
}

func newReplicaSetController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("replicaset-controller")
	if err != nil {
		return nil, err
	}
	c := replicaset.NewReplicaSetController(ctx,
		cc.InformerFactory.Apps().V1().ReplicaSets(),
		cc.InformerFactory.Core().V1().Pods(),
		client,
		replicaset.BurstReplicas)
	return newWorkerLoop(name, c, cc.ComponentConfig.ReplicaSetController.ConcurrentRSSyncs), nil
}

func newStatefulSetController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("statefulset-controller")
	if err != nil {
		return nil, err
	}
	c := statefulset.NewStatefulSetController(ctx,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Apps().V1().StatefulSets(),
		cc.InformerFactory.Core().V1().PersistentVolumeClaims(),
		cc.InformerFactory.Apps().V1().ControllerRevisions(),
		client)
	return newWorkerLoop(name, c, cc.ComponentConfig.StatefulSetController.ConcurrentStatefulSetSyncs), nil
}

// The back-off of failed daemon Pods on a node: upstream's.
const (
	failedDaemonPodBackoff    = time.Second
	maxFailedDaemonPodBackoff = 15 * time.Minute
)

func newDaemonSetController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("daemon-set-controller")
	if err != nil {
		return nil, err
	}
	c, err := daemon.NewDaemonSetsController(ctx,
		cc.InformerFactory.Apps().V1().DaemonSets(),
		cc.InformerFactory.Apps().V1().ControllerRevisions(),
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Core().V1().Nodes(),
		client,
		flowcontrol.NewBackOff(failedDaemonPodBackoff, maxFailedDaemonPodBackoff))
	if err != nil {
		return nil, fmt.Errorf("creating the DaemonSet controller: %w", err)
	}
	return newWorkerLoop(name, c, cc.ComponentConfig.DaemonSetController.ConcurrentDaemonSetSyncs), nil
}
