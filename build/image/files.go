// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Where things are in the image. The binary is where upstream's image has it, and thus where kubeadm's static pod finds it.
const (
	binaryPath       = "usr/local/bin/kube-controller-manager"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	passwdPath       = "etc/passwd"
)

// user and its group are the image's default: the "nonroot" of other small images.
const user = 65532

var passwd = fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", user, user)

// file is one file of a layer; the folders above it are added.
type file struct {
	path string
	mode int64
	data []byte
}

// baseFiles are those that do not change with the product.
func baseFiles() []file {
	return []file{
		{path: passwdPath, mode: 0o644, data: []byte(passwd)},
		{path: certificatesPath, mode: 0o644, data: certificates()},
	}
}

// binaryFiles reads the binary, after a look at whether it is one that the image can run.
func binaryFiles(binary, architecture string) ([]file, error) {
	if err := checkBinary(binary, architecture); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the binary: %w", err)
	}
	return []file{{path: binaryPath, mode: 0o755, data: data}}, nil
}

// certificates returns the authorities in PEM. A root that Mozilla trusts only for certificates issued before some date
// is left out: a PEM file cannot say so, and would trust it for good.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return out.Bytes()
}

// layer packs files, sorted as given, with the folders above them.
func layer(files []file) (v1.Layer, error) {
	data, err := pack(files)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	// Compressed once, not at every look at the digest.
	l, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return l, nil
}

func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	folders := map[string]bool{".": true}
	var addFolder func(string) error
	addFolder = func(name string) error {
		if folders[name] {
			return nil
		}
		if err := addFolder(path.Dir(name)); err != nil {
			return err
		}
		folders[name] = true
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	}
	for _, f := range files {
		if err := addFolder(path.Dir(f.path)); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing files: %w", err)
	}
	return out.Bytes(), nil
}
