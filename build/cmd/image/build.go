// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/kcm-dev/kcm/build/image"
)

// defaultRepository is where the image is looked for when nobody has said otherwise.
const defaultRepository = "ghcr.io/kcm-dev/kube-controller-manager"

type buildFlags struct {
	binaries   map[string]string
	dockerTars map[string]string
	statusFile string
	repository string
	layout     string
	layoutTar  string
}

func newBuildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make the image as an OCI layout, and as tars for docker load; print name and digest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return build(cmd, f)
		},
	}
	cmd.Flags().StringToStringVar(&f.binaries, "binary", nil, "ARCHITECTURE=PATH of a static binary; may be repeated")
	cmd.Flags().StringVar(&f.statusFile, "status-file", "", "file with the version, as build/bazel/status.sh prints it")
	cmd.Flags().StringVar(&f.repository, "repository", defaultRepository, "name of the image, without tag")
	cmd.Flags().StringVar(&f.layout, "layout", "", "folder to write the OCI layout to")
	cmd.Flags().StringVar(&f.layoutTar, "layout-tar", "", "file to write the OCI layout to as a tar (optional)")
	cmd.Flags().StringToStringVar(&f.dockerTars, "docker-tar", nil, "ARCHITECTURE=FILE to write for docker load; may be repeated (optional)")
	for _, name := range []string{"binary", "status-file", "layout"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func build(cmd *cobra.Command, f buildFlags) error {
	status, err := os.ReadFile(f.statusFile)
	if err != nil {
		return fmt.Errorf("--status-file: %w", err)
	}
	version, err := image.ParseStatus(string(status))
	if err != nil {
		return fmt.Errorf("--status-file %s: %w", f.statusFile, err)
	}
	ref, err := tag(f.repository, version.Tag())
	if err != nil {
		return err
	}
	index, err := image.Index(image.Options{Binaries: f.binaries, Version: version})
	if err != nil {
		return err
	}
	if err := image.WriteLayout(f.layout, index, ref); err != nil {
		return err
	}
	if f.layoutTar != "" {
		if err := image.WriteLayoutTar(f.layoutTar, f.layout); err != nil {
			return err
		}
	}
	for architecture, file := range f.dockerTars {
		if err := image.WriteDockerTar(file, index, architecture, ref); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("reading the index: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s@%s\n", ref, digest)
	return nil
}

// tag puts an image's name together.
func tag(repository, version string) (name.Tag, error) {
	repo, err := name.NewRepository(repository)
	if err != nil {
		return name.Tag{}, fmt.Errorf("--repository %q: %w", repository, err)
	}
	ref, err := name.NewTag(repo.Name() + ":" + version)
	if err != nil {
		return name.Tag{}, fmt.Errorf("tag %q: %w", version, err)
	}
	return ref, nil
}
