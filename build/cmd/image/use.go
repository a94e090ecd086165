// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/kcm-dev/kcm/build/image"
)

// runTimeout is how long a binary may take to be healthy, on a machine that has much else to do.
const runTimeout = 2 * time.Minute

func newCheckCommand() *cobra.Command {
	var architectures []string
	cmd := &cobra.Command{
		Use:   "check LAYOUT",
		Short: "Fail unless the OCI layout holds the image as it should be",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			index, _, err := image.ReadLayout(args[0])
			if err != nil {
				return err
			}
			return image.Check(index, architectures...)
		},
	}
	cmd.Flags().StringSliceVar(&architectures, "architectures", []string{"amd64", "arm64"}, "what the image is for, sorted")
	return cmd
}

func newRunCommand() *cobra.Command {
	var isolate bool
	cmd := &cobra.Command{
		Use:   "run LAYOUT",
		Short: "Start the image's binary for this machine, and end it when it answers /healthz",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			index, _, err := image.ReadLayout(args[0])
			if err != nil {
				return err
			}
			img, err := image.ForPlatform(index, runtime.GOARCH)
			if err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "kcm-image-")
			if err != nil {
				return fmt.Errorf("making a folder: %w", err)
			}
			defer os.RemoveAll(dir)
			ctx, cancel := context.WithTimeout(cmd.Context(), runTimeout)
			defer cancel()
			answer, err := image.Run(ctx, img, dir, isolate)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the binary of the image answers /healthz with %q\n", answer)
			return nil
		},
	}
	cmd.Flags().BoolVar(&isolate, "isolate", false, "with nothing but the image's files, as the image's user; takes Linux and root")
	return cmd
}

func newPushCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "push LAYOUT REGISTRY[/PATH]",
		Short: "Push the image, with the name and tag that it has in the layout; print its name and digest",
		Long: "Push the image, with the name and tag that it has in the layout; print its name and digest.\n" +
			"Credentials are taken from where docker login and podman login put them.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			index, from, err := image.ReadLayout(args[0])
			if err != nil {
				return err
			}
			ref, err := target(from, args[1])
			if err != nil {
				return err
			}
			pushed, err := image.Push(cmd.Context(), index, ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), pushed)
			return nil
		},
	}
}

// target is the last part of the image's name, and its tag, in another registry.
func target(from, registry string) (name.Tag, error) {
	ref, err := name.NewTag(from)
	if err != nil {
		return name.Tag{}, fmt.Errorf("the layout's image has the name %q: %w", from, err)
	}
	to, err := name.NewTag(strings.TrimSuffix(registry, "/") + "/" + path.Base(ref.RepositoryStr()) + ":" + ref.TagStr())
	if err != nil {
		return name.Tag{}, fmt.Errorf("registry %q: %w", registry, err)
	}
	return to, nil
}
