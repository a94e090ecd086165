// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"testing"

	"k8s.io/klog/v2"
)

func klogContext(t *testing.T, logger klog.Logger) context.Context {
	t.Helper()
	return klog.NewContext(t.Context(), logger)
}
