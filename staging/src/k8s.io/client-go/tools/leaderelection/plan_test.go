// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

var (
	core  = timing{lease: 15 * time.Second, renewDeadline: 10 * time.Second, retry: 2 * time.Second}
	epoch = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
)

// at is a time of the tests, counted in seconds.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func micro(seconds float64) metav1.MicroTime { return metav1.NewMicroTime(at(seconds)) }

func heldBy(holder string) *resourcelock.Observation {
	return &resourcelock.Observation{Record: resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: 15, AcquireTime: micro(-100), RenewTime: micro(-1), LeaderTransitions: 7,
	}}
}

func lasting(o *resourcelock.Observation, seconds int) *resourcelock.Observation {
	o.Record.LeaseDurationSeconds = seconds
	return o
}

func TestNext(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, AcquireTime: micro(0), RenewTime: micro(0)}
	taken := mine
	taken.LeaderTransitions = 8
	renewed := taken
	renewed.AcquireTime, renewed.LeaderTransitions = micro(-100), 7

	for _, tc := range []struct {
		name string
		view view // decided on at second 0
		want step
	}{
		{name: "knows nothing yet", want: step{verb: read}},
		{name: "no lock", view: view{known: absent}, want: step{verb: create, record: mine}},
		{name: "another's, deleted: the holder may act still",
			view: view{known: absent, lock: heldBy("other"), since: at(-14), readAt: at(3)}, want: step{verb: wait, until: at(1)}},
		{name: "another's, deleted, no news",
			view: view{known: absent, lock: heldBy("other"), since: at(-4), readAt: at(0)}, want: step{verb: read}},
		{name: "another's, deleted, and would have expired",
			view: view{known: absent, lock: heldBy("other"), since: at(-15), readAt: at(3)}, want: step{verb: create, record: mine}},
		{name: "released, then perhaps taken unseen, then deleted", view: view{known: absent, lock: lasting(heldBy(""), 1), since: at(-14), gone: true, readAt: at(3)},
			want: step{verb: wait, until: at(1)}},
		{name: "released, then deleted as long ago as a lease lasts", view: view{known: absent, lock: lasting(heldBy(""), 1), since: at(-15), gone: true},
			want: step{verb: create, record: mine}},
		{name: "its own from an earlier life, then perhaps taken unseen, then deleted", view: view{known: absent, lock: heldBy("me"), since: at(-14), gone: true, readAt: at(3)},
			want: step{verb: wait, until: at(1)}},
		{name: "released", view: view{known: seen, lock: lasting(heldBy(""), 1), since: at(0)}, want: step{verb: update, record: taken}},
		{name: "its holder's name was blanked out", view: view{known: seen, lock: heldBy(""), since: at(-14), readAt: at(3)}, want: step{verb: wait, until: at(1)}},
		{name: "its holder's name was blanked out as long ago as the lease lasts", view: view{known: seen, lock: heldBy(""), since: at(-15)},
			want: step{verb: update, record: taken}},
		{name: "its own from an earlier life, or from a write whose answer was lost",
			view: view{known: seen, lock: heldBy("me"), since: at(0)}, want: step{verb: update, record: renewed}},
		{name: "another's, just seen",
			view: view{known: seen, lock: heldBy("other"), since: at(0), readAt: at(3)}, want: step{verb: wait, until: at(3)}},
		{name: "another's, expires before the next look",
			view: view{known: seen, lock: heldBy("other"), since: at(-14), readAt: at(3)}, want: step{verb: wait, until: at(1)}},
		{name: "another's, no news",
			view: view{known: seen, lock: heldBy("other"), since: at(-4), readAt: at(0)}, want: step{verb: read}},
		{name: "another's, a moment before it expires",
			view: view{known: seen, lock: heldBy("other"), since: at(-14.999999), readAt: at(3)}, want: step{verb: wait, until: at(0.000001)}},
		{name: "another's, expired",
			view: view{known: seen, lock: heldBy("other"), since: at(-15), readAt: at(3)}, want: step{verb: update, record: taken}},
		{name: "the record's duration counts, not this candidate's",
			view: view{known: seen, lock: lasting(heldBy("other"), 60), since: at(-59), readAt: at(3)}, want: step{verb: wait, until: at(1)}},
		{name: "a record without a duration lasts as long as this candidate's",
			view: view{known: seen, lock: lasting(heldBy("other"), 0), since: at(-14), readAt: at(3)}, want: step{verb: wait, until: at(1)}},
		{name: "an ancient renew time of the holder's clock does not matter",
			view: view{known: seen, lock: &resourcelock.Observation{Record: resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 15, RenewTime: micro(-1e6)}}, since: at(0), readAt: at(3)},
			want: step{verb: wait, until: at(3)}},
		{name: "pauses after a failure", view: view{notBefore: at(2)}, want: step{verb: wait, until: at(2)}},
		{name: "pauses after a failure even if the lease is free",
			view: view{known: seen, lock: lasting(heldBy(""), 1), notBefore: at(2)}, want: step{verb: wait, until: at(2)}},

		{name: "leads, renewed just now",
			view: view{leading: true, known: seen, lock: heldBy("me"), deadline: at(9), notBefore: at(1)}, want: step{verb: wait, until: at(1)}},
		{name: "leads, time to renew",
			view: view{leading: true, known: seen, lock: heldBy("me"), deadline: at(8), notBefore: at(0)}, want: step{verb: update, record: renewed}},
		{name: "leads, a write conflicted", view: view{leading: true, known: unread, lock: heldBy("me"), deadline: at(8)}, want: step{verb: read}},
		{name: "leads, the lock is gone", view: view{leading: true, known: absent, lock: heldBy("me"), deadline: at(8)}, want: step{verb: create, record: mine}},
		{name: "leads, the deadline is closer than the next try",
			view: view{leading: true, known: seen, lock: heldBy("me"), deadline: at(1), notBefore: at(2)}, want: step{verb: wait, until: at(1)}},
		{name: "leads, past the deadline",
			view: view{leading: true, known: seen, lock: heldBy("me"), deadline: at(0)}, want: step{verb: stop, reason: pastDeadline}},
		{name: "leads, but another holds the lock",
			view: view{leading: true, known: seen, lock: heldBy("other"), deadline: at(8)}, want: step{verb: stop, reason: "the lease is held by other"}},
		{name: "leads, but somebody took the lease away",
			view: view{leading: true, known: seen, lock: heldBy(""), deadline: at(8)}, want: step{verb: stop, reason: "the lease was released by someone else"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.view.identity, tc.view.timing = "me", core
			if diff := cmp.Diff(tc.want, tc.view.next(at(0)), cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A clock that stands still, or has stepped back, must still change the record: the API server does not write an
// object that has not changed, and the others would see no renewal.
func TestClaimAlwaysChangesTheRecord(t *testing.T) {
	v := view{identity: "me", timing: core}
	first := v.claim(at(0))
	v.known, v.lock = seen, &resourcelock.Observation{Record: first}
	second := v.claim(at(0))
	if second.Equal(first) {
		t.Errorf("renewal at the same time left the record as it was: %+v", second)
	}
	second.RenewTime = first.RenewTime
	if !second.Equal(first) {
		t.Errorf("renewal changed more than the renew time: %+v, was %+v", second, first)
	}
}

func TestRelease(t *testing.T) {
	v := view{identity: "me", timing: core, known: seen, lock: heldBy("me")}
	want := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, AcquireTime: micro(0), RenewTime: micro(0), LeaderTransitions: 7}
	if diff := cmp.Diff(want, v.release(at(0))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, 15 * time.Second: 15} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("wholeSeconds(%v) = %d, want %d: a lease must not be promised for less than it is kept", d, got, want)
		}
	}
}

