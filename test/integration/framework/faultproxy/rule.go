// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Match selects requests. Every field that is set must match; the zero Match
// selects all requests.
type Match struct {
	// Verbs are Kubernetes verbs as in RBAC rules (get, list, watch, create,
	// update, patch, delete, deletecollection; lower-case HTTP methods for
	// paths that are no resource). Empty: any.
	Verbs []string
	// Path is searched for in the request's URL path. Nil: any.
	Path *regexp.Regexp
	// UserAgent is searched for in the request's user agent. Nil: any.
	UserAgent *regexp.Regexp
	// User is the name in the client's certificate. Empty: any, and also
	// requests that bring a token or no credentials at all.
	User string
}

// WriteVerbs are the verbs that change objects.
func WriteVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

func (m Match) matches(c call) bool {
	if len(m.Verbs) > 0 && !slices.Contains(m.Verbs, c.verb) {
		return false
	}
	if m.Path != nil && !m.Path.MatchString(c.path) {
		return false
	}
	if m.UserAgent != nil && !m.UserAgent.MatchString(c.userAgent) {
		return false
	}
	return m.User == "" || m.User == c.user
}

// Drop says whether and when a request is cut off without an answer.
type Drop int

const (
	// DropNone lets the answer through.
	DropNone Drop = iota
	// DropBefore cuts the request before it reaches the server: nothing has
	// happened there.
	DropBefore
	// DropAfter cuts the request after the server has carried it out: the
	// client cannot know that it has.
	DropAfter
)

// Rule is a fault and the requests that it befalls. A rule without any fault
// only counts. Of several matching rules with a fault the one added first
// applies; all matching rules count.
type Rule struct {
	// Match selects the requests.
	Match Match
	// Skip lets the first so many requests that match through, uncounted.
	Skip int
	// Times is the number of requests after which the rule is spent and
	// neither matches nor counts any more. 0: no limit. Event faults have no
	// limit: they last until the rule is removed.
	Times int

	// Delay holds a request this long before anything else happens to it.
	Delay time.Duration
	// Hold keeps requests from the server until the rule is removed.
	Hold bool
	// Drop cuts requests off.
	Drop Drop
	// CutConnection makes Drop close the client's TCP connection, and with it
	// every other request on it, instead of resetting the one stream.
	CutConnection bool
	// Status, if not 0, answers with this HTTP status and a Status object;
	// the request does not reach the server.
	Status int
	// RetryAfter is sent with Status as Retry-After, in whole seconds. 0: none.
	RetryAfter time.Duration

	// Intercept sees each request after Delay and Hold. It may answer it and return true, or change it, body and method
	// included, and return false: then it is forwarded as it is now.
	Intercept func(w http.ResponseWriter, r *http.Request) (answered bool)

	// EventDelay delays every selected event of matching watches, and so
	// everything behind it. It applies to watches that are open already, too.
	EventDelay time.Duration
	// WithholdEvents keeps selected events of matching watches, and
	// everything behind them, until the rule is removed: the client's cache
	// grows stale while its requests work.
	WithholdEvents bool
	// Event selects events for EventDelay and WithholdEvents. Nil: all,
	// bookmarks included. It must not call the Proxy.
	Event func(WatchEvent) bool
}

func (r Rule) validate() error {
	switch {
	case r.Drop < DropNone || r.Drop > DropAfter:
		return fmt.Errorf("rule's Drop is %d, must be DropNone, DropBefore or DropAfter", r.Drop)
	case r.Status != 0 && r.Drop == DropAfter:
		return fmt.Errorf("rule has Status %d and DropAfter: a request that is answered does not reach the server", r.Status)
	case r.Status != 0 && (r.Status < 400 || r.Status > 599):
		return fmt.Errorf("rule's Status is %d, must be 0 or 400 to 599", r.Status)
	case r.RetryAfter != 0 && r.Status == 0:
		return fmt.Errorf("rule has RetryAfter %v but no Status to send it with", r.RetryAfter)
	case r.Status != 0 && r.Intercept != nil:
		return fmt.Errorf("rule has Status %d and Intercept: only one of them can answer", r.Status)
	case r.Event != nil && r.EventDelay == 0 && !r.WithholdEvents:
		return fmt.Errorf("rule selects events but neither delays nor withholds them")
	}
	return nil
}

func (r Rule) hasRequestFault() bool {
	return r.Delay > 0 || r.Hold || r.Drop != DropNone || r.Status != 0 || r.Intercept != nil
}

func (r Rule) hasEventFault() bool { return r.EventDelay > 0 || r.WithholdEvents }

// ActiveRule is a rule that a Proxy has taken up.
type ActiveRule struct {
	proxy   *Proxy
	rule    Rule
	removed chan struct{} // closed by Remove

	// proxy.mu guards skipped, hits, events and gone.
	skipped int
	hits    int
	events  int
	gone    bool
}

// Remove takes the rule out and lets go what it holds. It may be called
// more than once.
func (a *ActiveRule) Remove() {
	p := a.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.gone {
		return
	}
	a.gone = true
	close(a.removed)
	p.rules = slices.DeleteFunc(p.rules, func(r *ActiveRule) bool { return r == a })
	p.changedLocked()
}

// Hits is the number of requests that the rule has matched so far, at most Times.
func (a *ActiveRule) Hits() int {
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	return a.hits
}

// Events is the number of watch events that the rule has delayed or withheld so far.
func (a *ActiveRule) Events() int {
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	return a.events
}

// WaitHits waits until the rule has matched at least n requests.
func (a *ActiveRule) WaitHits(ctx context.Context, n int) error {
	return a.wait(ctx, "requests", n, func() int { return a.hits })
}

// WaitEvents waits until the rule has delayed or withheld at least n events.
func (a *ActiveRule) WaitEvents(ctx context.Context, n int) error {
	return a.wait(ctx, "events", n, func() int { return a.events })
}

func (a *ActiveRule) wait(ctx context.Context, what string, n int, countLocked func() int) error {
	p := a.proxy
	for {
		p.mu.Lock()
		count, changed := countLocked(), p.changed
		p.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a rule to see %d %s, saw %d: %w", n, what, count, context.Cause(ctx))
		}
	}
}

// spentLocked tells whether the rule has had its share of requests.
func (a *ActiveRule) spentLocked() bool { return a.rule.Times > 0 && a.hits >= a.rule.Times }
