// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the linters that hack/verify-*.sh run.
package tools

import _ "honnef.co/go/tools/cmd/staticcheck"
