// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/kcm-dev/kcm/pkg/controller/ttlafterfinished"
)

func newTTLAfterFinishedController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("ttl-after-finished-controller")
	if err != nil {
		return nil, err
	}
	c := ttlafterfinished.New(ctx, cc.InformerFactory.Batch().V1().Jobs(), client)
	return newWorkerLoop(name, c, cc.ComponentConfig.TTLAfterFinishedController.ConcurrentTTLSyncs), nil
}
