// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Options say what goes into the image.
type Options struct {
	// Binaries are the paths of kube-controller-manager by architecture (amd64, arm64). At least one.
	Binaries map[string]string
	Version  Version
}

// Index returns the image index: one image per binary, sorted by architecture.
func Index(o Options) (v1.ImageIndex, error) {
	if len(o.Binaries) == 0 {
		return nil, errors.New("no binary is given")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	base, err := layer(baseFiles())
	if err != nil {
		return nil, err
	}
	for _, architecture := range slices.Sorted(maps.Keys(o.Binaries)) {
		img, err := platformImage(o, architecture, base)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return mutate.Annotations(index, labels(o.Version)).(v1.ImageIndex), nil
}

func platformImage(o Options, architecture string, base v1.Layer) (v1.Image, error) {
	files, err := binaryFiles(o.Binaries[architecture], architecture)
	if err != nil {
		return nil, err
	}
	binary, err := layer(files)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: o.Version.Date}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: architecture,
		OS:           "linux",
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", user, user),
			Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/" + certificatesPath},
			Entrypoint: []string{"/" + binaryPath},
			WorkingDir: "/",
			Labels:     labels(o.Version),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the image for %s: %w", architecture, err)
	}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "/" + passwdPath + " /" + certificatesPath}},
		mutate.Addendum{Layer: binary, History: v1.History{Created: created, CreatedBy: "/" + binaryPath}},
	)
	if err != nil {
		return nil, fmt.Errorf("adding the layers for %s: %w", architecture, err)
	}
	return img, nil
}

// labels are the names that the OCI image specification has for them; the index carries the same as annotations.
func labels(v Version) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "kube-controller-manager",
		"org.opencontainers.image.description": "A drop-in kube-controller-manager for Kubernetes",
		"org.opencontainers.image.source":      "https://github.com/kcm-dev/kcm",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     v.Version,
		"org.opencontainers.image.created":     v.Date.Format(time.RFC3339),
	}
	if v.Commit != "" {
		l["org.opencontainers.image.revision"] = v.Commit
	}
	return l
}
