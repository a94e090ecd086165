// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

const (
	// stuckAfter is how long one sync may run before the controller counts as unhealthy. No sync
	// waits that long on purpose: every request to the API server has a shorter time-out.
	stuckAfter = 10 * time.Minute
	// noProgressAfter is how long live keys may wait while no sync at all ends.
	noProgressAfter = 5 * time.Minute
	// recordedKeys bounds the keys that a Record lists; the counts are always complete.
	recordedKeys = 50
)

// Reporter is what a controller shows of each of its workers, so that the manager can say what it
// does and why.
type Reporter interface {
	// Record returns the worker's state at this moment.
	Record() Record
	// Check returns an error when the worker is stuck.
	Check(now time.Time) error
}

// Record is a worker's state at one moment. Times are the worker's clock's.
type Record struct {
	Controller string `json:"controller"`
	Queue      string `json:"queue,omitempty"`
	// Workers is the number of goroutines; 0 before Run and after it.
	Workers int `json:"workers"`
	// Depth counts the waiting keys; DepthInitial those of them from an initial list.
	Depth        int `json:"depth"`
	DepthInitial int `json:"depthInitial"`
	// OldestWaiting is since when the oldest live key waits; nil when none does.
	OldestWaiting *time.Time `json:"oldestWaiting,omitempty"`
	// Syncs, Errors and Panics count since the worker was created.
	Syncs  uint64 `json:"syncs"`
	Errors uint64 `json:"errors"`
	Panics uint64 `json:"panics"`
	// InFlight lists the keys that are being synced, oldest first.
	InFlight []InFlight `json:"inFlight,omitempty"`
	// FailingCount counts the keys whose last sync failed; Failing lists the longest failing ones.
	FailingCount int       `json:"failingCount"`
	Failing      []Failing `json:"failing,omitempty"`
}

// InFlight is a key that is being synced.
type InFlight struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	// Requests and Writes count what this sync has sent to the API server so far.
	Requests int64 `json:"requests"`
	Writes   int64 `json:"writes"`
}

// Failing is a key whose last sync failed.
type Failing struct {
	Key       string    `json:"key"`
	Since     time.Time `json:"since"`
	LastTried time.Time `json:"lastTried"`
	Failures  int       `json:"failures"`
	// Retrying is false when the key waits for its next event.
	Retrying  bool   `json:"retrying"`
	LastError string `json:"lastError"`
}

// recorder keeps what Record shows.
type recorder[K comparable] struct {
	// mu guards the following fields.
	mu       *sync.Mutex
	workers  int
	inFlight map[K]inFlight
	failing  map[K]*Failing
	syncs    uint64
	errors   uint64
	panics   uint64
	lastEnd  time.Time // when a sync last ended, or Run began
}

type inFlight struct {
	since time.Time
	scope *gate.Scope
}

func newRecorder[K comparable](now time.Time) recorder[K] {
	return recorder[K]{mu: &sync.Mutex{}, inFlight: map[K]inFlight{}, failing: map[K]*Failing{}, lastEnd: now}
}

func (r *recorder[K]) started(workers int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers, r.lastEnd = workers, now
}

func (r *recorder[K]) stopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = 0
}

func (r *recorder[K]) begin(key K, scope *gate.Scope, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[key] = inFlight{since: now, scope: scope}
}

func (r *recorder[K]) succeeded(key K, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(key, now)
	delete(r.failing, key)
}

func (r *recorder[K]) failed(key K, err error, retrying bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(key, now)
	r.errors++
	f, ok := r.failing[key]
	if !ok {
		f = &Failing{Key: fmt.Sprint(key), Since: now}
		r.failing[key] = f
	}
	f.LastTried, f.Retrying, f.LastError = now, retrying, err.Error()
	f.Failures++
}

// interrupted ends a sync that the stopping manager cut short.
func (r *recorder[K]) interrupted(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inFlight, key)
}

func (r *recorder[K]) panicked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panics++
}

func (r *recorder[K]) endLocked(key K, now time.Time) {
	delete(r.inFlight, key)
	r.syncs++
	r.lastEnd = now
}

// Record returns the worker's state at this moment.
func (w *Worker[K]) Record() Record {
	depth, initial, oldest := w.lanes.depth()
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := Record{
		Controller: w.opts.Controller, Queue: w.opts.Queue, Workers: r.workers,
		Depth: depth, DepthInitial: initial,
		Syncs: r.syncs, Errors: r.errors, Panics: r.panics, FailingCount: len(r.failing),
	}
	if !oldest.IsZero() {
		rec.OldestWaiting = &oldest
	}
	for key, f := range r.inFlight {
		rec.InFlight = append(rec.InFlight, InFlight{
			Key: fmt.Sprint(key), Since: f.since, Requests: f.scope.Requests(), Writes: f.scope.Writes(),
		})
	}
	sort.Slice(rec.InFlight, func(i, j int) bool { return rec.InFlight[i].Since.Before(rec.InFlight[j].Since) })
	for _, f := range r.failing {
		rec.Failing = append(rec.Failing, *f)
	}
	sort.Slice(rec.Failing, func(i, j int) bool { return rec.Failing[i].Since.Before(rec.Failing[j].Since) })
	rec.Failing = rec.Failing[:min(len(rec.Failing), recordedKeys)]
	return rec
}

// Check returns an error when a sync runs for longer than ten minutes, or when live keys have
// waited for five minutes in which no sync ended. It is nil while the worker does not run.
func (w *Worker[K]) Check(now time.Time) error {
	_, _, oldest := w.lanes.depth()
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers == 0 {
		return nil
	}
	for key, f := range r.inFlight {
		if d := now.Sub(f.since); d > stuckAfter {
			return fmt.Errorf("queue %q: sync of %v has been running for %s", w.opts.Queue, key, d.Round(time.Second))
		}
	}
	if !oldest.IsZero() && now.Sub(oldest) > noProgressAfter && now.Sub(r.lastEnd) > noProgressAfter {
		return fmt.Errorf("queue %q: no sync has ended for %s although keys wait", w.opts.Queue, now.Sub(r.lastEnd).Round(time.Second))
	}
	return nil
}
