// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"time"
)

const (
	// brokenTooLong is how long an informer may be without a watch before it is unhealthy.
	brokenTooLong = 2 * time.Minute
	// silentTooLong is how long nothing may come from an open watch. The server ends each watch
	// within ten minutes, and the next one's opening counts as a sign of life.
	silentTooLong = 2*minWatchTimeout + 2*time.Minute
)

// Status is what an informer is doing.
type Status struct {
	Resource string `json:"resource"`
	Running  bool   `json:"running"`
	Synced   bool   `json:"synced"`
	Objects  int    `json:"objects"`
	// Bytes is about what the objects take in memory; zero when the source does not know.
	Bytes           int64  `json:"bytes"`
	ResourceVersion string `json:"resourceVersion"`
	Indexes         int    `json:"indexes"`
	// Watching is since when the present watch is open; nil while there is none.
	Watching *time.Time `json:"watching,omitempty"`
	// LastSign is when something came from the server: an event, a bookmark, a list.
	LastSign *time.Time `json:"lastSign,omitempty"`
	Events   int64      `json:"events"`
	Watches  int        `json:"watches"`
	// Lists counts why everything was listed.
	Lists map[string]int `json:"lists,omitempty"`
	// LastError is why a watch or list last failed, even if all is well again.
	LastError string          `json:"lastError,omitempty"`
	Handlers  []HandlerStatus `json:"handlers,omitempty"`
	// Unhealthy is what Check says; empty when all is well.
	Unhealthy string `json:"unhealthy,omitempty"`
}

// HandlerStatus is how a handler fares.
type HandlerStatus struct {
	Name   string `json:"name"`
	Synced bool   `json:"synced"`
	// Told counts the notifications.
	Told int64 `json:"told"`
	// Waiting is about how many objects the handler has yet to be told of.
	Waiting int `json:"waiting"`
	// BusySince is since when it has been at the present few notifications; nil while it is idle.
	BusySince *time.Time `json:"busySince,omitempty"`
}

// Status returns what the informer is doing.
func (i *Informer) Status(now time.Time) Status {
	life, snap := i.life.copy(), i.store.snapshot()
	i.mu.Lock()
	running := i.running != nil && !i.stopped
	listeners := append([]*listener(nil), i.listeners...)
	i.mu.Unlock()

	s := Status{
		Resource:        i.description,
		Running:         running,
		Synced:          i.HasSynced(),
		Objects:         snap.objects.size,
		Bytes:           snap.bytes,
		ResourceVersion: snap.version,
		Indexes:         len(snap.indices),
		Watching:        ifSet(life.open),
		LastSign:        ifSet(life.last),
		Events:          life.events,
		Watches:         life.watches,
		Lists:           map[string]int{},
	}
	for why, n := range life.lists {
		s.Lists[string(why)] = n
	}
	if life.lastErr != nil {
		s.LastError = life.lastErr.Error()
	}
	for _, l := range listeners {
		s.Handlers = append(s.Handlers, l.status())
	}
	if running {
		if err := life.check(i.description, now); err != nil {
			s.Unhealthy = err.Error()
		}
	}
	return s
}

func (l *listener) status() HandlerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return HandlerStatus{
		Name:      describe(l.handler),
		Synced:    l.HasSynced(),
		Told:      l.told,
		Waiting:   l.backlog.depth(),
		BusySince: ifSet(l.since),
	}
}

func ifSet(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Check fails when a running informer has been without a watch, or has heard nothing, for too long.
func (i *Informer) Check(now time.Time) error {
	i.mu.Lock()
	running := i.running != nil && !i.stopped
	i.mu.Unlock()
	if !running {
		return nil
	}
	return i.life.copy().check(i.description, now)
}

func (l *life) check(resource string, now time.Time) error {
	switch {
	case !l.broken.IsZero() && now.Sub(l.broken) > brokenTooLong:
		err := fmt.Errorf("the informer of %s has had no watch for %s", resource, now.Sub(l.broken).Round(time.Second))
		if l.lastErr != nil {
			err = fmt.Errorf("%w: %w", err, l.lastErr)
		}
		return err
	case !l.open.IsZero() && now.Sub(l.last) > silentTooLong:
		return fmt.Errorf("the informer of %s has heard nothing for %s", resource, now.Sub(l.last).Round(time.Second))
	}
	return nil
}
