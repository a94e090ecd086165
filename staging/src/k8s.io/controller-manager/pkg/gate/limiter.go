// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of a controller's window, in requests under way at a time. A controller starts in the middle: its own
// workers keep it below that most of the time.
const (
	minWindow     = 1.0
	initialWindow = 32.0
	maxWindow     = 256.0
	// slowWindow is as far as latency alone narrows it.
	slowWindow = 8.0
)

const (
	// rejectedFactor is what is left of the window after a 429.
	rejectedFactor = 0.5
	// slowFactor is what is left of it after the server was found to have slowed down.
	slowFactor = 0.9
	// A server is slow when the average answer takes slowRatio times as long as the quickest of late, and by
	// slowMargin longer: small absolute changes are noise.
	slowRatio  = 3
	slowMargin = 100 * time.Millisecond
	// quickestFor is how long the quickest answer stands for what the server can do.
	quickestFor = time.Minute
	// maxPause bounds what a Retry-After may ask of a whole controller.
	maxPause = 30 * time.Second
)

// limiter bounds how many requests of one controller are under way, by additive increase and multiplicative decrease:
// a window's worth of good answers widens it by one, a 429 halves it, growing latency narrows it by a tenth. It is
// narrowed once for all requests that were under way at the time, since they tell of the same congestion.
type limiter struct {
	// mu guards the following fields.
	mu       sync.Mutex
	window   float64
	inFlight int
	waiting  []chan struct{}
	// pausedUntil is before when the server has asked not to be called.
	pausedUntil time.Time
	// resume wakes those who wait when the pause ends; nil when there is none.
	resume *time.Timer
	// narrowed is when the window was last made smaller.
	narrowed time.Time
	// latencies is by class of requests.
	latencies map[string]*latency
}

func newLimiter() *limiter {
	return &limiter{window: initialWindow, latencies: map[string]*latency{}}
}

// acquire waits for room in the window, first come first served.
func (l *limiter) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	turn := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, turn)
	l.admitLocked(time.Now())
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else {
		// The turn came together with the end of the context: pass it on.
		l.inFlight--
		l.admitLocked(time.Now())
	}
	return context.Cause(ctx)
}

// answer is what became of a request that was let through.
type answer struct {
	start, end time.Time
	// rejected says that the server answered 429; retryAfter is what it asked for, if anything.
	rejected   bool
	retryAfter time.Duration
	// class is that of the request: the time it took says something only beside others of its class.
	class string
	// failed says that there was no answer, which tells nothing about the server's load.
	failed bool
}

// release gives back the room of one request and learns from its answer.
func (l *limiter) release(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := float64(l.inFlight+1) > l.window
	l.inFlight--
	switch {
	case a.rejected:
		l.pauseLocked(a.end, min(a.retryAfter, maxPause))
		l.narrowLocked(a, rejectedFactor)
	case a.failed:
	case l.slowLocked(a):
		l.narrowLocked(a, slowFactor)
	case full:
		// A window that is not used up says nothing about whether a wider one would do.
		l.window = min(maxWindow, l.window+1/l.window)
	}
	l.admitLocked(a.end)
}

func (l *limiter) hasRoomLocked(now time.Time) bool {
	return !now.Before(l.pausedUntil) && float64(l.inFlight+1) <= l.window
}

// admitLocked lets in whom there is room for, and sees to it that the end of a pause is not slept through.
func (l *limiter) admitLocked(now time.Time) {
	for len(l.waiting) > 0 && l.hasRoomLocked(now) {
		l.inFlight++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
	if len(l.waiting) == 0 || !now.Before(l.pausedUntil) || l.resume != nil {
		return
	}
	l.resume = time.AfterFunc(l.pausedUntil.Sub(now), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.resume = nil
		l.admitLocked(time.Now())
	})
}

func (l *limiter) pauseLocked(now time.Time, d time.Duration) {
	if until := now.Add(d); d > 0 && until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
}

// slowLocked reports that the server has become slow. A slow server is not one that rejects: some requests under way
// at a time it always gets.
func (l *limiter) slowLocked(a answer) bool {
	if a.class == "" {
		return false
	}
	seen, ok := l.latencies[a.class]
	if !ok {
		seen = &latency{}
		l.latencies[a.class] = seen
	}
	return seen.slow(a.end, a.end.Sub(a.start)) && l.window > slowWindow
}

func (l *limiter) narrowLocked(a answer, factor float64) {
	if a.start.Before(l.narrowed) {
		return
	}
	l.narrowed = a.end
	l.window = max(minWindow, l.window*factor)
}

// latency tells when answers to one class of requests have become slow, compared with the quickest of the last minute or two.
type latency struct {
	average time.Duration
	// quickest of the present and of the previous period, of quickestFor each.
	quickest, before time.Duration
	since            time.Time
}

// slow takes in how long an answer took and reports whether they take long now.
func (l *latency) slow(now time.Time, took time.Duration) bool {
	if now.Sub(l.since) > quickestFor {
		l.before, l.quickest, l.since = l.quickest, 0, now
	}
	if l.quickest == 0 || took < l.quickest {
		l.quickest = max(took, 1)
	}
	if l.average == 0 {
		l.average = took
	}
	l.average += (took - l.average) / 8
	base := l.quickest
	if l.before != 0 {
		base = min(base, l.before)
	}
	return l.average > slowRatio*base && l.average > base+slowMargin
}

func (l *limiter) state() (window float64, waiting int, pausedUntil time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.window, len(l.waiting), l.pausedUntil
}
