// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/kcm-dev/kcm/pkg/controller/certificates/rootcacertpublisher"
)

func newRootCACertificatePublisherController(_ context.Context, cc ControllerContext, name string) (Controller, error) {
	const user = "root-ca-cert-publisher"
	client, err := cc.ClientBuilder.Client(user)
	if err != nil {
		return nil, err
	}
	rootCA, err := rootCA(cc, cc.ClientBuilder, user)
	if err != nil {
		return nil, err
	}
	c, err := rootcacertpublisher.NewPublisher(
		cc.InformerFactory.Core().V1().ConfigMaps(),
		cc.InformerFactory.Core().V1().Namespaces(),
		client, rootCA)
	if err != nil {
		return nil, fmt.Errorf("error creating root CA certificate publisher: %w", err)
	}
	return newWorkerLoop(name, c, 1), nil
}
