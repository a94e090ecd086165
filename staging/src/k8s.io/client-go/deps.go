// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build deps

package clientgo

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "go.uber.org/goleak"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/metadata/metadatainformer"
	_ "k8s.io/client-go/metadata/fake"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/client-go/scale"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
	_ "k8s.io/component-base/metrics/testutil"
)
