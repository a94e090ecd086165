// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// minCertificates is far below what Mozilla trusts, and far above a broken bundle.
const minCertificates = 80

// Check returns what is wrong with an image index: digests, platforms, configuration, and the files, of which there may
// be no other than the three that belong there. An index that contradicts itself is not looked into any further. The
// architectures are those that the index should have, sorted.
func Check(index v1.ImageIndex, architectures ...string) error {
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("the index is inconsistent: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the index: %w", err)
	}
	var errs []error
	var platforms []string
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform == nil {
			errs = append(errs, fmt.Errorf("image %s has no platform", descriptor.Digest))
			continue
		}
		platforms = append(platforms, descriptor.Platform.String())
		img, err := index.Image(descriptor.Digest)
		if err == nil {
			err = errors.Join(checkConfig(img), checkFiles(img, descriptor.Platform.Architecture))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", descriptor.Platform, err))
		}
	}
	var want []string
	for _, architecture := range architectures {
		want = append(want, "linux/"+architecture)
	}
	if !slices.Equal(platforms, want) {
		errs = append(errs, fmt.Errorf("the platforms are %v, want %v", platforms, want))
	}
	return errors.Join(errs...)
}

func checkConfig(img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var errs []error
	for _, c := range []struct{ what, got, want string }{
		{"user", config.Config.User, fmt.Sprintf("%d:%d", user, user)},
		{"entrypoint", strings.Join(config.Config.Entrypoint, " "), "/" + binaryPath},
		{"command", strings.Join(config.Config.Cmd, " "), ""},
		{"title", config.Config.Labels["org.opencontainers.image.title"], "kube-controller-manager"},
	} {
		if c.got != c.want {
			errs = append(errs, fmt.Errorf("the %s is %q, want %q", c.what, c.got, c.want))
		}
	}
	// kubeadm's static pod names the program without its folder.
	if !slices.Contains(config.Config.Env, "PATH="+path.Dir("/"+binaryPath)) {
		errs = append(errs, fmt.Errorf("PATH does not find the binary: %v", config.Config.Env))
	}
	for _, label := range []string{"version", "created", "source", "licenses"} {
		if config.Config.Labels["org.opencontainers.image."+label] == "" {
			errs = append(errs, fmt.Errorf("the label org.opencontainers.image.%s is missing", label))
		}
	}
	return errors.Join(errs...)
}

func checkFiles(img v1.Image, architecture string) error {
	dir, err := os.MkdirTemp("", "kcm-image-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	modes, err := Extract(img, dir)
	if err != nil {
		return err
	}
	var errs []error
	want := map[string]os.FileMode{binaryPath: 0o755, certificatesPath: 0o644, passwdPath: 0o644}
	if !maps.Equal(modes, want) {
		errs = append(errs, fmt.Errorf("the files and their modes are %v, want %v", modes, want))
	}
	if err := checkBinary(filepath.Join(dir, binaryPath), architecture); err != nil {
		errs = append(errs, err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, certificatesPath))
	if err != nil {
		errs = append(errs, err)
	} else if n := bytes.Count(pem, []byte("BEGIN CERTIFICATE")); n < minCertificates || !x509.NewCertPool().AppendCertsFromPEM(pem) {
		errs = append(errs, fmt.Errorf("%s has %d certificates, or ones that cannot be read; want at least %d", certificatesPath, n, minCertificates))
	}
	return errors.Join(errs...)
}

// Extract unpacks the image into dir, and returns the modes of its files. Folders are not in the result. Anything that
// is neither file nor folder is an error, and so is a path that leads out of dir.
func Extract(img v1.Image, dir string) (map[string]os.FileMode, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	defer root.Close()
	stream := mutate.Extract(img)
	defer stream.Close()
	modes := map[string]os.FileMode{}
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return modes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
		name := strings.TrimSuffix(header.Name, "/")
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			modes[name] = header.FileInfo().Mode()
			err = writeFile(root, name, header.FileInfo().Mode().Perm(), r)
		default:
			err = fmt.Errorf("it is of type %q", header.Typeflag)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func writeFile(root *os.Root, name string, mode os.FileMode, data io.Reader) error {
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, data)
	return errors.Join(err, out.Close())
}
