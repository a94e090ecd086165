// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/kcm-dev/kcm/build/image"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check LAYOUT",
		Short: "Fail unless the OCI layout holds the image as it should be",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			index, _, err := image.ReadLayout(args[0])
			if err != nil {
				return err
			}
			return image.Check(index)
		},
	}
}

func newExtractCommand() *cobra.Command {
	var architecture string
	cmd := &cobra.Command{
		Use:   "extract LAYOUT FOLDER",
		Short: "Unpack the files of one architecture's image",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			index, _, err := image.ReadLayout(args[0])
			if err != nil {
				return err
			}
			img, err := image.ForPlatform(index, architecture)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[1], 0o755); err != nil {
				return fmt.Errorf("making the folder: %w", err)
			}
			_, err = image.Extract(img, args[1])
			return err
		},
	}
	cmd.Flags().StringVar(&architecture, "architecture", "amd64", "the image's architecture")
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
