// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedBackoff retries every key after the same time.
func fixedBackoff(d time.Duration) workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](d, d)
}

// run starts w in the bubble of a synctest and stops it at the end of the test.
func run(t *testing.T, w *Worker[string], workers int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, workers) }()
	t.Cleanup(func() { cancel(); <-done })
}

// journal records the keys that were synced, in order.
type journal struct {
	mu   sync.Mutex
	keys []string
}

func (j *journal) note(key string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys = append(j.keys, key)
	return len(j.keys)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.keys, " ")
}

func TestLiveKeysComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		w := New(Options[string]{Controller: "test", Sync: func(_ context.Context, key string) error {
			j.note(key)
			return nil
		}})
		for _, key := range []string{"i1", "i2"} {
			w.AddInitial(key)
		}
		w.AddEvent("i3", true)
		w.AddEvent("l1", false)
		w.Add("i2")            // promoted
		w.AddEvent("l1", true) // stays live
		if rec := w.Record(); rec.Depth != 4 || rec.DepthInitial != 2 {
			t.Errorf("depth %d of which initial %d, want 4 and 2", rec.Depth, rec.DepthInitial)
		}
		run(t, w, 1)
		synctest.Wait()
		if got, want := j.String(), "l1 i2 i1 i3"; got != want {
			t.Errorf("synced %q, want %q", got, want)
		}
	})
}

func TestKeyIsNeverSyncedTwiceAtOnceButOnceMoreWhenAddedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		release := make(chan struct{})
		w := New(Options[string]{Controller: "test", Sync: func(_ context.Context, key string) error {
			j.note(key)
			<-release
			return nil
		}})
		run(t, w, 4)
		w.Add("a")
		synctest.Wait()
		w.Add("a")
		w.Add("a")
		synctest.Wait()
		if got := j.String(); got != "a" {
			t.Errorf("while a is synced: synced %q, want only one", got)
		}
		close(release)
		synctest.Wait()
		if got := j.String(); got != "a a" {
			t.Errorf("after it: synced %q, want one more", got)
		}
	})
}

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name       string
		maxRetries int
		results    []error // the last one repeats
		after      time.Duration
		syncs      int
		errors     uint64
		failing    *Failing
	}{
		{name: "success is synced once", results: []error{nil}, after: time.Hour, syncs: 1},
		{
			name: "an error is retried until it succeeds", results: []error{boom, boom, nil},
			after: time.Hour, syncs: 3, errors: 2,
		},
		{
			name: "retried for ever", results: []error{boom}, after: 10 * time.Second, syncs: 11, errors: 11,
			failing: &Failing{Failures: 11, Retrying: true, LastError: "boom"},
		},
		{
			name: "dropped after the retries", maxRetries: 3, results: []error{boom}, after: time.Hour, syncs: 4, errors: 4,
			failing: &Failing{Failures: 4, LastError: "boom"},
		},
		{
			name: "a terminal error is not retried", results: []error{fmt.Errorf("syncing: %w", Terminal(boom))}, after: time.Hour, syncs: 1, errors: 1,
			failing: &Failing{Failures: 1, LastError: "syncing: boom"},
		},
		{
			name: "asking to be called again is no failure", results: []error{RequeueAfter(time.Minute)},
			after: 5*time.Minute + time.Second, syncs: 6,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j journal
				w := New(Options[string]{
					Controller: "test", MaxRetries: tc.maxRetries, RateLimiter: fixedBackoff(time.Second),
					Sync: func(_ context.Context, key string) error {
						n := j.note(key)
						return tc.results[min(n, len(tc.results))-1]
					},
				})
				run(t, w, 2)
				w.Add("a")
				time.Sleep(tc.after)
				synctest.Wait()
				if got := len(j.keys); got != tc.syncs {
					t.Errorf("synced %d times, want %d", got, tc.syncs)
				}
				rec := w.Record()
				if rec.Errors != tc.errors || rec.Syncs != uint64(tc.syncs) {
					t.Errorf("record counts %d syncs, %d errors; want %d, %d", rec.Syncs, rec.Errors, tc.syncs, tc.errors)
				}
				checkFailing(t, rec, tc.failing)
			})
		})
	}
}

func checkFailing(t *testing.T, rec Record, want *Failing) {
	t.Helper()
	if want == nil {
		if rec.FailingCount != 0 {
			t.Errorf("failing keys: %v, want none", rec.Failing)
		}
		return
	}
	if rec.FailingCount != 1 {
		t.Fatalf("%d failing keys, want 1", rec.FailingCount)
	}
	got := rec.Failing[0]
	if got.Key != "a" || got.Failures != want.Failures || got.Retrying != want.Retrying || got.LastError != want.LastError {
		t.Errorf("failing key %+v, want %+v", got, *want)
	}
}

func TestPanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		w := New(Options[string]{
			Controller: "test", RateLimiter: fixedBackoff(time.Second),
			Sync: func(_ context.Context, key string) error {
				if j.note(key); key == "bad" {
					panic("unforeseen")
				}
				return nil
			},
		})
		run(t, w, 1)
		w.Add("bad")
		w.Add("good")
		synctest.Wait()
		if got := j.String(); got != "bad good" {
			t.Errorf("synced %q, want both keys", got)
		}
		rec := w.Record()
		if rec.Panics != 1 || rec.FailingCount != 1 || !strings.Contains(rec.Failing[0].LastError, "unforeseen") {
			t.Errorf("record %+v, want one panic, told as the last error", rec)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := j.String(); got != "bad good bad" {
			t.Errorf("synced %q, want the panicking key retried with back-off", got)
		}
	})
}

