// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import "context"

// controllerLoop gives a controller of pkg/controller, whose Run has upstream's signature, the
// shape of a Controller.
type controllerLoop struct {
	name string
	run  func(ctx context.Context)
	impl any
}

// newControllerLoop returns a Controller that calls run. impl is the controller itself: what more
// it can do (health, debug pages, live records) is found by its interfaces.
func newControllerLoop(name string, impl any, run func(ctx context.Context)) Controller {
	return &controllerLoop{name: name, run: run, impl: impl}
}

// workerController is a controller whose Run takes a number of workers, as most do.
type workerController interface {
	Run(ctx context.Context, workers int)
}

// newWorkerLoop returns a Controller that runs c with a fixed number of workers.
func newWorkerLoop[C workerController](name string, c C, workers int32) Controller {
	return newControllerLoop(name, c, func(ctx context.Context) { c.Run(ctx, int(workers)) })
}

func (l *controllerLoop) Name() string            { return l.name }
func (l *controllerLoop) Run(ctx context.Context) { l.run(ctx) }
