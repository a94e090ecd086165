// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"

	"github.com/kcm-dev/kcm/pkg/controller/disruption"
)

func newDisruptionController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	config, err := cc.ClientBuilder.Config("disruption-controller")
	if err != nil {
		return nil, err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the disruption controller's client: %w", err)
	}
	kinds := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(config, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, fmt.Errorf("creating the disruption controller's scale client: %w", err)
	}
	c := disruption.NewDisruptionController(ctx,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Policy().V1().PodDisruptionBudgets(),
		cc.InformerFactory.Core().V1().ReplicationControllers(),
		cc.InformerFactory.Apps().V1().ReplicaSets(),
		cc.InformerFactory.Apps().V1().Deployments(),
		cc.InformerFactory.Apps().V1().StatefulSets(),
		client, cc.RESTMapper, scales, client.Discovery())
	return newWorkerLoop(name, c, cc.ComponentConfig.DisruptionController.ConcurrentDisruptionSyncs), nil
}
