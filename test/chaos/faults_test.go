// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// mostRequests bounds the requests of a scenario that are taken in turn: far above what any of them has.
const mostRequests = 60

// within matches the requests for things in a namespace, and the namespace itself.
func within(namespace string) *regexp.Regexp {
	return regexp.MustCompile(`/namespaces/` + regexp.QuoteMeta(namespace) + `(/|$)`)
}

// fault is what one request meets.
type fault struct {
	name  string
	verbs []string
	rule  faultproxy.Rule
	// lost: it may have been carried out, or not.
	lost int
}

func faults() []fault {
	all := append([]string{"get", "list"}, faultproxy.WriteVerbs()...)
	return []fault{
		// Of a create, a conflict says that the name is taken, which would be a lie and not a fault.
		{name: "conflict", verbs: []string{"update", "patch", "delete"}, rule: faultproxy.Rule{Status: http.StatusConflict}},
		{name: "overload", verbs: all, rule: faultproxy.Rule{Status: http.StatusTooManyRequests, RetryAfter: time.Second}},
		{name: "error", verbs: all, rule: faultproxy.Rule{Status: http.StatusInternalServerError}},
		{name: "unavailable", verbs: all, rule: faultproxy.Rule{Status: http.StatusServiceUnavailable}},
		{name: "request-lost", verbs: all, rule: faultproxy.Rule{Drop: faultproxy.DropBefore}},
		{name: "answer-lost", verbs: all, rule: faultproxy.Rule{Drop: faultproxy.DropAfter}, lost: 1},
	}
}

// TestRequestFaults has each request of a scenario meet each fault in turn.
func TestRequestFaults(t *testing.T) {
	th := newTheatre(t)
	for _, s := range chosen(t, th, "replicaset-create", "gc-orphan") {
		want := th.reference(t, s)
		t.Run(s.Name, func(t *testing.T) {
			for _, f := range faults() {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					for n := range mostRequests {
						if !th.meets(t, s, want, f, n) {
							if n == 0 && f.name != "conflict" {
								t.Error("the fault befell no request at all")
							}
							return
						}
					}
				})
			}
		})
	}
}

// meets plays a scenario whose request number n meets the fault, and tells whether there was one.
func (th *theatre) meets(t *testing.T, s scenarios.Scenario, want *played, f fault, n int) bool {
	t.Helper()
	namespace := fmt.Sprintf("%s-%s-%d", s.Name, f.name, n)
	rule := f.rule
	rule.Match, rule.Skip, rule.Times = faultproxy.Match{Verbs: f.verbs, Path: within(namespace)}, n, 1
	active := th.proxy.Add(rule)
	defer active.Remove()
	got, err := th.play(t.Context(), s, namespace, want)
	if err == nil {
		err = got.check(want, f.lost)
	}
	if err != nil {
		t.Errorf("request %d, which meets %q: %v", n+1, f.name, err)
		return false
	}
	return active.Hits() > 0
}

// TestKill kills the manager at each write in turn, and starts it again.
func TestKill(t *testing.T) {
	tests := []struct {
		name string
		rule faultproxy.Rule
	}{
		{"before", faultproxy.Rule{Hold: true}},
		{"after", faultproxy.Rule{Drop: faultproxy.DropAfter}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			th := newTheatre(t)
			for _, s := range chosen(t, th, "deployment-create", "gc-orphan") {
				want := th.reference(t, s)
				killed := 0
				for ; killed < mostRequests && !t.Failed(); killed++ {
					hit, err := th.killedAt(t.Context(), s, want, fmt.Sprintf("%s-%d", s.Name, killed), tt.rule, killed)
					if err != nil {
						t.Errorf("%s, killed %s write %d: %v", s.Name, tt.name, killed+1, err)
					}
					if !hit {
						break
					}
				}
				t.Logf("%s: killed %s each of %d writes", s.Name, tt.name, killed)
				if killed == 0 {
					t.Errorf("%s has no write to be killed at", s.Name)
				}
			}
		})
	}
}

// killedAt plays a scenario and kills the manager at write n, if there is one.
func (th *theatre) killedAt(ctx context.Context, s scenarios.Scenario, want *played, namespace string, rule faultproxy.Rule, n int) (hit bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rule.Match, rule.Skip, rule.Times = faultproxy.Match{Verbs: faultproxy.WriteVerbs(), Path: within(namespace)}, n, 1
	active := th.proxy.Add(rule)
	defer active.Remove()

	type end struct {
		got *played
		err error
	}
	done := make(chan end, 1)
	go func() {
		got, err := th.play(ctx, s, namespace, want)
		done <- end{got, err}
	}()
	struck := make(chan error, 1)
	waiting, stop := context.WithCancel(ctx)
	go func() { struck <- active.WaitHits(waiting, 1) }()

	var result end
	ended := false
	select {
	case result = <-done:
		ended = true
		stop()
		hit = <-struck == nil
	case err := <-struck:
		hit = err == nil
	}
	stop()
	if hit {
		if err := th.manager.Kill(); err != nil {
			return hit, err
		}
		active.Remove()
		if err := th.restart(ctx); err != nil {
			return hit, err
		}
	}
	if !ended {
		result = <-done
	}
	if result.err != nil {
		return hit, result.err
	}
	return hit, result.got.check(want, 0)
}

// TestMissedEvents plays scenarios while watches end and cannot be taken up where they were, so that the manager lists
// anew and never sees what came between; and while events come late.
func TestMissedEvents(t *testing.T) {
	tests := []struct {
		name    string
		disturb func(ctx context.Context, th *theatre)
	}{
		{"relists", func(ctx context.Context, th *theatre) {
			// A few times only: a client that fails waits longer each time, up to half a minute.
			watches := faultproxy.Match{Verbs: []string{"watch"}, Path: regexp.MustCompile(`/(pods|replicasets|deployments|configmaps)$`)}
			for range 3 {
				expired := th.proxy.Add(faultproxy.Rule{Match: watches, Status: http.StatusGone, Times: 4})
				th.proxy.CutWatches(watches)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				expired.Remove()
			}
		}},
		{"late", func(ctx context.Context, th *theatre) {
			late := th.proxy.Add(faultproxy.Rule{
				Match:      faultproxy.Match{Verbs: []string{"watch"}},
				EventDelay: 100 * time.Millisecond,
				Event: func(e faultproxy.WatchEvent) bool {
					return e.Object.Namespace != "" && e.Object.Namespace != "kube-system"
				},
			})
			<-ctx.Done()
			late.Remove()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			th := newTheatre(t)
			for _, s := range chosen(t, th, "deployment-scale", "replicaset-adopt", "gc-foreground", "deployment-orphan-adopt") {
				want := th.reference(t, s)
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					tt.disturb(ctx, th)
				}()
				got, err := th.play(t.Context(), s, s.Name+"-"+tt.name, want)
				cancel()
				<-over
				if err == nil {
					err = got.check(want, ownPods(s))
				}
				if err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
			}
		})
	}
}
