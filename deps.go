// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build deps

package deps

import (
	_ "github.com/go-jose/go-jose/v4/jwt"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "github.com/robfig/cron/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/pflag"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/apiserver/pkg/server/options"
	_ "k8s.io/apiserver/pkg/quota/v1"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/metadata/metadatainformer"
	_ "k8s.io/client-go/metadata/fake"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/client-go/scale"
	_ "k8s.io/cluster-bootstrap/token/api"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
	_ "k8s.io/component-base/metrics/testutil"
	_ "k8s.io/apiserver/pkg/server/flagz"
	_ "k8s.io/apiserver/pkg/server/statusz"
	_ "k8s.io/component-helpers/apps/poddisruptionbudget"
	_ "k8s.io/controller-manager/config/v1alpha1"
	_ "k8s.io/controller-manager/pkg/leadermigration/config"
	_ "k8s.io/csi-translation-lib"
	_ "k8s.io/dynamic-resource-allocation/structured"
	_ "k8s.io/endpointslice"
	_ "k8s.io/kube-controller-manager/config/v1alpha1"
	_ "k8s.io/metrics/pkg/client/clientset/versioned"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/yaml"
)
