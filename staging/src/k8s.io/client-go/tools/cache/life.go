// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"sync"
	"time"
)

// life is what a reflector tells of itself.
type life struct {
	// mu guards the following fields.
	mu      sync.Mutex
	started time.Time
	// open is when the present watch was opened; zero while none is.
	open time.Time
	// last is when anything came: an event, a bookmark, a list, an opened watch.
	last time.Time
	// broken is since when there has been no watch; zero while one is open.
	broken  time.Time
	lastErr error
	lists   map[reason]int
	watches int
	events  int64
}

func (l *life) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = time.Now()
	l.broken = l.started
}

func (l *life) opened() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = time.Now()
	l.last = l.open
	l.broken = time.Time{}
	l.watches++
}

func (l *life) listed(why reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists == nil {
		l.lists = map[reason]int{}
	}
	l.lists[why]++
	l.last = time.Now()
}

func (l *life) seen(events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	l.events += int64(events)
}

func (l *life) ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = time.Time{}
	if l.broken.IsZero() {
		l.broken = time.Now()
	}
	if !ordinary(err) {
		l.lastErr = err
	}
}

// copy returns the fields, without the lock.
func (l *life) copy() *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &life{
		started: l.started, open: l.open, last: l.last, broken: l.broken,
		lastErr: l.lastErr, lists: maps.Clone(l.lists), watches: l.watches, events: l.events,
	}
}
