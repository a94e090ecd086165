// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// readiness is the state behind /readyz. A standby is ready when it has seen who leads and its
// caches are warm: it could lead this moment. A leader is ready when its controllers are built and
// their caches filled.
type readiness struct {
	// mu guards the following fields.
	mu sync.Mutex
	// leader says that the election works: a holder of the lease has been seen.
	leader  bool
	warming bool
	caches  map[schema.GroupVersionResource]cache.InformerSynced
	// building counts the tenures that have begun but whose controllers are not built yet.
	building int
}

func (r *readiness) leaderSeen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = true
}

func (r *readiness) checkLeader(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leader {
		return errors.New("no process is known to lead yet")
	}
	return nil
}

func (r *readiness) warm(caches map[schema.GroupVersionResource]cache.InformerSynced) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warming, r.caches = true, caches
}

// build says that controllers are being built until the returned func is called.
func (r *readiness) build() (built func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.building++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.building--
	})
}

func (r *readiness) checkCaches(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warming {
		return errors.New("the informers have not been started yet")
	}
	for gvr, synced := range r.caches {
		if !synced() {
			return fmt.Errorf("the cache of %s has not filled yet", gvr.GroupResource())
		}
	}
	return nil
}

func (r *readiness) checkControllers(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.building > 0 {
		return errors.New("this process leads, but its controllers are still being built")
	}
	return nil
}
