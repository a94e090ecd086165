// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// sleep passes virtual time and lets everybody act on it.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// shared is a value that a test and the server that it drives share.
type shared[T any] struct {
	mu sync.Mutex
	v  T
}

func (s *shared[T]) set(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v = v
}

func (s *shared[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// The life of a lease, as upstream writes it.
func TestLeaseLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := &leaseServer{}, time.Now()
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()

		expect(t, "requests of a candidate that is alone", []string{"get", "create"}, s.since())
		r := s.record()
		expect(t, "holder", "a", r.HolderIdentity)
		expect(t, "duration", 15, r.LeaseDurationSeconds)
		expect(t, "transitions", 0, r.LeaderTransitions)
		expect(t, "acquired and renewed at", []bool{true, true}, []bool{r.AcquireTime.Time.Equal(start), r.RenewTime.Time.Equal(start)})
		expect(t, "deadline", start.Add(10*time.Second), a.until())
		expect(t, "leads", []bool{true, true}, []bool{a.elector.IsLeader(), a.metrics.on})

		sleep(9 * time.Second)
		expect(t, "renewals every retry period, without a read", []string{"update", "update", "update", "update"}, s.since())
		r = s.record()
		expect(t, "acquired and renewed after", []time.Duration{0, 8 * time.Second}, []time.Duration{r.AcquireTime.Sub(start), r.RenewTime.Sub(start)})
		expect(t, "deadline", start.Add(18*time.Second), a.until())

		a.cancel()
		synctest.Wait()
		expect(t, "requests of a release", []string{"update"}, s.since())
		r = s.record()
		expect(t, "released holder, duration, transitions", []any{"", 1, 0}, []any{r.HolderIdentity, r.LeaseDurationSeconds, r.LeaderTransitions})
		expect(t, "life of a", []string{"leader a", "started", "canceled", "stopped", "returned"}, sortedFirst(a.notes(), 2))
		expect(t, "leads", []bool{false, false}, []bool{a.elector.IsLeader(), a.metrics.on})

		b := runCandidate(t, s.lock("b"))
		synctest.Wait()
		r = s.record()
		expect(t, "taken over by, transitions", []any{"b", 1}, []any{r.HolderIdentity, r.LeaderTransitions})
		b.cancel()
		synctest.Wait()
	})
}

// sortedFirst sorts the first n entries, whose order is not promised.
func sortedFirst(s []string, n int) []string {
	slices.Sort(s[:min(n, len(s))])
	return s
}

// A standby takes a released lease at once, because it watches.
func TestTakeoverAtRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(61 * time.Second)
		s.since()
		sleep(time.Minute)
		reads := slices.DeleteFunc(s.since(), func(op string) bool { return op == "update" })
		expect(t, "requests of a standby whose watch is alive", []string{}, reads)

		a.cancel()
		synctest.Wait()
		if !b.elector.IsLeader() {
			t.Error("the standby did not take over when the lease was released")
		}
		expect(t, "time from the end of a's work to the start of b's", time.Duration(0), b.time("started").Sub(a.time("canceled")))
		expect(t, "what b saw", []string{"leader a", "leader b", "started"}, sortedFirst(b.notes(), 3))
		expect(t, "leader known to b", "b", b.elector.GetLeader())
		b.cancel()
		synctest.Wait()
	})
}

// Without a watch a standby polls, and keeps on trying to watch.
func TestTakeoverWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{before: func(_ context.Context, op string, _ *coordinationv1.Lease) error {
			if op == "watch" {
				return apierrors.NewForbidden(leases, "test", nil)
			}
			return nil
		}}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(10 * time.Second)
		a.cancel()
		synctest.Wait()
		released := time.Now()
		sleep(time.Duration((1 + JitterFactor) * float64(core.retry)))
		if !b.elector.IsLeader() {
			t.Errorf("the standby did not take over within %v of the release", time.Since(released))
		}
		b.cancel()
		synctest.Wait()
	})
}

