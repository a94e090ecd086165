// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"slices"
	"strings"
	"sync"

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
}

func newMemory() *memory {
	return &memory{reasons: map[cache.ObjectName]reason{}, unknown: map[cache.ObjectName]string{}}
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