// The age of a record counts from when it was first seen to be as it is.
func TestFoundKeepsTheAgeOfARecord(t *testing.T) {
	v := view{identity: "me", timing: core}
	v.found(heldBy("other"), at(0), time.Second)

	same := heldBy("other")
	same.ResourceVersion = "2" // say, a label was put on the Lease
	v.found(same, at(5), time.Second)
	if v.since != at(0) || v.lock != same {
		t.Errorf("an unchanged record is %v old and of version %q, want 5s and 2", at(5).Sub(v.since), v.lock.ResourceVersion)
	}
	v.conflicted(at(6), time.Second)
	v.found(same, at(7), time.Second)
	if v.since != at(0) {
		t.Errorf("a lost write made an unchanged record young again")
	}
	renewed := heldBy("other")
	renewed.Record.RenewTime = micro(8)
	v.found(renewed, at(8), time.Second)
	if v.since != at(8) {
		t.Errorf("a renewed record is %v old, want 0", at(8).Sub(v.since))
	}
	anew := heldBy("other")
	anew.Record.RenewTime = micro(8)
	anew.UID = "2"
	v.found(anew, at(9), time.Second)
	if v.since != at(9) {
		t.Errorf("a record of another Lease is %v old, want 0", at(9).Sub(v.since))
	}
	v.found(nil, at(10), time.Second)
	v.found(nil, at(12), time.Second)
	if v.since != at(10) {
		t.Errorf("a lock that is gone is so for %v, want 2s", at(12).Sub(v.since))
	}
	for i, blind := range []func(){
		func() { v.conflicted(at(12), time.Second) },
		func() { v.failed(at(12), at(12), time.Second) },
	} {
		v.since = at(10)
		blind()
		if v.found(nil, at(12.5), time.Second); v.since != at(12.5) {
			t.Errorf("case %d: a lock that may have been made and deleted again is gone for %v, want 0", i, at(12.5).Sub(v.since))
		}
	}
	v.found(anew, at(13), time.Second)
	if v.since != at(13) {
		t.Errorf("a record that came back is %v old, want 0", at(13).Sub(v.since))
	}
}