// A standby whose watch is silent, or was ended, finds out by polling.
func TestTakeoverWithDeadWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(10 * time.Second)
		s.mu.Lock()
		clear(s.watches)
		s.mu.Unlock()
		a.cancel()
		sleep(core.retry + time.Duration((1+JitterFactor)*float64(core.retry)))
		if !b.elector.IsLeader() {
			t.Error("the standby did not take over although it had no news for longer than usual")
		}
		b.cancel()
		synctest.Wait()
	})
}

func TestWatchIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(10 * time.Second)
		s.since()
		s.endWatches()
		synctest.Wait()
		expect(t, "requests after the server ended a long watch", []string{"watch"}, s.since())

		s.endWatches() // at once: no loop
		sleep(time.Second)
		if slices.Contains(s.since(), "watch") {
			t.Error("a watch that ended at once was renewed at once")
		}
		sleep(5 * time.Second)
		a.cancel()
		synctest.Wait()
		if !b.elector.IsLeader() {
			t.Error("the standby does not watch any more")
		}
		b.cancel()
		synctest.Wait()
	})
}

// A leader that is gone is replaced when its lease expires, not up to a retry period later.
func TestTakeoverAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dead := &leaseServer{}, &shared[bool]{}
		s.before = func(_ context.Context, _ string, lease *coordinationv1.Lease) error {
			if dead.get() && lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "a" {
				return errors.New("no route to host")
			}
			return nil
		}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(7 * time.Second)
		renewed := s.record().RenewTime.Time
		dead.set(true)
		sleep(30 * time.Second)

		expect(t, "a lost its lease after", 10*time.Second, a.time("stopped").Sub(renewed))
		expect(t, "a's context ended after", 10*time.Second, a.time("canceled").Sub(renewed))
		expect(t, "b took over after", 15*time.Second, b.time("started").Sub(renewed))
		if a.elector.IsLeader() || !b.elector.IsLeader() {
			t.Errorf("a leads: %v, b leads: %v", a.elector.IsLeader(), b.elector.IsLeader())
		}
		expect(t, "transitions", 1, s.record().LeaderTransitions)
		b.cancel()
		synctest.Wait()
	})
}

// After the loss not even the release is written, and the lease is never written past the deadline.
func TestNoWriteAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		var last shared[time.Time]
		var fail shared[bool]
		s.before = func(_ context.Context, op string, _ *coordinationv1.Lease) error {
			if !fail.get() {
				return nil
			}
			last.set(time.Now())
			return errors.New("connection refused")
		}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		fail.set(true)
		sleep(time.Minute)
		expect(t, "life of a", []string{"leader a", "started", "canceled", "stopped", "returned"}, sortedMiddle(sortedFirst(a.notes(), 2)))
		if !last.get().Before(a.until()) {
			t.Errorf("last request at %v, not before the deadline %v", last.get(), a.until())
		}
	})
}

// sortedMiddle sorts "canceled" and "stopped", which happen at the same time.
func sortedMiddle(s []string) []string {
	if len(s) >= 4 {
		slices.Sort(s[2:4])
	}
	return s
}

// Requests that hang are cut off in time for another, and at the deadline at the latest.
func TestHangingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tries := &leaseServer{}, &atomic.Int32{}
		var hang shared[bool]
		s.before = func(ctx context.Context, op string, _ *coordinationv1.Lease) error {
			if hang.get() {
				tries.Add(1)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		start := time.Now()
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		hang.set(true)
		sleep(time.Minute)
		expect(t, "requests before the deadline", int32(2), tries.Load())
		expect(t, "stopped after", 10*time.Second, a.time("stopped").Sub(start))
	})
}

// A lock that ignores its context cannot keep the work going past the deadline.
func TestStuckLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stuck := &leaseServer{}, make(chan struct{})
		var hang shared[bool]
		s.before = func(context.Context, string, *coordinationv1.Lease) error {
			if hang.get() {
				<-stuck
			}
			return nil
		}
		start := time.Now()
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		hang.set(true)
		sleep(20 * time.Second)
		expect(t, "work ended after", 10*time.Second, a.time("canceled").Sub(start))
		expect(t, "leads", false, a.elector.IsLeader())
		close(stuck)
		synctest.Wait()
		expect(t, "ended", []string{"stopped", "returned"}, a.notes()[3:])
	})
}

