// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const kubeconfigVariable = "KCM_E2E_KUBECONFIG"

// Labels that are no controller's name.
const (
	// labelSlow marks specs that wait for a timeout of a controller's.
	labelSlow = "slow"
	// labelLeaderElection marks specs of the manager itself.
	labelLeaderElection = "leader-election"
)

// specTimeout is how long a spec may take in all. A real node may have to pull an image first.
const specTimeout = SpecTimeout(5 * time.Minute)

func TestE2E(t *testing.T) {
	if os.Getenv(kubeconfigVariable) == "" {
		t.Skipf("%s names no cluster: hack/e2e.sh starts one", kubeconfigVariable)
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultConsistentlyDuration(2 * time.Second)
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "kube-controller-manager")
}
