// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var leases = coordinationv1.Resource("leases")

// leaseServer is an API server that holds one Lease.
type leaseServer struct {
	coordinationv1client.LeaseInterface // what no lock calls panics

	// before, if set, is called for each request and may delay it or fail it; op is get, create, update or watch.
	// An error that says so was served nevertheless: the answer was lost.
	before func(ctx context.Context, op string, lease *coordinationv1.Lease) error

	// mu guards the following fields.
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	uids    int
	watches map[*watch.RaceFreeFakeWatcher]bool
	calls   []string
}

// lostAnswer is the error of a request that was served.
type lostAnswer struct{ error }

func (s *leaseServer) Leases(string) coordinationv1client.LeaseInterface { return s }

// lock makes the lock of a candidate.
func (s *leaseServer) lock(identity string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "test"},
		Client:     s,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

func (s *leaseServer) request(ctx context.Context, op string, lease *coordinationv1.Lease, serve func() error) error {
	var lost error
	if s.before != nil {
		if err := s.before(ctx, op, lease); err != nil {
			if _, ok := err.(lostAnswer); !ok {
				return err
			}
			lost = err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, op)
	if err := serve(); err != nil {
		return err
	}
	return lost
}

func (s *leaseServer) Get(ctx context.Context, name string, _ metav1.GetOptions) (out *coordinationv1.Lease, err error) {
	err = s.request(ctx, "get", nil, func() error {
		if s.lease == nil {
			return apierrors.NewNotFound(leases, name)
		}
		out = s.lease.DeepCopy()
		return nil
	})
	return out, err
}

func (s *leaseServer) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (out *coordinationv1.Lease, err error) {
	err = s.request(ctx, "create", lease, func() error {
		if s.lease != nil {
			return apierrors.NewAlreadyExists(leases, lease.Name)
		}
		s.uids++
		lease = lease.DeepCopy()
		lease.UID = types.UID(strconv.Itoa(s.uids))
		out = s.storeLocked(lease, watch.Added)
		return nil
	})
	return out, err
}

func (s *leaseServer) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (out *coordinationv1.Lease, err error) {
	err = s.request(ctx, "update", lease, func() error {
		switch {
		case s.lease == nil:
			return apierrors.NewNotFound(leases, lease.Name)
		case lease.ResourceVersion != s.lease.ResourceVersion || lease.UID != s.lease.UID:
			return apierrors.NewConflict(leases, lease.Name, nil)
		}
		out = s.storeLocked(lease.DeepCopy(), watch.Modified)
		return nil
	})
	return out, err
}

func (s *leaseServer) Watch(ctx context.Context, _ metav1.ListOptions) (out watch.Interface, err error) {
	err = s.request(ctx, "watch", nil, func() error {
		w := watch.NewRaceFreeFake()
		if s.watches == nil {
			s.watches = map[*watch.RaceFreeFakeWatcher]bool{}
		}
		s.watches[w] = true
		if s.lease != nil {
			w.Add(s.lease.DeepCopy())
		}
		out = w
		return nil
	})
	if err != nil && out != nil {
		out.Stop() // the answer was lost, and the connection with it
		return nil, err
	}
	return out, err
}

func (s *leaseServer) storeLocked(lease *coordinationv1.Lease, event watch.EventType) *coordinationv1.Lease {
	s.version++
	lease.ResourceVersion = strconv.Itoa(s.version)
	s.lease = lease
	s.sendLocked(event, lease)
	return lease.DeepCopy()
}

func (s *leaseServer) sendLocked(event watch.EventType, lease *coordinationv1.Lease) {
	for w := range s.watches {
		if w.IsStopped() {
			delete(s.watches, w)
			continue
		}
		w.Action(event, lease.DeepCopy())
	}
}

// edit changes the Lease the way an administrator does; nil deletes it.
func (s *leaseServer) edit(change func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change == nil {
		s.sendLocked(watch.Deleted, s.lease)
		s.lease = nil
		return
	}
	lease := s.lease.DeepCopy()
	change(lease)
	s.storeLocked(lease, watch.Modified)
}

// endWatches closes all streams as an API server does from time to time.
func (s *leaseServer) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.Stop()
	}
	clear(s.watches)
}

func (s *leaseServer) record() resourcelock.LeaderElectionRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return resourcelock.LeaderElectionRecord{}
	}
	return *resourcelock.LeaseSpecToLeaderElectionRecord(&s.lease.Spec)
}

// since returns the requests that were served since the last call.
func (s *leaseServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// fakeMetrics counts.
type fakeMetrics struct {
	mu       sync.Mutex
	on       bool
	slowpath int
}

func (m *fakeMetrics) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}
func (m *fakeMetrics) On(string)                { m.set(func() { m.on = true }) }
func (m *fakeMetrics) Off(string)               { m.set(func() { m.on = false }) }
func (m *fakeMetrics) SlowpathExercised(string) { m.set(func() { m.slowpath++ }) }

// fakeCandidate runs an elector and notes what becomes of it.
type fakeCandidate struct {
	elector *LeaderElector
	metrics fakeMetrics
	cancel  context.CancelFunc

	mu sync.Mutex
	// log holds "started", "canceled" (the leader's context), "stopped", "returned", and "leader x".
	log []string
	// when holds the time of each entry of log.
	when     map[string]time.Time
	deadline time.Time
}

func (c *fakeCandidate) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what)
	c.when[what] = time.Now()
}

func (c *fakeCandidate) notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.log...)
}

func (c *fakeCandidate) time(what string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.when[what]
}

func (c *fakeCandidate) until() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline
}

// runCandidate starts a candidate with the core components' durations. It must run in a synctest bubble.
func runCandidate(t *testing.T, lock resourcelock.Interface, change ...func(*LeaderElectionConfig)) *fakeCandidate {
	t.Helper()
	c := &fakeCandidate{when: map[string]time.Time{}}
	config := LeaderElectionConfig{
		Lock: lock, LeaseDuration: core.lease, RenewDeadline: core.renewDeadline, RetryPeriod: core.retry,
		Name: "test", Metrics: &c.metrics, ReleaseOnCancel: true,
		Callbacks: LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.note("started")
				<-ctx.Done()
				c.note("canceled")
			},
			OnStoppedLeading: func() { c.note("stopped") },
			OnNewLeader:      func(identity string) { c.note("leader " + identity) },
			OnRenewed: func(deadline time.Time) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.deadline = deadline
			},
		},
	}
	for _, f := range change {
		f(&config)
	}
	elector, err := NewLeaderElector(config)
	if err != nil {
		t.Fatal(err)
	}
	c.elector = elector
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	go func() {
		elector.Run(ctx)
		c.note("returned")
	}()
	return c
}
