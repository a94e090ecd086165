// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localup runs a Kubernetes control plane on this machine with a controller manager of choice, and leaves it
// running: `make up`, `make down`. docs/local-cluster.md is its manual.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal ends the start, and what was started with it; the second ends this command at once.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		printError(err)
		os.Exit(1)
	}
}

// printError prints one line per problem; lines that belong to the one above are indented, and stay so.
func printError(err error) {
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, " ") {
			line = "error: " + line
		}
		fmt.Fprintln(os.Stderr, strings.TrimRight(line, "\n"))
	}
}

func newCommand() *cobra.Command {
	var dataDir string
	root := &cobra.Command{
		Use:           "localup",
		Short:         "A local Kubernetes control plane with fake nodes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dataDir, "data-dir", defaultDataDir(),
		"folder of the cluster: data, certificates, logs; another folder is another cluster (also $KCM_DATA)")

	up := &upFlags{}
	upCmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or what has ended of it, and leave it running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withCluster(dataDir, cmd.OutOrStdout(), func(c *cluster) error { return c.up(cmd.Context(), up, cmd.Flags()) })
		},
	}
	up.add(upCmd.Flags())

	purge := false
	downCmd := &cobra.Command{
		Use:   "down",
		Short: "Stop what up has started; its data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withCluster(dataDir, cmd.OutOrStdout(), func(c *cluster) error { return c.down(purge) })
		},
	}
	downCmd.Flags().BoolVar(&purge, "purge", false, "remove the cluster's data, certificates and logs, too")

	statusCmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStatus(dataDir, cmd.OutOrStdout())
		},
	}
	root.AddCommand(upCmd, downCmd, statusCmd)
	return root
}

func defaultDataDir() string {
	if dir := os.Getenv("KCM_DATA"); dir != "" {
		return dir
	}
	return homeDataDir()
}

// homeDataDir is outside the checkout, so that cleaning the checkout loses no cluster.
func homeDataDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "kcm-local")
	}
	return filepath.Join(home, ".local", "share", "kcm", "local")
}
