// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// cancelGrace is how long a write that is under way when a candidate is told to stop may take to finish: cutting it
// off would leave behind a lease that nobody holds and nobody may take.
const cancelGrace = time.Second

var errRequestTimeout = errors.New("leader election request timed out")

// run is one call of LeaderElector.Run. Its fields belong to the goroutine of that call.
type run struct {
	*LeaderElector
	logger klog.Logger
	view   view
	// news brings what the watch sees; nil until there is a watch.
	news <-chan lookup
	// unwatch ends the watch and waits for its goroutine.
	unwatch func()
	// leaders calls OnNewLeader.
	leaders sequence
	// reported is the leader that OnNewLeader was last told of.
	reported string
	// expire ends the context of OnStartedLeading at the deadline, whatever this goroutine is busy with.
	expire clock.Timer
}

// lookup is one look at the lock; nil for a lock that does not exist.
type lookup struct{ lock *resourcelock.Observation }

func newRun(ctx context.Context, e *LeaderElector) *run {
	return &run{
		LeaderElector: e,
		logger:        klog.FromContext(ctx).WithValues("lock", e.config.Lock.Describe()),
		view: view{
			identity: e.config.Lock.Identity(),
			timing:   timing{lease: e.config.LeaseDuration, renewDeadline: e.config.RenewDeadline, retry: e.config.RetryPeriod},
		},
		unwatch: func() {},
	}
}

func (r *run) run(ctx context.Context) {
	defer r.leaders.wait()
	defer r.publish(false)
	won := r.acquire(ctx)
	switch {
	case won && ctx.Err() == nil:
		r.lead(ctx)
		return
	case won && r.config.ReleaseOnCancel:
		r.release(context.WithoutCancel(ctx))
	}
	r.view.leading = false
	r.config.Callbacks.OnStoppedLeading()
}

// acquire returns true once the candidate leads, and false when ctx is done before.
func (r *run) acquire(ctx context.Context) bool {
	r.logger.Info("Attempting to acquire leader lease")
	defer func() { r.unwatch() }()
	for ctx.Err() == nil {
		next := r.view.next(r.config.Clock.Now())
		if next.verb == wait {
			r.watch(ctx)
			r.rest(ctx, next.until, nil)
			continue
		}
		if r.perform(ctx, next) {
			r.logger.Info("Successfully acquired lease")
			return true
		}
	}
	return false
}

// lead runs OnStartedLeading and renews the lease until it is lost, or until ctx is done and the work has stopped.
func (r *run) lead(ctx context.Context) {
	working, cancelWork := context.WithCancel(ctx)
	defer cancelWork()
	r.expire = r.config.Clock.AfterFunc(r.view.deadline.Sub(r.config.Clock.Now()), cancelWork)
	defer r.expire.Stop()

	r.config.Lock.RecordEvent("became leader")
	r.config.Metrics.On(r.config.Name)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		r.config.Callbacks.OnStartedLeading(working)
	}()

	reason := r.renew(ctx, working, worked)
	r.view.leading = false
	cancelWork()
	r.publish(true)
	r.config.Lock.RecordEvent("stopped leading")
	r.config.Metrics.Off(r.config.Name)
	if reason == "" {
		r.logger.Info("Stopped leading")
	} else {
		r.logger.Error(nil, "Lost leadership", "reason", reason)
	}
	r.config.Callbacks.OnStoppedLeading()
	<-worked
}

// renew keeps the lease. It returns why it was lost, or "" after ctx is done and worked is closed.
func (r *run) renew(ctx, working context.Context, worked <-chan struct{}) (reason string) {
	// The lease is kept while the work winds down, which may take longer than a renewal.
	keep := context.WithoutCancel(ctx)
	for {
		if ctx.Err() != nil && closed(worked) {
			if r.config.ReleaseOnCancel {
				r.release(keep)
			}
			return ""
		}
		next := r.view.next(r.config.Clock.Now())
		// The work has been told to stop when a deadline passed, even if a renewal came through just then.
		if ctx.Err() == nil && working.Err() != nil {
			return pastDeadline
		}
		switch next.verb {
		case stop:
			return next.reason
		case wait:
			r.rest(ctx, next.until, worked)
		default:
			r.perform(keep, next)
		}
	}
}

// rest waits for a time, for news, or for the end: of ctx, and if that has come, of worked.
func (r *run) rest(ctx context.Context, until time.Time, worked <-chan struct{}) {
	timer := r.config.Clock.NewTimer(until.Sub(r.config.Clock.Now()))
	defer timer.Stop()
	done := ctx.Done()
	if ctx.Err() == nil {
		worked = nil
	} else {
		done = nil
	}
	select {
	case <-done:
	case <-worked:
	case <-timer.C():
	case seen := <-r.news:
		r.found(seen.lock, r.config.RetryPeriod+r.jittered())
	}
}

