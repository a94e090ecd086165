// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the peers that hack/tools builds.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
