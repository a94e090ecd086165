// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what a user of a cluster sees of its controllers, through the public API alone. The cluster is any:
// a local one with fake nodes, kind, or a real one; its controller manager is any, upstream's too.
//
// hack/e2e.sh runs it. KCM_E2E_KUBECONFIG names the cluster's kubeconfig, of an administrator; without it the suite is
// skipped, and never takes the user's own KUBECONFIG for a test cluster. KCM_E2E_IMAGE is the image of the pods.
//
// Every spec has a namespace of its own, which goes with it, and the label of its controller:
//
//	hack/e2e.sh --label-filter 'deployment-controller && !slow'
package e2e
