// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image makes, checks, runs and pushes the product's container image. hack/build-image.sh, hack/check-image.sh,
// hack/push-image.sh and //build:image call it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "image",
		Short:         "The container image of kube-controller-manager",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newBuildCommand(), newCheckCommand(), newRunCommand(), newPushCommand())
	return root
}
