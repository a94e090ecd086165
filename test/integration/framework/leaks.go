// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

const (
	// leakLabel is the profiler label that tells whose a goroutine is.
	leakLabel = "kcm-test"
	// leakTimeout is how long goroutines have to end after their owner has.
	leakTimeout = 5 * time.Second
)

// connectionLoops serve connections that client-go's transport cache keeps open
// for other clients in the process.
var connectionLoops = []string{
	"net/http.(*persistConn).readLoop",
	"net/http.(*persistConn).writeLoop",
	"http2ClientConn).readLoop",
	"http2.(*ClientConn).readLoop",
	"http2clientConnReadLoop).run",
	"http2.(*clientConnReadLoop).run",
}

// goroutines are those that a test's goroutine started, directly or not, while
// it carried a label of its own.
type goroutines struct{ label string }

// ownGoroutines labels the calling goroutine: goroutines inherit the label from
// the one that starts them, and so can be told from those of other tests.
func ownGoroutines(t testing.TB) goroutines {
	g := goroutines{uniqueName(t)}
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels(leakLabel, g.label)))
	return g
}

// disown takes the label from the calling goroutine.
func (g goroutines) disown() { pprof.SetGoroutineLabels(context.Background()) }

// CheckGoroutines fails the test at its end if any goroutine that was started
// by the calling goroutine from now on, or by one of those, is left then.
// Cleanups that are registered later run before the check.
func CheckGoroutines(t testing.TB) {
	t.Helper()
	g := ownGoroutines(t)
	t.Cleanup(func() {
		g.disown()
		if left := waitForNone(g.label); left != "" {
			t.Errorf("goroutines are left after the test:\n%s", left)
		}
	})
}

// waitForNone waits until no goroutine with the label is left, and returns the
// stacks of those that do not end.
func waitForNone(label string) string {
	deadline := time.Now().Add(leakTimeout)
	for {
		left := labelled(label)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pollInterval) // the runtime tells nobody when a goroutine ends
	}
}

// labelled returns the stacks of the goroutines with the label.
func labelled(label string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return fmt.Sprintf("no goroutine profile: %v", err)
	}
	mark := fmt.Sprintf("%q:%q", leakLabel, label)
	var left []string
stacks:
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, mark) {
			continue
		}
		for _, loop := range connectionLoops {
			if strings.Contains(stack, loop) {
				continue stacks
			}
		}
		left = append(left, stack)
	}
	return strings.Join(left, "\n\n")
}
