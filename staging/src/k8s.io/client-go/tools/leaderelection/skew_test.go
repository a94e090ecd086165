// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// skewed is a clock that is off and runs at another speed than the bubble's.
type skewed struct {
	clock.RealClock
	origin time.Time
	shift  time.Duration
	rate   float64
}

func (c *skewed) Now() time.Time {
	return c.origin.Add(c.shift + time.Duration(float64(time.Since(c.origin))*c.rate))
}
func (c *skewed) Since(t time.Time) time.Duration      { return c.Now().Sub(t) }
func (c *skewed) real(d time.Duration) time.Duration   { return time.Duration(float64(d) / c.rate) }
func (c *skewed) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(c.real(d) + 1) }
func (c *skewed) AfterFunc(d time.Duration, f func()) clock.Timer {
	return skewedTimer{c.RealClock.AfterFunc(c.real(d)+1, f), c}
}

type skewedTimer struct {
	clock.Timer
	c *skewed
}

func (t skewedTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.c.real(d) + 1) }

// Clocks that differ by days, and that run at speeds as different as LeaseDuration and RenewDeadline allow, still
// make no two leaders. A slow standby only waits longer.
func TestSkewedClocks(t *testing.T) {
	for _, tc := range []struct {
		name         string
		leader, next skewed
		want         time.Duration
	}{
		{"in step but days apart", skewed{shift: -80 * time.Hour, rate: 1}, skewed{shift: 80 * time.Hour, rate: 1}, 15 * time.Second},
		{"standby fast", skewed{rate: 1}, skewed{rate: 1.25}, 12 * time.Second},
		{"standby slow", skewed{rate: 1}, skewed{rate: 0.75}, 20 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.leader.origin, tc.next.origin = time.Now(), time.Now()
				s, dead := &leaseServer{}, &shared[bool]{}
				s.before = func(_ context.Context, _ string, lease *coordinationv1.Lease) error {
					if dead.get() && lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "a" {
						return errors.New("no route to host")
					}
					return nil
				}
				a := runCandidate(t, s.lock("a"), func(c *LeaderElectionConfig) { c.Clock = &tc.leader })
				synctest.Wait()
				b := runCandidate(t, s.lock("b"), func(c *LeaderElectionConfig) { c.Clock = &tc.next })
				sleep(7 * time.Second)
				last := time.Now().Add(-time.Second) // a's clock is true: it renewed in second 6
				dead.set(true)
				sleep(30 * time.Second)
				if !a.time("canceled").Before(b.time("started")) {
					t.Errorf("a's work ended at %v, b's began at %v", a.time("canceled"), b.time("started"))
				}
				expect(t, "takeover after", tc.want, b.time("started").Sub(last).Round(10*time.Millisecond))
				b.cancel()
				synctest.Wait()
			})
		})
	}
}
