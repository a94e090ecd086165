// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// scripted is a controller whose Run does what the test says.
type scripted struct {
	name string
	run  func(ctx context.Context)
}

func (s *scripted) Name() string            { return s.name }
func (s *scripted) Run(ctx context.Context) { s.run(ctx) }

func untilDone(ctx context.Context) { <-ctx.Done() }

// generations is a constructor: its n-th instance does what the n-th script says, the last script
// also for all that follow. A nil script is a constructor that fails.
type generations struct {
	mu      sync.Mutex
	scripts []func(ctx context.Context)
	builtAt []time.Time
	scopes  []*informerScope
}

func (g *generations) build(context.Context) (*instance, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.builtAt)
	g.builtAt = append(g.builtAt, time.Now())
	script := g.scripts[min(n, len(g.scripts)-1)]
	if script == nil {
		return nil, errors.New("constructor says no")
	}
	failures := make(chan error, 1)
	scope := &informerScope{failed: func(err error) { failures <- err }}
	g.scopes = append(g.scopes, scope)
	return &instance{controller: &scripted{name: "test", run: script}, scope: scope, failures: failures}, nil
}

func (g *generations) built() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.builtAt)
}

// superviseScripts runs scripts under supervision until the test's bubble has seen what it wants.
func superviseScripts(t *testing.T, name string, scripts ...func(context.Context)) (*supervised, *generations, func()) {
	t.Helper()
	g := &generations{scripts: scripts}
	first, err := g.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newSupervised(name, first, g.build, registerMetrics())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx, 0)
	}()
	return s, g, func() {
		cancel()
		<-done
	}
}

func TestSupervisionRestartsAfterPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := func(context.Context) { panic("boom") }
		restarts := registerMetrics().restarts.WithLabelValues("panicking", managerName)
		before, err := testutil.GetCounterMetricValue(restarts)
		if err != nil {
			t.Fatal(err)
		}
		s, g, stop := superviseScripts(t, "panicking", panics, panics, untilDone)
		defer stop()
		start := time.Now()

		synctest.Wait()
		if got := s.status(); got.Phase != phaseRestarting || !strings.Contains(got.LastFailure, "boom") {
			t.Errorf("after the first panic: %+v, want Restarting because of boom", got)
		}
		if err := s.check(nil); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("check() = %v, want it to fail because of boom", err)
		}

		time.Sleep(firstRestart + 2*firstRestart)
		synctest.Wait()
		for i, want := range []time.Duration{0, firstRestart, 3 * firstRestart} {
			if got := g.builtAt[i].Sub(start); got != want {
				t.Errorf("instance %d was built after %s, want %s", i, got, want)
			}
		}
		if got := s.status(); got.Phase != phaseRunning || got.Restarts != 2 {
			t.Errorf("after the second restart: %+v, want Running with 2 restarts", got)
		}
		if err := s.check(nil); err == nil {
			t.Error("check() = nil right after a restart, want it to fail until the controller has proven itself")
		}
		time.Sleep(2 * firstRestart)
		if err := s.check(nil); err != nil {
			t.Errorf("check() = %v, want nil once it has run for as long as the back-off was", err)
		}
		for i, scope := range g.scopes {
			if got, want := scope.isClosed(), i < 2; got != want {
				t.Errorf("scope of instance %d closed = %t, want %t", i, got, want)
			}
		}
		if after, err := testutil.GetCounterMetricValue(restarts); err != nil || after-before != 2 {
			t.Errorf("controller_restarts_total rose by %v, %v; want 2", after-before, err)
		}
	})
}

func TestSupervisionRestartsAfterEarlyReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, stop := superviseScripts(t, "returning", func(context.Context) {}, untilDone)
		defer stop()
		synctest.Wait()
		if err := s.check(nil); !errors.Is(err, errReturnedEarly) {
			t.Errorf("check() = %v, want %v", err, errReturnedEarly)
		}
		time.Sleep(firstRestart)
		synctest.Wait()
		if g.built() != 2 || s.status().Phase != phaseRunning {
			t.Errorf("built %d instances, %+v; want 2, Running", g.built(), s.status())
		}
	})
}

func TestSupervisionRestartsAfterHandlerPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, stop := superviseScripts(t, "handler", untilDone, untilDone)
		defer stop()
		synctest.Wait()
		s.instance().scope.failed(&panicError{where: "event handler", value: "bad event"})
		synctest.Wait()
		if err := s.check(nil); err == nil || !strings.Contains(err.Error(), "panic in its event handler: bad event") {
			t.Errorf("check() = %v, want the handler's panic", err)
		}
		time.Sleep(firstRestart)
		synctest.Wait()
		if g.built() != 2 || s.status().Phase != phaseRunning {
			t.Errorf("built %d instances, %+v; want 2, Running", g.built(), s.status())
		}
	})
}

func TestSupervisionRetriesConstructor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, stop := superviseScripts(t, "rebuilding", func(context.Context) {}, nil, nil, untilDone)
		defer stop()
		time.Sleep(2 * firstRestart)
		synctest.Wait()
		if err := s.check(nil); err == nil || !strings.Contains(err.Error(), "building it anew: constructor says no") {
			t.Errorf("check() = %v, want the constructor's error", err)
		}
		time.Sleep(5 * firstRestart)
		synctest.Wait()
		if g.built() != 4 || s.status().Phase != phaseRunning {
			t.Errorf("built %d instances, %+v; want 4, Running", g.built(), s.status())
		}
	})
}

func TestSupervisionContainsConstructorPanic(t *testing.T) {
	built, err := buildContained(t.Context(), func(context.Context) (*instance, error) { panic("no") })
	if built != nil || err == nil || !strings.Contains(err.Error(), "panic in its constructor: no") {
		t.Errorf("buildContained() = %v, %v", built, err)
	}
}

func TestSupervisionForgetsFailuresOfAProvenController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context) {}
		holds := func(ctx context.Context) { sleep(ctx, provenAfter) }
		_, g, stop := superviseScripts(t, "proven", fails, fails, holds, untilDone)
		defer stop()
		start := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		// After 1 s and 2 s of back-off it runs for provenAfter; the next failure counts as the first.
		if got, want := g.builtAt[3].Sub(start), 3*firstRestart+provenAfter+firstRestart; got != want {
			t.Errorf("restarted after %s, want %s", got, want)
		}
	})
}

func TestSupervisionStopsDuringBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, stop := superviseScripts(t, "stopping", func(context.Context) {})
		synctest.Wait()
		stop()
		if g.built() != 1 || s.status().Phase != phaseStopped {
			t.Errorf("built %d instances, %+v; want 1, Stopped", g.built(), s.status())
		}
	})
}

// A controller may hold goroutines that only its Run ends, so it is run even when its turn to
// start never comes.
func TestSupervisionRunsEveryInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		g := &generations{scripts: []func(context.Context){func(ctx context.Context) { ran = ctx.Err() != nil }}}
		first, err := g.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newSupervised("late", first, g.build, registerMetrics())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s.run(ctx, time.Hour)
		if !ran {
			t.Error("Run was not called with a context that is done")
		}
	})
}

func TestRestartDelay(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := restartDelay(failures); got != want {
			t.Errorf("restartDelay(%d) = %s, want %s", failures, got, want)
		}
	}
}

func TestStartDelay(t *testing.T) {
	if got := startDelay(0); got != 0 {
		t.Errorf("startDelay(0) = %s, want 0", got)
	}
	for range 100 {
		if got := startDelay(time.Second); got < time.Second || got >= 2*time.Second {
			t.Fatalf("startDelay(1s) = %s, want within [1s, 2s)", got)
		}
	}
}

// stuckWorker reports that it is stuck.
type stuckWorker struct{ err error }

func (w stuckWorker) Record() worker.Record { return worker.Record{Queue: "q", Depth: 7} }
func (w stuckWorker) Check(time.Time) error { return w.err }

type withWorkers []worker.Reporter

func (w withWorkers) Workers() []worker.Reporter { return w }

func TestCheckAsksEveryWorker(t *testing.T) {
	c := newControllerLoop("c", withWorkers{stuckWorker{}, stuckWorker{errors.New("key a/b is stuck")}, stuckWorker{fmt.Errorf("queue waits")}}, untilDone)
	err := checkController(nil, c)
	if err == nil || !strings.Contains(err.Error(), "key a/b is stuck") || !strings.Contains(err.Error(), "queue waits") {
		t.Errorf("checkController() = %v, want both complaints", err)
	}
	if err := checkController(nil, newControllerLoop("c", withWorkers{stuckWorker{}}, untilDone)); err != nil {
		t.Errorf("checkController() = %v, want nil", err)
	}
	if err := checkController(nil, newControllerLoop("c", struct{}{}, untilDone)); err != nil {
		t.Errorf("checkController() of a controller without workers = %v, want nil", err)
	}
}
