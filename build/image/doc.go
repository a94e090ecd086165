// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image makes the product's container image, without a container engine: an OCI image index with one image per
// architecture, and a tar that docker load takes.
//
// An image holds the static binary, the certificates of public authorities and an /etc/passwd, in two layers, so that
// an update of the binary leaves the other layer alone. It runs as an ordinary user.
//
// Everything is a function of its inputs: files are dated 1970, and the image carries the date of the commit. The same
// binaries give the same digest, on any machine.
//
// The certificates are those of Mozilla's list as golang.org/x/crypto/x509roots/fallback packages it. A Go module is
// pinned by go.sum and updated like any other; a Debian package would make the image depend on the machine's.
package image