// An answer that got lost makes the version that the leader knows stale: it looks once and goes on.
func TestSlowPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lose := &leaseServer{}, &shared[bool]{}
		s.before = func(context.Context, string, *coordinationv1.Lease) error {
			if lose.get() {
				lose.set(false)
				return lostAnswer{errors.New("connection reset")}
			}
			return nil
		}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		s.since()
		lose.set(true)
		sleep(5 * time.Second)
		expect(t, "requests", []string{"update", "update", "get", "update"}, s.since())
		expect(t, "slow paths", 1, a.metrics.slowpath)
		if !a.elector.IsLeader() {
			t.Error("a lost answer cost the lease")
		}
		expect(t, "acquire time kept", time.Duration(0), s.record().AcquireTime.Sub(a.time("started")))

		s.edit(func(lease *coordinationv1.Lease) { lease.Labels = map[string]string{"note": "x"} })
		sleep(2 * time.Second)
		expect(t, "requests after an edit of the metadata", []string{"update", "get", "update"}, s.since())
		expect(t, "label", "x", s.lease.Labels["note"])

		s.edit(nil)
		sleep(2 * time.Second)
		expect(t, "requests after the lease was deleted", []string{"update", "get", "create"}, s.since())
		if !a.elector.IsLeader() {
			t.Error("a deleted lease, recreated in time, cost the leadership")
		}
		a.cancel()
		synctest.Wait()
	})
}

// A leader that finds another's name in the lease stops at once.
func TestUsurped(t *testing.T) {
	for _, usurper := range []string{"b", ""} {
		t.Run("holder="+usurper, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leaseServer{}
				a := runCandidate(t, s.lock("a"))
				sleep(time.Second)
				s.edit(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To(usurper) })
				edited := s.record()
				sleep(time.Second)
				expect(t, "end", "returned", a.notes()[len(a.notes())-1])
				expect(t, "lease left alone", true, edited.Equal(s.record()))
			})
		})
	}
}

// The lease is kept while the work winds down, and given back only then.
func TestReleaseWaitsForTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The server is too slow for the grace that a cancelled claim gets: renewals are no such claims.
		s, slow := &leaseServer{}, &shared[time.Duration]{}
		s.before = func(ctx context.Context, _ string, _ *coordinationv1.Lease) error {
			select {
			case <-time.After(slow.get()):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		a := runCandidate(t, s.lock("a"), func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(24 * time.Second)
				slow.set(0)
				time.Sleep(time.Second)
			}
		})
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(time.Second)
		slow.set(1500 * time.Millisecond)
		a.cancel()
		sleep(24 * time.Second)
		if !a.elector.IsLeader() || b.elector.IsLeader() {
			t.Error("the lease was lost while the work was winding down")
		}
		sleep(time.Second)
		if a.elector.IsLeader() || !b.elector.IsLeader() {
			t.Error("the lease was not handed over when the work had ended")
		}
		b.cancel()
		synctest.Wait()
	})
}

func TestNoReleaseUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"), func(c *LeaderElectionConfig) { c.ReleaseOnCancel = false })
		synctest.Wait()
		a.cancel()
		synctest.Wait()
		expect(t, "holder", "a", s.record().HolderIdentity)
		expect(t, "end", []string{"stopped", "returned"}, a.notes()[3:])
	})
}

// A claim that is under way when the candidate is told to stop is finished, so that the lease can be given back.
func TestCancelledWhileClaiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{before: func(ctx context.Context, op string, _ *coordinationv1.Lease) error {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		}}
		a := runCandidate(t, s.lock("a"))
		sleep(600 * time.Millisecond) // the read is done, the create is under way
		a.cancel()
		sleep(2 * time.Second)
		expect(t, "life of a", []string{"leader a", "stopped", "returned"}, sortedFirst(a.notes(), 2))
		expect(t, "holder", "", s.record().HolderIdentity)
		expect(t, "requests", []string{"get", "create", "update"}, s.since())
	})
}

func TestCancelledStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		b := runCandidate(t, s.lock("b"))
		sleep(5 * time.Second)
		b.cancel()
		synctest.Wait()
		expect(t, "life of b", []string{"leader a", "stopped", "returned"}, b.notes())
		expect(t, "holder", "a", s.record().HolderIdentity)
		a.cancel()
		synctest.Wait()
	})
}

// An elector may run again after it has ended.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		a.cancel()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go a.elector.Run(ctx)
		sleep(3 * time.Second)
		expect(t, "leads again, with one more transition", []any{true, 1}, []any{a.elector.IsLeader(), s.record().LeaderTransitions})
		cancel()
		synctest.Wait()
	})
}

// An API server that refuses everything is asked at the pace of the retry period.
func TestNoBusyLoop(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden": apierrors.NewForbidden(leases, "test", nil),
		"conflict":  apierrors.NewConflict(leases, "test", nil),
		"exists":    apierrors.NewAlreadyExists(leases, "test"),
		"not found": apierrors.NewNotFound(leases, "test"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, requests := &leaseServer{}, &atomic.Int32{}
				s.before = func(_ context.Context, op string, _ *coordinationv1.Lease) error {
					requests.Add(1)
					if op == "get" {
						return nil
					}
					return err
				}
				a := runCandidate(t, s.lock("a"))
				sleep(time.Minute)
				if n := requests.Load(); n < 20 || n > 64 {
					t.Errorf("%d requests a minute, want two for each of 14 to 30 tries", n)
				}
				a.cancel()
				synctest.Wait()
			})
		})
	}
}

// Check fails only when a leader's work goes on long after its lease has expired.
func TestWatchDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dog, hung := &leaseServer{}, NewLeaderHealthzAdaptor(20*time.Second), make(chan struct{})
		expect(t, "name", "leaderElection", dog.Name())
		expect(t, "check before the election exists", nil, dog.Check(nil))
		var fail shared[bool]
		s.before = func(context.Context, string, *coordinationv1.Lease) error {
			if fail.get() {
				return errors.New("connection refused")
			}
			return nil
		}
		a := runCandidate(t, s.lock("a"), func(c *LeaderElectionConfig) {
			c.WatchDog = dog
			c.Callbacks.OnStartedLeading = func(context.Context) { <-hung }
		})
		synctest.Wait()
		expect(t, "check of a leader", nil, dog.Check(nil))
		fail.set(true)
		sleep(35 * time.Second)
		expect(t, "check at 15s+20s", nil, dog.Check(nil))
		sleep(time.Second)
		if err := dog.Check(nil); err == nil {
			t.Error("check passes although the work of a lost lease goes on")
		} else {
			expect(t, "error", "failed election to renew leadership on lease test: last renewed 36s ago", err.Error())
		}
		expect(t, "told to stop, not returned", "stopped", a.notes()[len(a.notes())-1])
		close(hung)
		synctest.Wait()
		expect(t, "check when all is over", nil, dog.Check(nil))
	})
}

// A slow OnNewLeader does not hold up the election, and calls keep their order.
func TestOnNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		a := runCandidate(t, s.lock("a"))
		synctest.Wait()
		var seen shared[[]string]
		b := runCandidate(t, s.lock("b"), func(c *LeaderElectionConfig) {
			c.Callbacks.OnNewLeader = func(identity string) {
				time.Sleep(30 * time.Second)
				seen.set(append(seen.get(), identity))
			}
		})
		sleep(5 * time.Second)
		a.cancel()
		synctest.Wait()
		if !b.elector.IsLeader() {
			t.Error("a slow callback held up the election")
		}
		sleep(5 * time.Second)
		b.cancel()
		sleep(time.Minute)
		expect(t, "leaders seen", []string{"a", "b"}, seen.get())
		expect(t, "end", "returned", b.notes()[len(b.notes())-1])
	})
}
