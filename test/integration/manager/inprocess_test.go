// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/inprocess"
)

func TestTwoManagersInOneProcess(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	ns := env.Namespace(t, "inprocess")
	first := inprocess.Start(t, env)
	env.WaitFor(t, "first manager to lead", timeout, func(ctx context.Context) (bool, error) {
		holder, err := env.Leader(ctx)
		return holder != "", err
	})
	holder, err := env.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inprocess.Start(t, env)
	deployments := env.Client.AppsV1().Deployments(ns)
	if _, err := deployments.Create(t.Context(), newDeployment("one", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "one", 2)
	first.TearDownFn()
	env.WaitFor(t, "second manager to lead", timeout, func(ctx context.Context) (bool, error) {
		now, err := env.Leader(ctx)
		return now != "" && now != holder, err
	})
	if _, err := deployments.Create(t.Context(), newDeployment("two", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "two", 2)
}
