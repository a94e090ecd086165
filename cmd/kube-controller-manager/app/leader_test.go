// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

func testElection() componentbaseconfig.LeaderElectionConfiguration {
	return componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:   ptr.To(true),
		LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
	}
}

// lease is a Lease in memory.
type lease struct {
	// mu guards the following fields.
	mu      sync.Mutex
	version int
	record  resourcelock.LeaderElectionRecord
}

func (l *lease) observe() *resourcelock.Observation {
	return &resourcelock.Observation{Record: l.record, UID: "uid", ResourceVersion: strconv.Itoa(l.version)}
}

func (l *lease) write(check func() error, record resourcelock.LeaderElectionRecord) (*resourcelock.Observation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := check(); err != nil {
		return nil, err
	}
	l.version++
	l.record = record
	return l.observe(), nil
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.HolderIdentity
}

// lock is one candidate's view of a lease.
type lock struct {
	*lease
	identity string
}

func (l lock) Get(context.Context) (*resourcelock.Observation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version == 0 {
		return nil, apierrors.NewNotFound(leases, "kube-controller-manager")
	}
	return l.observe(), nil
}

func (l lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) (*resourcelock.Observation, error) {
	return l.write(func() error {
		if l.version > 0 {
			return apierrors.NewAlreadyExists(leases, "kube-controller-manager")
		}
		return nil
	}, record)
}

func (l lock) Update(_ context.Context, base *resourcelock.Observation, record resourcelock.LeaderElectionRecord) (*resourcelock.Observation, error) {
	return l.write(func() error {
		if base.ResourceVersion != strconv.Itoa(l.version) {
			return apierrors.NewConflict(leases, "kube-controller-manager", errors.New("changed"))
		}
		return nil
	}, record)
}

func (lock) Watch(ctx context.Context, _ func(*resourcelock.Observation)) error {
	<-ctx.Done()
	return nil
}

func (lock) RecordEvent(string) {}
func (l lock) Identity() string { return l.identity }
func (lock) Describe() string   { return "kube-system/kube-controller-manager" }

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func testTenure(l *lease, identity string, run func(ctx context.Context, fence *gate.Fence) error) *tenure {
	fence := gate.NewFence(clock.RealClock{})
	return &tenure{
		lockName: "kube-controller-manager", lock: lock{l, identity}, fence: fence,
		run: func(ctx context.Context) error { return run(ctx, fence) },
	}
}

// candidate runs a tenure in the background.
type candidate struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func startCandidate(ctx context.Context, tenure *tenure) *candidate {
	ctx, cancel := context.WithCancel(ctx)
	c := &candidate{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = tenure.elect(ctx, testElection())
	}()
	return c
}

func TestHandoverOnSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		start := time.Now()
		var writesEnd, secondLeads time.Duration
		first := startCandidate(t.Context(), testTenure(l, "first", func(ctx context.Context, fence *gate.Fence) error {
			<-ctx.Done()
			time.Sleep(4 * time.Second) // The controllers wind up, and still write.
			if err := fence.Err(); err != nil {
				t.Errorf("a controller that is winding up may not write: %v", err)
			}
			writesEnd = time.Since(start)
			return nil
		}))
		synctest.Wait()
		second := startCandidate(t.Context(), testTenure(l, "second", func(ctx context.Context, _ *gate.Fence) error {
			secondLeads = time.Since(start)
			<-ctx.Done()
			return nil
		}))
		time.Sleep(time.Minute)
		first.stop()
		<-first.done
		if first.err != nil {
			t.Errorf("the first ended with %v, want nil", first.err)
		}
		time.Sleep(5 * time.Second)
		second.stop()
		<-second.done
		if secondLeads <= writesEnd {
			t.Errorf("the second led after %s, while the first wrote until %s", secondLeads, writesEnd)
		}
		if secondLeads > writesEnd+5*time.Second {
			t.Errorf("the second led %s after the first had stopped, want at once", secondLeads-writesEnd)
		}
	})
}

func TestLostLeaseClosesTheFenceAndIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		var atEnd error
		c := startCandidate(t.Context(), testTenure(l, "self", func(ctx context.Context, fence *gate.Fence) error {
			if err := fence.Err(); err != nil {
				t.Errorf("a leader may not write: %v", err)
			}
			<-ctx.Done()
			atEnd = fence.Err()
			return nil
		}))
		time.Sleep(5 * time.Second)
		if _, err := l.write(func() error { return nil }, resourcelock.LeaderElectionRecord{HolderIdentity: "usurper", LeaseDurationSeconds: 15}); err != nil {
			t.Fatal(err)
		}
		<-c.done
		if !errors.Is(c.err, errLeaseLost) || !strings.Contains(c.err.Error(), "kube-system/kube-controller-manager") {
			t.Errorf("error = %v, want %v naming the lease", c.err, errLeaseLost)
		}
		if !errors.Is(atEnd, gate.ErrFenced) {
			t.Errorf("when the lease was lost, the fence said %v, want %v", atEnd, gate.ErrFenced)
		}
	})
}

func TestFailingControllersGiveTheLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		failure := errors.New("building foo: no key")
		c := startCandidate(t.Context(), testTenure(l, "self", func(context.Context, *gate.Fence) error { return failure }))
		<-c.done
		if !errors.Is(c.err, failure) || errors.Is(c.err, errLeaseLost) {
			t.Errorf("error = %v, want only the controllers' own", c.err)
		}
		if holder := l.holder(); holder != "" {
			t.Errorf("the lease is still held by %q", holder)
		}
	})
}

func TestControllersThatOverstayCannotWriteOnceTheLeaseIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		tenure := testTenure(l, "self", func(ctx context.Context, _ *gate.Fence) error {
			<-ctx.Done()
			return errShutdownTimeout
		})
		c := startCandidate(t.Context(), tenure)
		synctest.Wait()
		c.stop()
		<-c.done
		if !errors.Is(c.err, errShutdownTimeout) {
			t.Errorf("error = %v, want %v", c.err, errShutdownTimeout)
		}
		if err := tenure.fence.Err(); !errors.Is(err, gate.ErrFenced) {
			t.Errorf("fence says %v, want %v", err, gate.ErrFenced)
		}
	})
}

func TestStandbyStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		leader := startCandidate(t.Context(), testTenure(l, "leader", func(ctx context.Context, _ *gate.Fence) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		standby := startCandidate(t.Context(), testTenure(l, "standby", func(context.Context, *gate.Fence) error {
			t.Error("the standby led")
			return nil
		}))
		time.Sleep(30 * time.Second)
		start := time.Now()
		standby.stop()
		<-standby.done
		if standby.err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("the standby ended with %v after %s, want nil at once", standby.err, time.Since(start))
		}
		leader.stop()
		<-leader.done
	})
}

func TestIdentity(t *testing.T) {
	a, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := newIdentity()
	if a == b || !regexp.MustCompile(`^.+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(a) {
		t.Errorf("identities %q and %q, want host_uuid, each its own", a, b)
	}
}
