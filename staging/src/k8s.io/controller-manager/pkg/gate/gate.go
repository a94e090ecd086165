// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Gate sends a manager's requests. There is one per manager.
type Gate struct {
	fence *Fence

	// mu guards clients.
	mu      sync.Mutex
	clients map[string]*client
}

// client is what the gate keeps per controller.
type client struct {
	controller                          string
	limiter                             *limiter
	inFlight                            atomic.Int64
	requests, writes, refused, rejected atomic.Int64
}

// New makes a gate whose writes pass only while fence is open.
func New(fence *Fence) *Gate {
	registerMetrics()
	return &Gate{fence: fence, clients: map[string]*client{}}
}

// WrapConfig returns a copy of cfg for one controller: with the user agent "<binary>/<version> …/<controller>" and
// the gate's transport. Requests are held back only if cfg has no limit of its own (QPS < 0 and no RateLimiter); all
// configurations of one controller share one limit.
func (g *Gate) WrapConfig(cfg *rest.Config, controller string) *rest.Config {
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), controller)
	c := g.client(controller)
	adaptive := cfg.QPS < 0 && cfg.RateLimiter == nil
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, fence: g.fence, client: c, adaptive: adaptive}
	})
	return cfg
}

func (g *Gate) client(controller string) *client {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.clients[controller]
	if !ok {
		c = &client{controller: controller, limiter: newLimiter()}
		g.clients[controller] = c
	}
	return c
}

// Stats is how the requests of one controller fare, for debug pages.
type Stats struct {
	Controller string
	// Requests and Writes were sent; Refused were stopped by the fence; Rejected were answered with 429.
	Requests, Writes, Refused, Rejected int64
	// InFlight is how many requests are under way, watches not counted.
	InFlight int64
	// Window is how many may be; it means nothing to a controller with a fixed rate.
	Window float64
	// Waiting is how many wait for room in the window.
	Waiting int
	// PausedUntil is before when the API server has asked not to be called; zero if never.
	PausedUntil time.Time
}

// Stats returns a line per controller, sorted by name.
func (g *Gate) Stats() []Stats {
	g.mu.Lock()
	clients := slices.Collect(maps.Values(g.clients))
	g.mu.Unlock()
	slices.SortFunc(clients, func(a, b *client) int { return strings.Compare(a.controller, b.controller) })
	stats := make([]Stats, 0, len(clients))
	for _, c := range clients {
		s := Stats{
			Controller: c.controller,
			Requests:   c.requests.Load(),
			Writes:     c.writes.Load(),
			Refused:    c.refused.Load(),
			Rejected:   c.rejected.Load(),
			InFlight:   c.inFlight.Load(),
		}
		s.Window, s.Waiting, s.PausedUntil = c.limiter.state()
		stats = append(stats, s)
	}
	return stats
}

// StatusError is how a Scope remembers that the API server refused a request.
type StatusError struct {
	Verb, Path string
	Code       int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Verb, e.Path, e.Code, http.StatusText(e.Code))
}

// transport is the http.RoundTripper of one client.
type transport struct {
	next     http.RoundTripper
	fence    *Fence
	client   *client
	adaptive bool
}

// RoundTrip implements http.RoundTripper. Like every one it closes the request's body, also when it does not send it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := classify(req)
	scope := ScopeFrom(req.Context())
	if err := t.admit(req, c, scope); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // the request is not sent: there is nobody to tell
		}
		return nil, err
	}
	t.client.sent(c, scope)
	a := answer{start: time.Now(), class: c.class}
	resp, err := t.next.RoundTrip(req)
	a.end = time.Now()
	code := "error"
	switch {
	case err != nil:
		a.failed = true
		scope.failed(err)
	default:
		code = strconv.Itoa(resp.StatusCode)
		if resp.StatusCode >= http.StatusBadRequest {
			scope.failed(&StatusError{Verb: c.verb, Path: req.URL.Path, Code: resp.StatusCode})
		}
		if resp.StatusCode == http.StatusTooManyRequests && !c.budgeted {
			t.client.rejected.Add(1)
			a.rejected, a.retryAfter = true, retryAfter(resp)
		}
	}
	t.client.done(c, code, a, t.limits(c))
	return resp, err
}

// WrappedRoundTripper lets client-go find the connections beneath, to close idle ones.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// admit waits for the request's turn and asks the fence, before, so that a fenced write fails at once, and after.
func (t *transport) admit(req *http.Request, c call, scope *Scope) error {
	if err := t.askFence(c, scope); err != nil {
		return err
	}
	if !t.limits(c) {
		return nil
	}
	start := time.Now()
	if err := t.client.limiter.acquire(req.Context()); err != nil {
		return fmt.Errorf("waiting for a slot to the API server: %w", err)
	}
	waited(t.client.controller, time.Since(start))
	if err := t.askFence(c, scope); err != nil {
		now := time.Now()
		t.client.limiter.release(answer{start: now, end: now, failed: true})
		return err
	}
	return nil
}

func (t *transport) askFence(c call, scope *Scope) error {
	if !c.write {
		return nil
	}
	err := t.fence.Err()
	if err != nil {
		t.client.refused.Add(1)
		scope.refuse(err)
		fencedWrites.WithLabelValues(t.client.controller).Inc()
	}
	return err
}

func (t *transport) limits(c call) bool { return t.adaptive && !c.stream }

func (c *client) sent(k call, scope *Scope) {
	scope.sent(k.write)
	c.requests.Add(1)
	if k.write {
		c.writes.Add(1)
	}
	if !k.stream {
		c.inFlight.Add(1)
		requestsInFlight.WithLabelValues(c.controller).Inc()
	}
}

func (c *client) done(k call, code string, a answer, limited bool) {
	requests.WithLabelValues(c.controller, k.verb, code).Inc()
	if !k.stream {
		requestDuration.WithLabelValues(c.controller, k.verb).Observe(a.end.Sub(a.start).Seconds())
		c.inFlight.Add(-1)
		requestsInFlight.WithLabelValues(c.controller).Dec()
	}
	if limited {
		c.limiter.release(a)
		window, _, _ := c.limiter.state()
		requestWindow.WithLabelValues(c.controller).Set(window)
	}
}

// retryAfter is what a response asks its client to wait, in the form that API servers use: seconds.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
