// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// reason is why a quota is counted.
type reason int

const (
	// recount: the resync period has passed, and nothing else.
	recount reason = iota + 1
	// event: the quota or something that it counts has changed.
	event
)

// memory holds why the quotas in the queues are to be counted, and what has been told of them.
type memory struct {
	// mu guards the following fields.
	mu      sync.Mutex
	reasons map[cache.ObjectName]reason
	unknown map[cache.ObjectName]string
	// raised is when admission last charged a quota; held since when a lower count is held back.
	raised, held map[cache.ObjectName]time.Time
}

func newMemory() *memory {
	return &memory{
		reasons: map[cache.ObjectName]reason{}, unknown: map[cache.ObjectName]string{},
		raised: map[cache.ObjectName]time.Time{}, held: map[cache.ObjectName]time.Time{},
	}
}

// mark notes why a quota is about to be queued. An event outweighs a recount.
func (m *memory) mark(key cache.ObjectName, why reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reasons[key] = max(m.reasons[key], why)
}

// take returns why a quota is counted, and forgets it. Without a mark it is a retry: an event.
func (m *memory) take(key cache.ObjectName) reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	why, ok := m.reasons[key]
	delete(m.reasons, key)
	if !ok {
		return event
	}
	return why
}

// told remembers what of a quota is told to be unknown, and returns whether that is news.
func (m *memory) told(key cache.ObjectName, names string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if names == "" {
		delete(m.unknown, key)
		return false
	}
	if m.unknown[key] == names {
		return false
	}
	m.unknown[key] = names
	return true
}

func (m *memory) forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reasons, key)
	delete(m.unknown, key)
	delete(m.raised, key)
	delete(m.held, key)
}

// charged notes that admission has charged a quota.
func (m *memory) charged(key cache.ObjectName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raised[key] = now
}

// hold returns for how long a lower count is to be held back, because admission has charged the quota
// just now; 0 for not at all. It is not held back for longer than longestHold in all.
func (m *memory) hold(key cache.ObjectName, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := settle - now.Sub(m.raised[key])
	since, held := m.held[key]
	if left <= 0 || held && now.Sub(since) > longestHold {
		delete(m.raised, key)
		delete(m.held, key)
		return 0
	}
	if !held {
		m.held[key] = now
	}
	return left
}

// release ends the holding back: the count is no longer lower.
func (m *memory) release(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, key)
}

// namesOf returns the names as one string, always the same for the same names.
func namesOf(unknown map[v1.ResourceName]string) string {
	var names []string
	for name := range unknown {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
