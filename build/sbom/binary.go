// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
)

// ReadBinary reads what a Go program says of itself, and its checksums. SPDX asks for SHA-1 of every file.
func ReadBinary(path string) (Binary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Binary{}, fmt.Errorf("reading the binary: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return Binary{}, fmt.Errorf("%s does not name its modules: %w", path, err)
	}
	if info.Main.Path == "" {
		return Binary{}, fmt.Errorf("%s does not name its modules: build it with go build", path)
	}
	weak, strong := sha1.Sum(data), sha256.Sum256(data)
	return Binary{Path: path, Info: info, SHA1: hex.EncodeToString(weak[:]), SHA256: hex.EncodeToString(strong[:])}, nil
}
