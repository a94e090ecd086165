// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package differential

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/scenarios"
)

// scenarioTimeout bounds one scenario, a slow machine's included.
const scenarioTimeout = 5 * time.Minute

// TestDifferential plays every scenario against both managers.
func TestDifferential(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := LoadAccepted()
	if err != nil {
		t.Fatal(err)
	}
	b, err := suite.binaries()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range s.Controllers {
				if !slices.Contains(b.controllers, name) {
					t.Skipf("kcm does not have %s yet", name)
				}
			}
			pair := suite.pair(t, s.Flags)
			ctx, cancel := context.WithTimeout(t.Context(), scenarioTimeout)
			defer cancel()
			if err := pair.Play(ctx, s, s.Name, accepted); err != nil {
				t.Error(err)
			}
			pair.clear(t, s.Name)
		})
	}
}

// clear ends what a scenario has left, so that it does not disturb the others. Its namespace goes in its own time.
func (p *Pair) clear(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	err := p.each(ctx, func(ctx context.Context, side *Side) error {
		if err := side.Release(namespace); err != nil {
			return err
		}
		if err := side.Clear(ctx, namespace); err != nil {
			return err
		}
		return side.Client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	})
	if err != nil {
		t.Logf("clearing up: %v", err)
	}
}
