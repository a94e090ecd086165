// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller defines what a controller manager asks of a controller: a name, and if the controller likes, a
// health check and a page for debugging.
package controller

import (
	"net/http"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/healthz"
)

// Interface is the least that a controller is.
type Interface interface {
	// Name is the canonical name.
	Name() string
}

// Debuggable is a controller with a page for debugging.
type Debuggable interface {
	// DebuggingHandler serves what is below /debug/controllers/<name>/; nil for nothing.
	DebuggingHandler() http.Handler
}

// HealthCheckable is a controller that knows whether it is well.
type HealthCheckable interface {
	// HealthChecker is served under the controller's name by the manager's health endpoints; nil if there is nothing
	// to check, which counts as healthy.
	HealthChecker() healthz.UnnamedHealthChecker
}
