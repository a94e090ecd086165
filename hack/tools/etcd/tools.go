// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the peers that hack/tools builds.
package tools

import _ "go.etcd.io/etcd/server/v3"
