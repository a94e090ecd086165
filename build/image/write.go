// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteLayout writes the index into an OCI layout at dir, which must not exist or be empty, under the name ref.
func WriteLayout(dir string, index v1.ImageIndex, ref name.Tag) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder", dir)
	}
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the OCI layout %s: %w", dir, err)
	}
	// Which name is in use depends on the reader: the first is the specification's, the second containerd's.
	annotations := map[string]string{
		"org.opencontainers.image.ref.name": ref.TagStr(),
		"io.containerd.image.name":          ref.Name(),
	}
	if err := l.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return fmt.Errorf("writing the OCI layout %s: %w", dir, err)
	}
	return nil
}

// ReadLayout returns the one index of the OCI layout at dir, and its name if it has one.
func ReadLayout(dir string) (v1.ImageIndex, string, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, "", fmt.Errorf("reading the OCI layout %s: %w", dir, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, "", fmt.Errorf("reading the OCI layout %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, "", fmt.Errorf("the OCI layout %s holds not just one image index", dir)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, "", fmt.Errorf("reading the OCI layout %s: %w", dir, err)
	}
	return index, manifest.Manifests[0].Annotations["io.containerd.image.name"], nil
}

// ForPlatform returns the index' image for an architecture.
func ForPlatform(index v1.ImageIndex, architecture string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	matches := match.Platforms(v1.Platform{OS: "linux", Architecture: architecture})
	for _, descriptor := range manifest.Manifests {
		if matches(descriptor) {
			return index.Image(descriptor.Digest)
		}
	}
	return nil, fmt.Errorf("the index has no image for linux/%s", architecture)
}

// WriteDockerTar writes what docker load takes: the image of one architecture, as docker has no name for an index.
func WriteDockerTar(file string, index v1.ImageIndex, architecture string, ref name.Tag) error {
	img, err := ForPlatform(index, architecture)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(file, ref, img); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// WriteLayoutTar packs an OCI layout into one file (an "oci-archive"), the same bytes for the same layout.
func WriteLayoutTar(file, dir string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	defer func() {
		err = errors.Join(err, out.Close())
	}()
	w := tar.NewWriter(out)
	// WalkDir goes by name: the order is fixed.
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return addToTar(w, dir, path, entry)
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

func addToTar(w *tar.Writer, dir, path string, entry fs.DirEntry) error {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(relative), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if entry.IsDir() {
		header.Typeflag, header.Mode = tar.TypeDir, 0o755
		header.Name += "/"
		return w.WriteHeader(header)
	}
	// Opened, not looked at by its entry: in Bazel's sandbox it may be a symbolic link.
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Mode, header.Size = tar.TypeReg, 0o644, info.Size()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
