// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// A controller that fails is built anew after firstRestart, then after twice as long each
	// time, up to lastRestart.
	firstRestart = time.Second
	lastRestart  = 5 * time.Minute
	// provenAfter is how long a controller must run for its failures to be forgotten: the next
	// one counts as the first.
	provenAfter = 10 * time.Minute
)

// errReturnedEarly is the failure of a controller whose Run ended although it was not told to.
var errReturnedEarly = errors.New("its Run returned although it was not told to stop")

// phase is where a controller is in its life.
type phase string

const (
	phaseBuilt      phase = "Built"      // waits for its turn to start
	phaseRunning    phase = "Running"    //
	phaseRestarting phase = "Restarting" // failed; waits to be built anew
	phaseStopped    phase = "Stopped"    // told to stop, and did
)

// instance is a controller as it was built, with its hold on the shared informers.
type instance struct {
	controller Controller
	scope      *informerScope
	// failures receives what the scope reports: a panic in an event handler.
	failures <-chan error
}

// discard ends a controller that is not to run any more: its Run is called with a context that is
// done, since it may hold goroutines (work queues) that only Run releases.
func (i *instance) discard(ctx context.Context) error {
	done, cancel := context.WithCancel(ctx)
	cancel()
	return errors.Join(runContained(done, i.controller), i.scope.close())
}

// supervised keeps one controller running: when it panics or returns early, it is built anew after
// a back-off, and the other controllers do not notice. Create it with newSupervised.
type supervised struct {
	name    string
	build   func(context.Context) (*instance, error)
	metrics *managerMetrics

	// mu guards the following fields.
	mu       sync.Mutex
	current  *instance
	phase    phase
	since    time.Time // when phase began
	restarts int
	lastErr  error         // why it was restarted last
	trusted  time.Duration // how long it must run since then to count as healthy
}

func newSupervised(name string, first *instance, build func(context.Context) (*instance, error), metrics *managerMetrics) *supervised {
	return &supervised{name: name, build: build, metrics: metrics, current: first, phase: phaseBuilt, since: time.Now()}
}

// instance returns the controller as it is now. It is not nil, but may have failed.
func (s *supervised) instance() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *supervised) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.since = p, time.Now()
}

// run runs the controller, after delay, until ctx is done and the controller has returned.
func (s *supervised) run(ctx context.Context, delay time.Duration) {
	logger := klog.LoggerWithName(klog.FromContext(ctx), s.name)
	ctx = klog.NewContext(ctx, logger)
	defer s.enter(phaseStopped)

	sleep(ctx, delay)
	failures := 0
	for {
		started := time.Now()
		err := s.runInstance(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) >= provenAfter {
			failures = 0
		}
		if !s.restart(ctx, err, &failures) {
			return
		}
	}
}

// runInstance runs the current instance to its end, and returns what ended it. It is nil only when
// ctx is done.
func (s *supervised) runInstance(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	i := s.instance()
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case err := <-i.failures:
			stop(err)
		case <-runCtx.Done():
		}
	}()

	s.enter(phaseRunning)
	s.metrics.running.ControllerStarted(s.name)
	logger.V(1).Info("Controller starting")
	err := runContained(runCtx, i.controller)
	s.metrics.running.ControllerStopped(s.name)
	if err == nil && ctx.Err() == nil {
		// Either the controller returned of its own accord, or a handler's panic stopped it.
		err = errReturnedEarly
		if runCtx.Err() != nil {
			err = context.Cause(runCtx)
		}
	}
	stop(nil)
	<-watched
	if closeErr := i.scope.close(); closeErr != nil {
		logger.V(1).Info("Could not take event handlers off the informers", "err", closeErr)
	}
	if err != nil && ctx.Err() != nil {
		logger.Error(err, "Controller failed while stopping")
	}
	logger.V(1).Info("Controller terminated")
	return err
}

// restart waits and builds the controller anew, as often as it takes. It returns false when ctx is
// done first. failures counts, over calls, how often the controller has failed in a row.
func (s *supervised) restart(ctx context.Context, cause error, failures *int) bool {
	logger := klog.FromContext(ctx)
	for {
		delay := restartDelay(*failures)
		*failures++
		s.failed(cause, delay)
		logFailure(logger, cause, delay)
		if !sleep(ctx, delay) {
			return false
		}
		next, err := buildContained(ctx, s.build)
		if err == nil {
			s.mu.Lock()
			s.current = next
			s.mu.Unlock()
			return true
		}
		cause = fmt.Errorf("building it anew: %w", err)
	}
}

func (s *supervised) failed(cause error, delay time.Duration) {
	s.metrics.restarted(s.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.since = phaseRestarting, time.Now()
	s.restarts++
	s.lastErr, s.trusted = cause, delay
}

func logFailure(logger klog.Logger, cause error, delay time.Duration) {
	var panicked *panicError
	if errors.As(cause, &panicked) {
		logger.Error(cause, "Controller failed, will be restarted", "after", delay, "stack", string(panicked.stack))
		return
	}
	logger.Error(cause, "Controller failed, will be restarted", "after", delay)
}

// check is the controller's health: it runs and, after a failure, has run for as long again as it
// had to wait for the restart; none of its workers is stuck; and it has no complaint of its own.
func (s *supervised) check(r *http.Request) error {
	s.mu.Lock()
	current, phase, since, lastErr, trusted := s.current, s.phase, s.since, s.lastErr, s.trusted
	s.mu.Unlock()

	if phase == phaseRestarting {
		return fmt.Errorf("failed, will be restarted: %w", lastErr)
	}
	if lastErr != nil && time.Since(since) < trusted {
		return fmt.Errorf("restarted %s ago: %w", time.Since(since).Round(time.Second), lastErr)
	}
	return checkController(r, current.controller)
}

// restartDelay returns how long to wait after the given number of failures in a row.
func restartDelay(failures int) time.Duration {
	delay := firstRestart
	for range failures {
		delay = min(2*delay, lastRestart)
	}
	return delay
}

// runContained calls c.Run and turns a panic into an error.
func runContained(ctx context.Context, c Controller) (err error) {
	defer containPanic("Run", &err)
	c.Run(ctx)
	return nil
}

// buildContained calls build and turns a panic into an error.
func buildContained(ctx context.Context, build func(context.Context) (*instance, error)) (built *instance, err error) {
	defer containPanic("constructor", &err)
	return build(ctx)
}

func containPanic(where string, err *error) {
	if p := recover(); p != nil {
		*err = &panicError{where: where, value: p, stack: debug.Stack()}
	}
}

// sleep waits for d, or until ctx is done: then it returns false.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// startDelay is the jittered --controller-start-interval; each controller waits on its own.
func startDelay(interval time.Duration) time.Duration {
	if interval <= 0 {
		return 0
	}
	return wait.Jitter(interval, 1.0)
}

// controllerStatus is what the debug pages show of one controller.
type controllerStatus struct {
	Name  string `json:"name"`
	Phase phase  `json:"phase"`
	// Since is when the phase began.
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	// LastFailure is why it was last restarted.
	LastFailure string `json:"lastFailure,omitempty"`
}

func (s *supervised) status() controllerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := controllerStatus{Name: s.name, Phase: s.phase, Since: s.since, Restarts: s.restarts}
	if s.lastErr != nil {
		status.LastFailure = s.lastErr.Error()
	}
	return status
}
