// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/http"
	"time"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/controller"
)

// reporting is a controller that shows its workers, for health and for the debug pages.
type reporting interface {
	Workers() []worker.Reporter
}

// implementation returns what stands behind a Controller of this package: the value that the
// controller's own package exports.
func implementation(c Controller) any {
	if l, ok := c.(*controllerLoop); ok {
		return l.impl
	}
	return c
}

// workersOf returns the live records of a controller; nil when it shows none.
func workersOf(c Controller) []worker.Reporter {
	if r, ok := implementation(c).(reporting); ok {
		return r.Workers()
	}
	return nil
}

// checkController asks a controller for its own health, and for its workers'.
func checkController(r *http.Request, c Controller) error {
	now := time.Now()
	var errs []error
	for _, w := range workersOf(c) {
		errs = append(errs, w.Check(now))
	}
	if checkable, ok := implementation(c).(controller.HealthCheckable); ok {
		if checker := checkable.HealthChecker(); checker != nil {
			errs = append(errs, checker.Check(r))
		}
	}
	return errors.Join(errs...)
}

// debuggingHandlerOf returns the controller's own debug pages; nil when it has none.
func debuggingHandlerOf(c Controller) http.Handler {
	if debuggable, ok := implementation(c).(controller.Debuggable); ok {
		return debuggable.DebuggingHandler()
	}
	return nil
}