// perform carries out a request and takes in its outcome. It reports whether the lease was won or renewed.
func (r *run) perform(ctx context.Context, next step) bool {
	start := r.config.Clock.Now()
	lock, err := r.send(ctx, next)
	now := r.config.Clock.Now()
	reading := next.verb == read
	switch {
	case err == nil && reading:
		r.found(lock, r.jittered())
	case err == nil:
		won := r.view.wrote(lock, start, now)
		r.publish(r.view.leading)
		return won
	case apierrors.IsNotFound(err) && reading:
		r.found(nil, r.jittered())
	case conflict(next.verb, err):
		r.logger.V(4).Info("The lease has changed since it was read", "err", err)
		if r.view.leading {
			r.config.Metrics.SlowpathExercised(r.config.Name)
		}
		r.view.conflicted(now, r.jittered())
	default:
		if ctx.Err() == nil {
			r.logger.Error(err, "Request for the lease failed", "leading", r.view.leading)
		}
		r.view.failed(start, now, r.jittered())
	}
	return false
}

// send sends the request of a step, bounded so that one that hangs leaves time for another before the deadline.
func (r *run) send(ctx context.Context, next step) (*resourcelock.Observation, error) {
	limit := max(time.Second, r.config.RenewDeadline/2)
	if r.view.leading {
		limit = min(limit, r.view.deadline.Sub(r.config.Clock.Now()))
	}
	if next.verb == read {
		ctx, cancel := r.bound(ctx, limit)
		defer cancel()
		return r.config.Lock.Get(ctx)
	}
	// A write outlives its caller a little.
	detached, cancel := r.bound(context.WithoutCancel(ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { r.config.Clock.AfterFunc(cancelGrace, cancel) })()
	if next.verb == create {
		return r.config.Lock.Create(detached, next.record)
	}
	return r.config.Lock.Update(detached, r.view.lock, next.record)
}

// bound ends a context after d of the elector's clock.
func (r *run) bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := r.config.Clock.AfterFunc(d, func() { cancel(errRequestTimeout) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// release gives the lease back if it is still this candidate's, which a second look decides if the version that it
// knows is out of date. Past the deadline it writes nothing.
func (r *run) release(ctx context.Context) {
	for range 2 {
		now := r.config.Clock.Now()
		switch {
		case !now.Before(r.view.deadline):
			return
		case r.view.known == unread:
			r.perform(ctx, step{verb: read})
		}
		if r.view.known != seen || r.view.lock.Record.HolderIdentity != r.view.identity {
			return
		}
		lock, err := r.send(ctx, step{verb: update, record: r.view.release(r.config.Clock.Now())})
		if err == nil {
			r.view.leading = false
			r.found(lock, 0)
			return
		}
		r.logger.Error(err, "Failed to release the lease")
		if !conflict(update, err) {
			return
		}
		r.view.known = unread
	}
}

func (r *run) found(lock *resourcelock.Observation, patience time.Duration) {
	r.view.found(lock, r.config.Clock.Now(), patience)
	r.publish(r.view.leading)
}

// publish tells the world what this goroutine knows: other goroutines through the elector's fields, the callbacks
// of the lease and its holder. working says that a leader's work may be going on.
func (r *run) publish(working bool) {
	leader, deadline := "", time.Time{}
	if r.view.lock != nil && r.view.known != absent {
		leader = r.view.lock.Record.HolderIdentity
	}
	if r.view.leading {
		deadline = r.view.deadline
	}
	r.mu.Lock()
	r.leader = leader
	renewed := !deadline.Equal(r.deadline) && r.view.leading
	r.deadline = deadline
	switch {
	case renewed:
		r.LeaderElector.renewed = deadline.Add(-r.config.RenewDeadline)
	case !working:
		r.LeaderElector.renewed = time.Time{}
	}
	r.mu.Unlock()

	if renewed {
		if r.expire != nil {
			r.expire.Reset(deadline.Sub(r.config.Clock.Now()))
		}
		if r.config.Callbacks.OnRenewed != nil {
			r.config.Callbacks.OnRenewed(deadline)
		}
	}
	if leader != "" && leader != r.reported {
		r.reported = leader
		if r.config.Callbacks.OnNewLeader != nil {
			r.leaders.do(func() { r.config.Callbacks.OnNewLeader(leader) })
		}
	}
}

func (r *run) jittered() time.Duration {
	return utilwait.Jitter(r.config.RetryPeriod, JitterFactor)
}

// conflict reports that a write was refused because someone else's came first.
func conflict(v verb, err error) bool {
	switch v {
	case create:
		return apierrors.IsAlreadyExists(err)
	case update:
		return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	default:
		return false
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sequence runs functions one after the other without holding up its caller.
type sequence struct{ last chan struct{} }

func (s *sequence) do(f func()) {
	before, done := s.last, make(chan struct{})
	s.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		f()
	}()
}

// wait returns when everything has run.
func (s *sequence) wait() {
	if s.last != nil {
		<-s.last
	}
}