// An answer that comes too late makes no leader.
func TestWroteTooLate(t *testing.T) {
	v := view{identity: "me", timing: core}
	if v.wrote(heldBy("me"), at(0), at(10)) || v.leading {
		t.Errorf("leads by an answer that came at its deadline")
	}
	if !v.wrote(heldBy("me"), at(10), at(19.9)) || v.deadline != at(20) {
		t.Errorf("leading %v until %v, want true until 10s after the start of the request", v.leading, v.deadline)
	}
}

func TestConflictsAreRetriedAtOnceOnlyOnce(t *testing.T) {
	v := view{identity: "me", timing: core, known: seen, lock: heldBy("")}
	for i, want := range []verb{read, wait, wait} {
		v.conflicted(at(0), time.Second)
		if got := v.next(at(0)).verb; got != want {
			t.Errorf("after conflict %d: verb %v, want %v", i+1, got, want)
		}
	}
}

func drawView(t *rapid.T) *view {
	seconds := rapid.Float64Range(-30, 30)
	when := func(label string) time.Time { return at(seconds.Draw(t, label)) }
	lock := lasting(heldBy(rapid.SampledFrom([]string{"", "me", "other"}).Draw(t, "holder")), rapid.IntRange(0, 40).Draw(t, "duration"))
	return &view{
		identity: "me", timing: core,
		known: rapid.SampledFrom([]knowledge{unread, absent, seen}).Draw(t, "known"),
		lock:  lock, since: when("since"), leading: rapid.Bool().Draw(t, "leading"), gone: rapid.Bool().Draw(t, "gone"),
		deadline: when("deadline"), notBefore: when("notBefore"), readAt: when("readAt"),
	}
}

func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, now := drawView(t), at(0)
		got := v.next(now)
		writes := got.verb == create || got.verb == update
		if writes && v.leading && !now.Before(v.deadline) {
			t.Fatalf("writes past its deadline: %+v", got)
		}
		if writes && v.lock.Record.HolderIdentity == "other" {
			if age := now.Sub(v.since); age < time.Duration(v.lock.Record.LeaseDurationSeconds)*time.Second {
				t.Fatalf("takes another's lease at the age of %v: %+v", age, got)
			}
		}
		if writes && !v.leading && v.gone && v.known == absent && now.Sub(v.since) < core.lease {
			t.Fatalf("makes a deleted lock anew after %v: %+v", now.Sub(v.since), got)
		}
		if writes && (got.record.HolderIdentity != "me" || got.record.LeaseDurationSeconds != 15) {
			t.Fatalf("claims for somebody else: %+v", got)
		}
		if got.verb == wait && !got.until.After(now) {
			t.Fatalf("waits for the past: %+v", got)
		}
		if got.verb == wait && v.leading && got.until.After(v.deadline) {
			t.Fatalf("sleeps through its deadline: %+v", got)
		}
		if got.verb != wait && got.verb != stop && now.Before(v.notBefore) {
			t.Fatalf("does not pause: %+v", got)
		}
	})
}
