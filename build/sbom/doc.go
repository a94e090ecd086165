// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom writes down what a release is made of, as an SPDX 2.3 document: the Go modules that are in its binaries,
// as the binaries themselves say, and which of them requires which, as go mod graph says.
//
// The document is a function of its inputs: it is dated as the commit, and sorted.
package sbom
