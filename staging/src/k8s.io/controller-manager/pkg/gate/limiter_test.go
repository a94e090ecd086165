// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server is a model of an API server that can work on so many requests at a time and rejects the others.
type server struct {
	mu       sync.Mutex
	capacity int
	busy     int
	most     int
	served   int
	rejected int
	// takes is the time for one request.
	takes time.Duration
	// retryAfter goes with each rejection.
	retryAfter time.Duration
}

func (s *server) call() answer {
	a := answer{start: time.Now(), class: "get /pods"}
	s.mu.Lock()
	if s.busy >= s.capacity {
		s.rejected++
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		a.end, a.rejected, a.retryAfter = time.Now(), true, s.retryAfter
		return a
	}
	s.busy++
	s.most = max(s.most, s.busy)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	s.busy--
	s.served++
	s.mu.Unlock()
	a.end = time.Now()
	return a
}

// load keeps n workers busy with requests for d.
func load(t *testing.T, l *limiter, s *server, n int, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for l.acquire(ctx) == nil {
				l.release(s.call())
			}
		})
	}
	wg.Wait()
	if _, waiting, _ := l.state(); waiting != 0 || l.inFlight != 0 {
		t.Errorf("%d waiting and %d in flight when all have gone, want none", waiting, l.inFlight)
	}
}

// The window grows while it is used and the server keeps up, and not otherwise.
func TestWindowGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &server{capacity: 1000, takes: 10 * time.Millisecond}, newLimiter()
		load(t, l, s, 10, time.Second)
		if l.window != initialWindow || s.most != 10 {
			t.Errorf("window %v after at most %d requests at a time, want it unchanged", l.window, s.most)
		}
		load(t, l, s, 500, 10*time.Second)
		if l.window != maxWindow || s.most != maxWindow {
			t.Errorf("window %v, at most %d requests at a time, want %v", l.window, s.most, maxWindow)
		}
	})
}

// A server that rejects is given what it can take: few rejections, good use.
func TestWindowSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &server{capacity: 20, takes: 10 * time.Millisecond}, newLimiter()
		load(t, l, s, 200, 20*time.Second)
		best := 20 * 20 * 100
		if s.served < best*6/10 {
			t.Errorf("%d requests served, want at least 60%% of the %d possible", s.served, best)
		}
		if s.rejected > s.served/50 {
			t.Errorf("%d of %d requests rejected, want at most one in fifty", s.rejected, s.rejected+s.served)
		}
	})
}

// One burst of rejections is one sign of congestion.
func TestNarrowedOncePerRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLimiter(), time.Now()
		for range 8 {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for range 8 {
			l.release(answer{start: start, end: time.Now(), rejected: true})
			time.Sleep(time.Millisecond)
		}
		if l.window != initialWindow/2 {
			t.Errorf("window %v after eight rejections of one round, want %v", l.window, initialWindow/2)
		}
		for range 20 {
			if err := l.acquire(t.Context()); err != nil {
				break
			}
			start = time.Now()
			time.Sleep(time.Millisecond)
			l.release(answer{start: start, end: time.Now(), rejected: true})
		}
		if l.window != minWindow {
			t.Errorf("window %v after round upon round of rejections, want %v", l.window, minWindow)
		}
	})
}

// Nobody calls a server that has asked for a pause, and all go on afterwards.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLimiter(), time.Now()
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.release(answer{start: start, end: start, rejected: true, retryAfter: 3 * time.Second})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := l.acquire(t.Context()); err != nil {
					t.Error(err)
				}
				if waited := time.Since(start); waited != 3*time.Second {
					t.Errorf("waited %v, want 3s", waited)
				}
				l.release(answer{start: time.Now(), end: time.Now()})
			})
		}
		wg.Wait()

		start = time.Now()
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.release(answer{start: start, end: start, rejected: true, retryAfter: time.Hour})
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != maxPause {
			t.Errorf("waited %v, want no more than %v whatever the server says", waited, maxPause)
		}
		l.release(answer{start: time.Now(), end: time.Now()})
	})
}

// A server that becomes slow gets less to do, and more again when it is quick.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &server{capacity: 1000, takes: 10 * time.Millisecond}, newLimiter()
		load(t, l, s, 40, 5*time.Second)
		wide := l.window
		s.takes = 400 * time.Millisecond
		load(t, l, s, 40, 10*time.Second)
		narrow := l.window
		if narrow > wide/2 {
			t.Errorf("window went from %v to %v when answers became slow, want less than half", wide, narrow)
		}
		s.takes = 10 * time.Millisecond
		load(t, l, s, 40, 30*time.Second)
		if l.window < 40 {
			t.Errorf("window stays at %v when answers are quick again, want 40 or more", l.window)
		}
		// A server that is always slow is not getting slower.
		s, l = &server{capacity: 1000, takes: time.Second}, newLimiter()
		load(t, l, s, 40, time.Minute)
		if l.window < initialWindow {
			t.Errorf("window went down to %v with a steadily slow server", l.window)
		}
	})
}

// A class of requests that is slow by nature, such as writes that call a webhook, is not compared with another.
func TestLatencyIsComparedWithinAClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		for i := range 1000 {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := answer{start: time.Now(), class: "get /pods"}
			takes := time.Millisecond
			if i%2 == 0 {
				a.class, takes = "create /pods", time.Second
			}
			time.Sleep(takes)
			a.end = time.Now()
			l.release(a)
		}
		if l.window != initialWindow {
			t.Errorf("window %v, want %v", l.window, initialWindow)
		}
	})
}

// Latency alone does not bring a controller to a standstill.
func TestLatencyLeavesAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &server{capacity: 1000, takes: 10 * time.Millisecond}, newLimiter()
		load(t, l, s, 40, 5*time.Second)
		s.takes = time.Second
		load(t, l, s, 40, time.Minute)
		if l.window < slowWindow*slowFactor || l.window > slowWindow+1 {
			t.Errorf("window %v after a minute of slow answers, want about %v", l.window, slowWindow)
		}
	})
}

// Answers that say nothing about the server's load change nothing.
func TestWindowUnmoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		for i := range 100 {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := answer{start: time.Now()} // a list
			if i%2 == 0 {
				a.class, a.failed = "get /pods", true // a broken connection
			}
			time.Sleep(time.Duration(i) * 50 * time.Millisecond)
			a.end = time.Now()
			l.release(a)
		}
		if l.window != initialWindow {
			t.Errorf("window %v, want %v", l.window, initialWindow)
		}
	})
}

// Who gives up waiting leaves the queue, and a turn that came too late goes to the next.
func TestAcquireCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		l.window = 1
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := l.acquire(ctx); !errors.Is(err, why) {
				t.Errorf("error %v, want %v", err, why)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := l.acquire(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel(why)
		synctest.Wait()
		l.release(answer{start: time.Now(), end: time.Now()})
		wg.Wait()
		if l.inFlight != 1 || len(l.waiting) != 0 {
			t.Errorf("%d in flight, %d waiting, want 1 and 0", l.inFlight, len(l.waiting))
		}
	})
}

// The race between a turn and a cancellation never loses room.
func TestAcquireRace(t *testing.T) {
	l := newLimiter()
	l.window = 2
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 {
					go cancel()
				}
				if l.acquire(ctx) == nil {
					now := time.Now()
					l.release(answer{start: now, end: now, failed: true})
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if l.inFlight != 0 || len(l.waiting) != 0 {
		t.Errorf("%d in flight, %d waiting at the end", l.inFlight, len(l.waiting))
	}
}
