// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"net/http"
	"sync"
	"time"
)

// HealthzAdaptor is a health check on an election, made before the election is: until then it passes.
type HealthzAdaptor struct {
	timeout time.Duration

	// mu guards elector.
	mu      sync.Mutex
	elector *LeaderElector
}

// NewLeaderHealthzAdaptor makes a check that fails once a leader has gone on for timeout past the end of its lease.
// Core components use 20s.
func NewLeaderHealthzAdaptor(timeout time.Duration) *HealthzAdaptor {
	return &HealthzAdaptor{timeout: timeout}
}

// Name is how the check appears on /healthz.
func (*HealthzAdaptor) Name() string { return "leaderElection" }

// Check implements a health check of k8s.io/apiserver.
func (h *HealthzAdaptor) Check(*http.Request) error {
	h.mu.Lock()
	elector := h.elector
	h.mu.Unlock()
	if elector == nil {
		return nil
	}
	return elector.Check(h.timeout)
}

// SetLeaderElection says which election to check. NewLeaderElector calls it for its WatchDog.
func (h *HealthzAdaptor) SetLeaderElection(elector *LeaderElector) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.elector = elector
}
