// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// JitterFactor spreads the retries of a standby: one waits between RetryPeriod and RetryPeriod*(1+JitterFactor).
const JitterFactor = 1.2

// LeaderElectionConfig says what to compete for, how fast, and what winning means.
type LeaderElectionConfig struct {
	// Lock is what candidates compete for. Required.
	Lock resourcelock.Interface

	// LeaseDuration is how long the others leave an unchanged lease alone. It is written in whole seconds, rounded
	// up. Must be greater than RenewDeadline. Core components use 15s.
	LeaseDuration time.Duration
	// RenewDeadline is how long after the start of its last successful renewal a leader may act. Must be greater
	// than RetryPeriod*JitterFactor. Core components use 10s.
	RenewDeadline time.Duration
	// RetryPeriod is how long a leader waits from one renewal to the next, and a standby without news of the lease
	// from one look at it to the next. Must be positive. Core components use 2s.
	RetryPeriod time.Duration

	// Callbacks are called as the candidate wins, renews and loses.
	Callbacks LeaderCallbacks

	// WatchDog, if any, reports a leader that goes on although its lease is gone.
	WatchDog *HealthzAdaptor

	// ReleaseOnCancel gives the lease back when Run's context is cancelled, once OnStartedLeading has returned, so
	// that another candidate takes over at once.
	ReleaseOnCancel bool

	// Name names the election in metrics and health.
	Name string

	// Coordinated lets the API server pick the leader (KEP-4355). Not built yet: NewLeaderElector refuses it.
	Coordinated bool

	// Clock replaces the real clock in tests. nil: the real one.
	Clock clock.WithDelayedExecution

	// Metrics receives what is worth counting. nil: nothing does.
	Metrics LeaderMetric
}

// LeaderCallbacks tell what becomes of a candidate.
type LeaderCallbacks struct {
	// OnStartedLeading does the leader's work, on a goroutine of its own. Required. Its context ends when Run's
	// does, when the lease is lost, and at the latest when the deadline passes that OnRenewed was last told. Run does
	// not return before OnStartedLeading does. Its returning does not end the leadership.
	OnStartedLeading func(ctx context.Context)
	// OnStoppedLeading is called once, at the end of Run, even if the candidate never led. Required. After a lost
	// lease it does not wait for OnStartedLeading to return, so that it can end a process whose work hangs.
	OnStoppedLeading func()
	// OnNewLeader is told of each leader seen that is not the one seen before, this candidate included. Calls come
	// one at a time and in order, and do not hold up the election.
	OnNewLeader func(identity string)
	// OnRenewed is called when the lease was won and each time it was renewed, before OnStartedLeading and on the
	// elector's goroutine: it must not block. The leader must not act at or after deadline, which is a reading of
	// Clock, unless OnRenewed is called again.
	OnRenewed func(deadline time.Time)
}

// LeaderMetric counts what happens to the election called name.
type LeaderMetric interface {
	// On and Off say whether this candidate leads.
	On(name string)
	Off(name string)
	// SlowpathExercised counts renewals that had to read the lease first.
	SlowpathExercised(name string)
}

// validate reports everything that is wrong with the configuration.
func (c *LeaderElectionConfig) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"leaseDuration", c.LeaseDuration}, {"renewDeadline", c.RenewDeadline}, {"retryPeriod", c.RetryPeriod}} {
		if d.value <= 0 {
			refuse("%s %v: must be greater than zero", d.name, d.value)
		}
	}
	if c.LeaseDuration <= c.RenewDeadline {
		refuse("leaseDuration %v: must be greater than renewDeadline (%v)", c.LeaseDuration, c.RenewDeadline)
	}
	if least := time.Duration(JitterFactor * float64(c.RetryPeriod)); c.RenewDeadline <= least {
		refuse("renewDeadline %v: must be greater than retryPeriod*JitterFactor (%v*%v = %v)", c.RenewDeadline, c.RetryPeriod, JitterFactor, least)
	}
	if c.Callbacks.OnStartedLeading == nil {
		refuse("callback OnStartedLeading is required")
	}
	if c.Callbacks.OnStoppedLeading == nil {
		refuse("callback OnStoppedLeading is required")
	}
	switch {
	case c.Lock == nil:
		refuse("a lock is required")
	case c.Lock.Identity() == "":
		refuse("the identity of lock %s is empty: each candidate needs a unique one", c.Lock.Describe())
	}
	if c.Coordinated {
		refuse("coordinated leader election is not available: leave Coordinated (feature gate CoordinatedLeaderElection) off")
	}
	return errors.Join(errs...)
}

// NewLeaderElector makes a candidate, which does nothing before Run. Its error lists every problem of the
// configuration, one per line.
func NewLeaderElector(config LeaderElectionConfig) (*LeaderElector, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Metrics == nil {
		config.Metrics = noMetrics{}
	}
	e := &LeaderElector{config: config}
	config.Metrics.Off(config.Name)
	if config.WatchDog != nil {
		config.WatchDog.SetLeaderElection(e)
	}
	return e, nil
}

// RunOrDie makes a candidate and runs it until ctx is done or the lease is lost. It panics on a bad configuration:
// use NewLeaderElector where that can be reported.
func RunOrDie(ctx context.Context, config LeaderElectionConfig) {
	e, err := NewLeaderElector(config)
	if err != nil {
		panic(err)
	}
	e.Run(ctx)
}

// LeaderElector is one candidate.
type LeaderElector struct {
	config LeaderElectionConfig

	// mu guards the following fields, which tell others what the goroutine in Run knows.
	mu sync.Mutex
	// leader is the last holder seen; empty before the first look and while the lease is released.
	leader string
	// deadline is until when this candidate may act; zero when it does not lead.
	deadline time.Time
	// renewed is when the last successful renewal began; zero when no work of a leader can be under way.
	renewed time.Time
}

// IsLeader reports whether this candidate leads now: it holds the lease and its deadline has not passed.
func (e *LeaderElector) IsLeader() bool {
	now := e.config.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.deadline)
}

// GetLeader returns the identity of the last holder seen, empty if there is none. It may be out of date.
func (e *LeaderElector) GetLeader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Check fails when a leader's work goes on although its last renewal is more than LeaseDuration plus tolerance ago.
// It never fails on a standby.
func (e *LeaderElector) Check(tolerance time.Duration) error {
	now := e.config.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.renewed.IsZero() || now.Sub(e.renewed) <= e.config.LeaseDuration+tolerance {
		return nil
	}
	return fmt.Errorf("failed election to renew leadership on lease %s: last renewed %v ago", e.config.Name, now.Sub(e.renewed).Round(time.Second))
}

// Run competes for the lease until ctx is done or the lease, once won, is lost. No goroutine is left when it
// returns. It may be called again afterwards, but not twice at a time.
func (e *LeaderElector) Run(ctx context.Context) {
	newRun(ctx, e).run(ctx)
}

type noMetrics struct{}

func (noMetrics) On(string)                {}
func (noMetrics) Off(string)               {}
func (noMetrics) SlowpathExercised(string) {}
