// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package healthz

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/server/healthz"
)

// Paths are where a MutableHealthzHandler answers, each with all checks and with one check per sub-path.
var paths = []string{"/healthz", "/livez", "/readyz"}

// UnnamedHealthChecker is a health check that gets its name from whoever mounts it.
type UnnamedHealthChecker interface {
	// Check returns an error if what it checks is not healthy.
	Check(req *http.Request) error
}

// NamedHealthChecker gives a check its name.
func NamedHealthChecker(name string, check UnnamedHealthChecker) healthz.HealthChecker {
	return healthz.NamedCheck(name, check.Check)
}

// NamedPingChecker is a check that always passes.
func NamedPingChecker(name string) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error { return nil })
}

// MutableHealthzHandler serves health checks on /healthz, /livez and /readyz, and each check alone on
// /healthz/<name> and so on. It understands ?verbose and ?exclude=<name> as API servers do. Checks may be added while
// it serves; a request sees the checks of the moment it arrives.
type MutableHealthzHandler struct {
	// serving is the handler of the present checks.
	serving atomic.Pointer[http.ServeMux]

	// mu guards checks.
	mu     sync.Mutex
	checks []healthz.HealthChecker
}

// NewMutableHealthzHandler makes a handler with some checks to start with; without any it answers ok.
func NewMutableHealthzHandler(checks ...healthz.HealthChecker) *MutableHealthzHandler {
	h := &MutableHealthzHandler{}
	h.AddHealthChecker(checks...)
	return h
}

// AddHealthChecker adds checks. One whose name is taken replaces the earlier one.
func (h *MutableHealthzHandler) AddHealthChecker(checks ...healthz.HealthChecker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, check := range checks {
		same := func(c healthz.HealthChecker) bool { return c.Name() == check.Name() }
		if i := slices.IndexFunc(h.checks, same); i >= 0 {
			h.checks[i] = check
		} else {
			h.checks = append(h.checks, check)
		}
	}
	mux := http.NewServeMux()
	for _, path := range paths {
		healthz.InstallPathHandler(mux, path, h.checks...)
	}
	h.serving.Store(mux)
}

// ServeHTTP implements http.Handler.
func (h *MutableHealthzHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.serving.Load().ServeHTTP(w, req)
}
