// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build deps

package controllermanager

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "go.uber.org/goleak"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/apiserver/pkg/server/options"
	_ "k8s.io/apiserver/pkg/quota/v1"
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
	_ "k8s.io/apiserver/pkg/server/flagz"
	_ "k8s.io/apiserver/pkg/server/statusz"
	_ "k8s.io/controller-manager/config/v1alpha1"
	_ "k8s.io/controller-manager/pkg/leadermigration/config"
)
