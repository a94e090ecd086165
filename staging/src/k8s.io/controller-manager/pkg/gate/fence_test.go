// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFence(t *testing.T) {
	const (
		notYet  = "write refused: not the leader: the lease has not been won yet"
		expired = "write refused: not the leader: the lease was not renewed before its deadline"
		over    = "write refused: not the leader: the lease was lost or given back"
	)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(start)
	f := NewFence(clock)
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"new", func() {}, notYet},
		{"opened", func() { f.OpenUntil(start.Add(10 * time.Second)) }, ""},
		{"just before the deadline", func() { clock.SetTime(start.Add(10*time.Second - 1)) }, ""},
		{"at the deadline", func() { clock.SetTime(start.Add(10 * time.Second)) }, expired},
		{"renewed late", func() { f.OpenUntil(start.Add(20 * time.Second)) }, ""},
		{"a deadline that comes out of order", func() { f.OpenUntil(start.Add(5 * time.Second)) }, ""},
		{"closed", f.Close, over},
		{"renewed after it was closed", func() { f.OpenUntil(start.Add(time.Hour)) }, over},
		{"opened after it was closed", f.OpenForever, over},
	} {
		step.do()
		err := f.Err()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
		if err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("%s: %v is no ErrFenced", step.what, err)
		}
	}
}

func TestFenceWithoutElection(t *testing.T) {
	var f Fence
	if f.Err() == nil {
		t.Error("the zero Fence is open")
	}
	f.OpenForever()
	if err := f.Err(); err != nil {
		t.Errorf("opened for ever: %v", err)
	}
	f.Close()
	if f.Err() == nil {
		t.Error("closed, but open")
	}
}
