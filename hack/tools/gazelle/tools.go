// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the program that writes the BUILD files.
package tools

import _ "github.com/bazelbuild/bazel-gazelle/cmd/gazelle"
