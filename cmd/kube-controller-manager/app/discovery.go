// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/pkg/controller/endpoint"
	"github.com/kcm-dev/kcm/pkg/controller/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/endpointslicemirroring"
)

// newEndpointsController lets the API server's warnings go unheard: with each request it says that
// Endpoints are deprecated.
func newEndpointsController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	clientConfig, err := cc.ClientBuilder.Config("endpoint-controller")
	if err != nil {
		return nil, err
	}
	clientConfig = rest.CopyConfig(clientConfig)
	clientConfig.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := clientset.NewForConfig(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("creating the endpoints controller's client: %w", err)
	}
	config := cc.ComponentConfig.EndpointController
	c := endpoint.NewEndpointController(ctx,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Core().V1().Services(),
		cc.InformerFactory.Core().V1().Endpoints(),
		client,
		config.EndpointUpdatesBatchPeriod.Duration)
	return newWorkerLoop(name, c, config.ConcurrentEndpointSyncs), nil
}

func newEndpointSliceController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("endpointslice-controller")
	if err != nil {
		return nil, err
	}
	config := cc.ComponentConfig.EndpointSliceController
	c := endpointslice.NewController(ctx,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Core().V1().Services(),
		cc.InformerFactory.Core().V1().Nodes(),
		cc.InformerFactory.Discovery().V1().EndpointSlices(),
		config.MaxEndpointsPerSlice,
		client,
		config.EndpointUpdatesBatchPeriod.Duration)
	return newWorkerLoop(name, c, config.ConcurrentServiceEndpointSyncs), nil
}

func newEndpointSliceMirroringController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("endpointslicemirroring-controller")
	if err != nil {
		return nil, err
	}
	config := cc.ComponentConfig.EndpointSliceMirroringController
	c := endpointslicemirroring.NewController(ctx,
		cc.InformerFactory.Core().V1().Endpoints(),
		cc.InformerFactory.Discovery().V1().EndpointSlices(),
		cc.InformerFactory.Core().V1().Services(),
		config.MirroringMaxEndpointsPerSubset,
		client,
		config.MirroringEndpointUpdatesBatchPeriod.Duration)
	return newWorkerLoop(name, c, config.MirroringConcurrentServiceEndpointSyncs), nil
}
