// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/clientbuilder"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// serviceAccountNamespace is where the controllers' service accounts live.
const serviceAccountNamespace = "kube-system"

// clientBuilders make the clients of the controllers that run under one lease.
type clientBuilders struct {
	// gate is what the requests of all their clients pass.
	gate *gate.Gate
	// root uses the manager's own credentials.
	root clientbuilder.ControllerClientBuilder
	// controllers uses each controller's service account; it is root without
	// --use-service-account-credentials.
	controllers clientbuilder.ControllerClientBuilder
}

// createClients makes the client builders. Every client they hand out sends its requests through
// a gate that refuses writes while fence is closed. ctx ends the renewal of tokens.
func createClients(ctx context.Context, c *config.CompletedConfig, fence *gate.Fence) (clientBuilders, error) {
	kubeconfig := rest.CopyConfig(c.Kubeconfig)
	if !c.ClientLimitsGiven {
		// Without limits of the user's the gate goes by what the API server answers.
		kubeconfig.QPS, kubeconfig.Burst, kubeconfig.RateLimiter = -1, 0, nil
	}
	passage := gate.New(fence)
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: kubeconfig, Gate: passage}
	if !c.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials {
		return clientBuilders{gate: passage, root: root, controllers: root}, nil
	}
	client, err := root.Client("service-account-credentials")
	if err != nil {
		return clientBuilders{}, fmt.Errorf("creating the client that gets the controllers' credentials: %w", err)
	}
	controllers := clientbuilder.NewDynamicClientBuilder(ctx, rest.AnonymousClientConfig(kubeconfig), client.CoreV1(), serviceAccountNamespace, passage)
	return clientBuilders{gate: passage, root: root, controllers: controllers}, nil
}
