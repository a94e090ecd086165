// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

func validConfig() LeaderElectionConfig {
	return LeaderElectionConfig{
		Lock: (&leaseServer{}).lock("me"), LeaseDuration: core.lease, RenewDeadline: core.renewDeadline, RetryPeriod: core.retry,
		Callbacks: LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}
}

func TestValidation(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*LeaderElectionConfig)
		want   string
	}{
		{"valid", func(*LeaderElectionConfig) {}, ""},
		{"lease duration equal to renew deadline", func(c *LeaderElectionConfig) { c.LeaseDuration = c.RenewDeadline },
			"leaseDuration 10s: must be greater than renewDeadline (10s)"},
		{"renew deadline too short", func(c *LeaderElectionConfig) { c.RenewDeadline = 2400 * time.Millisecond },
			"renewDeadline 2.4s: must be greater than retryPeriod*JitterFactor (2s*1.2 = 2.4s)"},
		{"renew deadline just long enough", func(c *LeaderElectionConfig) { c.RenewDeadline = 2401 * time.Millisecond }, ""},
		{"zero durations", func(c *LeaderElectionConfig) { c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = 0, 0, 0 },
			"leaseDuration 0s: must be greater than zero\nrenewDeadline 0s: must be greater than zero\nretryPeriod 0s: must be greater than zero\n" +
				"leaseDuration 0s: must be greater than renewDeadline (0s)\nrenewDeadline 0s: must be greater than retryPeriod*JitterFactor (0s*1.2 = 0s)"},
		{"negative retry period", func(c *LeaderElectionConfig) { c.RetryPeriod = -1 }, "retryPeriod -1ns: must be greater than zero"},
		{"no callbacks", func(c *LeaderElectionConfig) { c.Callbacks = LeaderCallbacks{} },
			"callback OnStartedLeading is required\ncallback OnStoppedLeading is required"},
		{"no lock", func(c *LeaderElectionConfig) { c.Lock = nil }, "a lock is required"},
		{"no identity", func(c *LeaderElectionConfig) { c.Lock = (&leaseServer{}).lock("") },
			"the identity of lock kube-system/test is empty: each candidate needs a unique one"},
		{"coordinated", func(c *LeaderElectionConfig) { c.Coordinated = true },
			"coordinated leader election is not available: leave Coordinated (feature gate CoordinatedLeaderElection) off"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := validConfig()
			tc.change(&config)
			_, err := NewLeaderElector(config)
			got := ""
			if err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.want, got)
		})
	}
}

func TestRunOrDiePanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "lock") {
			t.Errorf("recovered %v, want what is wrong with the configuration", err)
		}
	}()
	RunOrDie(t.Context(), LeaderElectionConfig{})
}

// Five real electors against a server that fails, delays, and loses answers: no two are at work at a time, and in the
// end one is. Run with -race, this is also about their goroutines.
func TestChaos(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	rng, serverRng := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3)) // the latter under s.mu
	s, calm := &leaseServer{}, atomic.Bool{}
	end := time.Now().Add(3 * time.Minute)
	s.before = func(ctx context.Context, op string, _ *coordinationv1.Lease) error {
		s.mu.Lock()
		kind, wait := serverRng.IntN(12), time.Duration(serverRng.IntN(9000))*time.Millisecond
		s.mu.Unlock()
		if calm.Load() || kind > 3 {
			kind, wait = 9, wait/500
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			if kind != 2 { // otherwise it arrives all the same
				return context.Cause(ctx)
			}
		}
		switch kind {
		case 0:
			return errors.New("connection refused")
		case 1:
			return lostAnswer{errors.New("connection reset")}
		}
		return nil
	}
	var working atomic.Int32
	candidates := make([]*fakeCandidate, 5)
	start := func(i, life int) {
		candidates[i] = runCandidate(t, s.lock(fmt.Sprintf("%d/%d", i, life)), func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(ctx context.Context) {
				if n := working.Add(1); n > 1 {
					t.Errorf("%d candidates are at work", n)
				}
				<-ctx.Done()
				working.Add(-1)
			}
		})
	}
	for i := range candidates {
		start(i, 0)
	}
	for life := 1; time.Now().Before(end); life++ {
		sleep(time.Duration(rng.IntN(20)) * time.Second)
		if i := rng.IntN(len(candidates)); rng.IntN(3) == 0 || !candidates[i].time("returned").IsZero() {
			candidates[i].cancel()
			start(i, life)
		}
		if rng.IntN(4) == 0 {
			s.endWatches()
		}
	}
	calm.Store(true)
	sleep(time.Minute)
	for i, c := range candidates {
		if !c.time("returned").IsZero() {
			start(i, 1000)
		}
	}
	sleep(time.Second)
	if n := working.Load(); n != 1 {
		t.Errorf("%d candidates are at work after the faults, want 1; record: %+v", n, s.record())
	}
	for _, c := range candidates {
		c.cancel()
	}
	sleep(10 * time.Second)
}
