// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// timing holds the three durations of LeaderElectionConfig.
type timing struct {
	lease, renewDeadline, retry time.Duration
}

// knowledge is what a candidate knows of the lock.
type knowledge int

const (
	// unread: nothing yet, or a write has shown that the last look is out of date.
	unread knowledge = iota
	// absent: there is no such object.
	absent
	// seen: view.lock is what it looked like last.
	seen
)

// view is everything that a candidate's next step depends on. All times are readings of its own clock.
type view struct {
	identity string
	timing   timing

	known knowledge
	// lock is the last look at the lock, kept while known is unread: the record may turn out to be the same.
	lock *resourcelock.Observation
	// since is when lock's record was first seen as it is, or the lock as gone; it changed no later than that.
	since time.Time
	// gone says that the lock was found deleted after lock was seen, by each look since then. Who did not look does
	// not know whether it was made and deleted again.
	gone bool

	// leading says that the last write made this candidate the holder, and that it was not found out to have lost.
	leading bool
	// deadline is until when a leader may act.
	deadline time.Time

	// notBefore is when the next request may be sent.
	notBefore time.Time
	// readAt is when a standby looks again, for want of news.
	readAt time.Time
	// conflicts counts writes in a row that lost to someone else's.
	conflicts int
}

type verb int

const (
	// wait until step.until, or for news.
	wait verb = iota
	// read the lock.
	read
	// create the lock with step.record.
	create
	// update the lock as it was seen to step.record.
	update
	// stop leading, for step.reason.
	stop
)

// releasedSeconds is the duration in the record of a lock that was given back; client-go's candidates write the same.
const releasedSeconds = 1

const pastDeadline = "the lease was not renewed before its deadline"

// step is what to do next.
type step struct {
	verb   verb
	until  time.Time
	record resourcelock.LeaderElectionRecord
	reason string
}

// next decides what the candidate does at now.
func (v *view) next(now time.Time) step {
	if v.leading {
		if !now.Before(v.deadline) {
			return step{verb: stop, reason: pastDeadline}
		}
		if v.known == seen && v.lock.Record.HolderIdentity != v.identity {
			return step{verb: stop, reason: lossReason(v.lock.Record.HolderIdentity)}
		}
	}
	if now.Before(v.notBefore) {
		return step{verb: wait, until: v.wake(v.notBefore)}
	}
	switch v.known {
	case unread:
		return step{verb: read}
	case absent:
		if !v.mayActStill(now) {
			return step{verb: create, record: v.claim(now)}
		}
	case seen:
		if v.open(now) {
			return step{verb: update, record: v.claim(now)}
		}
	}
	if !now.Before(v.readAt) {
		return step{verb: read}
	}
	return step{verb: wait, until: v.wake(earlier(v.readAt, v.expiry()))}
}

// mayActStill reports whether a lock that was deleted had another holder, who may not know yet and acts until its
// deadline: the last one seen, or one that this candidate, cut off, never saw. Usually the holder makes the lock anew
// meanwhile. A candidate that has never seen the lock cannot tell a deleted one from one that never was.
func (v *view) mayActStill(now time.Time) bool {
	if v.lock == nil || v.leading && v.lock.Record.HolderIdentity == v.identity {
		return false
	}
	return now.Before(v.expiry())
}

// open reports whether the lock, as seen, is the candidate's to take or to renew.
func (v *view) open(now time.Time) bool {
	return v.lock.Record.HolderIdentity == v.identity || released(v.lock.Record) || !now.Before(v.expiry())
}

// released reports whether the holder has given the lock back. Whoever empties the holder's name by hand leaves the
// holder's duration behind: the holder does not know yet, and acts until its deadline.
func released(record resourcelock.LeaderElectionRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds <= releasedSeconds
}

