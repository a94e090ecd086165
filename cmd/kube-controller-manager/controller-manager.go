// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube-controller-manager runs the Kubernetes control loops.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // Time zones of CronJobs, in images without a zone database.

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_*, workqueue_*, informer_* metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
)

func main() {
	command := app.NewControllerManagerCommand()
	command.SetContext(untilSignal())
	os.Exit(cli.Run(command))
}

// untilSignal returns a context that is done at the first SIGTERM or SIGINT: the manager then
// stops its controllers and gives its lease back. A second signal ends the process at once.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(1)
	}()
	return ctx
}
