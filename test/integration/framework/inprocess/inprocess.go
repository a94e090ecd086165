// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inprocess runs our whole manager inside a test's process: for tests
// that want its coverage, its race detector or several managers without the
// cost of processes. It is apart from package framework, since whatever imports
// it links every controller.
package inprocess

import (
	"context"
	"slices"
	"strings"
	"testing"

	apptesting "github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/testing"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

// Start starts a manager with the control plane's kubeadm-style flags and args
// after them, on a port of its own, and returns when it is healthy. It is
// stopped at the end of the test, which fails if any goroutine of it is left.
func Start(t *testing.T, env *framework.Env, args ...string) *apptesting.TestServer {
	t.Helper()
	framework.CheckGoroutines(t)
	flags := slices.DeleteFunc(env.ControlPlane.ManagerArgs(), func(arg string) bool {
		return strings.HasPrefix(arg, "--secure-port=") // StartTestServer picks a free one
	})
	server := apptesting.StartTestServerOrDie(t, context.WithoutCancel(t.Context()), append(flags, args...))
	t.Cleanup(server.TearDownFn)
	return server
}