// expiry is when the record, if it does not change, stops protecting its holder. A record without a duration, which
// no candidate writes, gets this candidate's own; so does the unknown last record of a lock that is gone, if that is
// longer.
func (v *view) expiry() time.Time {
	d := time.Duration(v.lock.Record.LeaseDurationSeconds) * time.Second
	if d <= 0 || v.gone && d < v.timing.lease {
		d = v.timing.lease
	}
	return v.since.Add(d)
}

// claim is the record that makes the candidate the holder, or keeps it so.
func (v *view) claim(now time.Time) resourcelock.LeaderElectionRecord {
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity:       v.identity,
		LeaseDurationSeconds: wholeSeconds(v.timing.lease),
		AcquireTime:          metav1.NewMicroTime(now),
		RenewTime:            metav1.NewMicroTime(now),
	}
	if v.known != seen {
		return record
	}
	old := v.lock.Record
	if old.HolderIdentity != v.identity {
		record.LeaderTransitions = old.LeaderTransitions + 1
		return record
	}
	record.LeaderTransitions = old.LeaderTransitions
	if !old.AcquireTime.IsZero() {
		record.AcquireTime = old.AcquireTime
	}
	// With a clock that stands still the record would stay the same, the API server would write nothing, and the
	// others would see no renewal.
	if record.Equal(old) {
		record.RenewTime = metav1.NewMicroTime(now.Add(time.Microsecond))
	}
	return record
}

// release is the record that gives the lock back: nobody's, and expired in a second for candidates that do not know
// an empty holder.
func (v *view) release(now time.Time) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: releasedSeconds,
		AcquireTime:          metav1.NewMicroTime(now),
		RenewTime:            metav1.NewMicroTime(now),
		LeaderTransitions:    v.lock.Record.LeaderTransitions,
	}
}

// found takes in a look at the lock, nil when there is none, that was current at now or a little before. No news is
// expected before now+patience.
func (v *view) found(lock *resourcelock.Observation, now time.Time, patience time.Duration) {
	v.notBefore = time.Time{}
	v.readAt = now.Add(patience)
	if lock == nil {
		if !v.gone {
			v.since, v.gone = now, true
		}
		v.known = absent
		return
	}
	if v.gone || v.lock == nil || v.lock.UID != lock.UID || !v.lock.Record.Equal(lock.Record) {
		v.since = now
	}
	v.known, v.lock, v.gone = seen, lock, false
}

// wrote takes in the answer to a claim that was sent at start. It reports whether the candidate leads: not when the
// answer took so long that the lease may be gone already.
func (v *view) wrote(lock *resourcelock.Observation, start, now time.Time) bool {
	v.known, v.lock, v.since, v.gone = seen, lock, now, false
	v.conflicts = 0
	v.notBefore = start.Add(v.timing.retry)
	if deadline := start.Add(v.timing.renewDeadline); now.Before(deadline) {
		v.leading, v.deadline = true, deadline
	}
	return v.leading && now.Before(v.deadline)
}

// failed takes in that a request sent at start has failed, so that nobody knows whether it took effect. A leader
// goes on from the version it knows: if the write did take effect, the next one conflicts.
func (v *view) failed(start, now time.Time, pause time.Duration) {
	if v.leading {
		v.notBefore = start.Add(v.timing.retry)
		return
	}
	v.known, v.gone = unread, false
	v.notBefore = now.Add(pause)
}

// conflicted takes in that someone else has written, created or deleted the lock since the last look. The first time
// the candidate looks again at once; a server that answers so for ever is not asked without end.
func (v *view) conflicted(now time.Time, pause time.Duration) {
	v.known, v.gone = unread, false
	v.notBefore = time.Time{}
	v.conflicts++
	if v.conflicts > 1 {
		v.notBefore = now.Add(pause)
	}
}

// wake limits a wait: a leader has to be up when its deadline passes.
func (v *view) wake(until time.Time) time.Time {
	if v.leading {
		return earlier(until, v.deadline)
	}
	return until
}

func lossReason(holder string) string {
	if holder == "" {
		return "the lease was released by someone else"
	}
	return "the lease is held by " + holder
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