func TestRunWaitsForTheSyncInFlightAndForgetsItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options[string]{Controller: "test", Sync: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan time.Time)
		go func() { w.Run(ctx, 1); done <- time.Now() }()
		w.Add("a")
		w.Add("b")
		synctest.Wait()
		stopped := time.Now()
		cancel()
		if took := (<-done).Sub(stopped); took != 3*time.Second {
			t.Errorf("Run returned %s after it was stopped, want after the sync in flight, 3s", took)
		}
		if rec := w.Record(); rec.Errors != 0 || rec.FailingCount != 0 || rec.Workers != 0 {
			t.Errorf("record after the stop: %+v, want no failure and no workers", rec)
		}
	})
}

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := New(Options[string]{Controller: "test", Queue: "tests", Sync: func(context.Context, string) error {
			<-release
			return nil
		}})
		w.Add("a")
		if err := w.Check(time.Now().Add(time.Hour)); err != nil {
			t.Errorf("before Run: %v, want healthy", err)
		}
		run(t, w, 1)
		synctest.Wait()
		time.Sleep(stuckAfter)
		if err := w.Check(time.Now()); err != nil {
			t.Errorf("after %s: %v, want healthy", stuckAfter, err)
		}
		time.Sleep(time.Second)
		if err := w.Check(time.Now()); err == nil || !strings.Contains(err.Error(), `sync of a has been running for 10m1s`) {
			t.Errorf("after %s and a second: %v, want the stuck key named", stuckAfter, err)
		}
		close(release)
		synctest.Wait()
		if err := w.Check(time.Now()); err != nil {
			t.Errorf("after it went on: %v, want healthy", err)
		}
	})
}

func TestCheckNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := New(Options[string]{Controller: "test", Queue: "tests", Sync: func(context.Context, string) error {
			<-release
			return nil
		}})
		run(t, w, 1)
		w.Add("a")
		synctest.Wait()
		w.AddInitial("b")
		time.Sleep(noProgressAfter + time.Second)
		if err := w.Check(time.Now()); err != nil {
			t.Errorf("only a key of the initial list waits: %v, want healthy", err)
		}
		w.Add("c")
		time.Sleep(noProgressAfter - time.Minute)
		if err := w.Check(time.Now()); err != nil {
			t.Errorf("a live key waits, but not for long: %v, want healthy", err)
		}
		time.Sleep(time.Minute + time.Second)
		if err := w.Check(time.Now()); err == nil {
			t.Error("a live key has waited for too long: healthy, want an error")
		}
		close(release)
	})
}

func TestRecordListsTheOldestFailuresAndCountsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options[string]{Controller: "test", RateLimiter: fixedBackoff(time.Hour), Sync: func(context.Context, string) error {
			return errors.New("no")
		}})
		run(t, w, 1)
		for i := range recordedKeys + 10 {
			w.Add(fmt.Sprintf("key-%03d", i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		rec := w.Record()
		if rec.FailingCount != recordedKeys+10 || len(rec.Failing) != recordedKeys || rec.Failing[0].Key != "key-000" {
			t.Errorf("%d failing, %d listed, first %q; want %d, %d, key-000",
				rec.FailingCount, len(rec.Failing), rec.Failing[0].Key, recordedKeys+10, recordedKeys)
		}
	})
}

func TestHandler(t *testing.T) {
	pod := func(name, rv string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: rv}}
	}
	var got []string
	funcs := HandlerFuncs[*v1.Pod]{
		Add:    func(p *v1.Pod, initial bool) { got = append(got, fmt.Sprintf("add %s %v", p.Name, initial)) },
		Update: func(old, cur *v1.Pod) { got = append(got, "update "+old.ResourceVersion+" "+cur.ResourceVersion) },
		Delete: func(p *v1.Pod) { got = append(got, "delete "+p.Name) },
	}
	feed := func(h cache.ResourceEventHandler) {
		h.OnAdd(pod("a", "1"), true)
		h.OnAdd(pod("b", "2"), false)
		h.OnAdd(&v1.Node{}, false)
		h.OnUpdate(pod("a", "1"), pod("a", "1"))
		h.OnUpdate(pod("a", "1"), pod("a", "3"))
		h.OnDelete(pod("a", "3"))
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: "b", Obj: pod("b", "2")})
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: "c", Obj: &v1.Node{}})
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: "d"})
	}
	check := func(want string) {
		t.Helper()
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
		got = nil
	}
	feed(Handler("test", funcs))
	check("add a true, add b false, update 1 3, delete a, delete b")
	funcs.Resync = true
	feed(Handler("test", funcs))
	check("add a true, add b false, update 1 1, update 1 3, delete a, delete b")
	feed(Handler("test", HandlerFuncs[*v1.Pod]{}))
	check("")
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var synced, began atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			Start(ctx, "test", []cache.InformerSynced{synced.Load}, func(ctx context.Context) {
				began.Store(true)
				<-ctx.Done()
			})
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		if began.Load() {
			t.Error("a runner began before the caches had synced")
		}
		synced.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if !began.Load() {
			t.Error("no runner began after the caches had synced")
		}
		cancel()
		<-done
	})
}

func TestStartReleasesQueuesWhenCachesNeverSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(Options[string]{Controller: "test", Sync: func(context.Context, string) error {
			t.Error("synced without a synced cache")
			return nil
		}})
		w.Add("a")
		cancel()
		Start(ctx, "test", []cache.InformerSynced{func() bool { return false }}, w.Runner(2))
		if !w.queue.ShuttingDown() {
			t.Error("the queue was not shut down: its goroutines leak")
		}
	})
}
