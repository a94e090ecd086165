// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/kcm-dev/kcm/pkg/controller/cronjob"
	"github.com/kcm-dev/kcm/pkg/controller/job"
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

func newCronJobController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("cronjob-controller")
	if err != nil {
		return nil, err
	}
	c, err := cronjob.NewControllerV2(ctx, cc.InformerFactory.Batch().V1().Jobs(), cc.InformerFactory.Batch().V1().CronJobs(), client)
	if err != nil {
		return nil, fmt.Errorf("creating CronJob controller V2: %w", err)
	}
	return newWorkerLoop(name, c, cc.ComponentConfig.CronJobController.ConcurrentCronJobSyncs), nil
}

func newJobController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("job-controller")
	if err != nil {
		return nil, err
	}
	c, err := job.NewController(ctx, client, cc.InformerFactory.Core().V1().Pods(), cc.InformerFactory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the Job controller: %w", err)
	}
	return newWorkerLoop(name, c, cc.ComponentConfig.JobController.ConcurrentJobSyncs), nil
}
