// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcache "k8s.io/client-go/tools/cache"
)

// recorder is a handler that writes down what it is told.
type recorder struct {
	mu   sync.Mutex
	told []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, s)
}

// take returns what was told since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

func (r *recorder) OnAdd(obj any, initial bool) {
	s := "add " + stateOf(obj)
	if initial {
		s += " initial"
	}
	r.note(s)
}
func (r *recorder) OnUpdate(old, obj any) { r.note("update " + stateOf(old) + " " + stateOf(obj)) }
func (r *recorder) OnDelete(obj any)      { r.note("delete " + stateOf(obj)) }

func stateOf(obj any) string {
	if unknown, ok := obj.(clientcache.DeletedFinalStateUnknown); ok {
		return "unknown " + stateOf(unknown.Obj)
	}
	pod := obj.(*corev1.Pod)
	return pod.Name + "@" + pod.ResourceVersion
}

// live runs an informer of the server with a recorder in a bubble of fake time.
func live(t *testing.T, prepare func(*fakeServer, *Informer), body func(*testing.T, *fakeServer, *Informer, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, handler := newFakeServer(1), &recorder{}
		informer := NewInformer(server, &corev1.Pod{}, Options{})
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
		if prepare != nil {
			prepare(server, informer)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			informer.RunWithContext(ctx)
		}()
		synctest.Wait()
		body(t, server, informer, handler)
		cancel()
		<-stopped
	})
}

func expect(t *testing.T, handler *recorder, want ...string) {
	t.Helper()
	synctest.Wait()
	got := handler.take()
	if len(got) != len(want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
}

func TestFirstListIsStreamed(t *testing.T) {
	live(t, func(s *fakeServer, _ *Informer) { s.write("a") }, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		expect(t, h, "add a@2 initial")
		if s.asked().lists != 0 || s.asked().streams != 1 || s.asked().opens != 1 {
			t.Errorf("%d lists, %d streams, %d watches, want 0, 1, 1", s.asked().lists, s.asked().streams, s.asked().opens)
		}
		opts := s.asked().watch
		if opts.ResourceVersion != "" || opts.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan || !opts.AllowWatchBookmarks {
			t.Errorf("options %+v", opts)
		}
		if seconds := *opts.TimeoutSeconds; seconds < 300 || seconds > 600 {
			t.Errorf("timeout %d s, want 5 to 10 minutes", seconds)
		}
		if !i.HasSynced() || i.LastSyncResourceVersion() != "2" {
			t.Errorf("synced %t, at %s", i.HasSynced(), i.LastSyncResourceVersion())
		}
		s.write("a")
		expect(t, h, "update a@2 a@3")
		s.delete("a")
		expect(t, h, "delete a@4")
	})
}

func TestListInPages(t *testing.T) {
	for name, f := range map[string]faults{
		"the server refuses streams":            {noStreams: true},
		"the server takes no notice of streams": {noBookmarkEnd: true},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(s *fakeServer, _ *Informer) {
				s.set(f)
				for n := range 20 {
					s.write("pod-" + strconv.Itoa(n))
				}
			}, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
				if s.asked().lists != 3 {
					t.Errorf("%d pages, want 3 for 20 pods", s.asked().lists)
				}
				if n := len(i.GetStore().List()); n != 20 || i.LastSyncResourceVersion() != "21" {
					t.Errorf("%d pods at %s, want 20 at 21", n, i.LastSyncResourceVersion())
				}
				// It remembers: a new list is in pages at once.
				before := s.asked()
				s.compact()
				s.write("x")
				s.compact()
				s.kick()
				time.Sleep(time.Minute)
				if after := s.asked(); after.streams != before.streams || after.lists != 6 || after.opens <= before.opens {
					t.Errorf("before %+v, after %+v", before, after)
				}
			})
		})
	}
}

// A list that takes too long to page through is asked for at once.
func TestExpiredContinue(t *testing.T) {
	live(t, func(s *fakeServer, _ *Informer) {
		s.set(faults{noStreams: true, expireContinue: 100})
		for n := range 20 {
			s.write("pod-" + strconv.Itoa(n))
		}
	}, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		if n := len(i.GetStore().List()); n != 20 || s.asked().lists != 3 {
			t.Errorf("%d pods after %d requests, want 20 after a page, an expired one and all", n, s.asked().lists)
		}
	})
}

func TestResumes(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		s.write("a")
		expect(t, h, "add a@2")
		s.kick()
		synctest.Wait()
		s.write("b")
		time.Sleep(time.Minute)
		expect(t, h, "add b@3")
		if s.asked().streams != 1 || s.asked().lists != 0 || s.asked().watch.ResourceVersion != "2" {
			t.Errorf("%d streams, %d lists, watch from %q; want to go on from 2", s.asked().streams, s.asked().lists, s.asked().watch.ResourceVersion)
		}
		if got := i.Status(time.Now()); got.LastError == "" || got.Lists["first"] != 1 || len(got.Lists) != 1 || got.Watches != 2 {
			t.Errorf("status %+v", got)
		}
	})
}

// Bookmarks move the version on, so that what happens elsewhere does not let it expire.
func TestBookmarks(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		s.mu.Lock()
		s.version = 50 // something else was written
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		s.compact()
		s.kick()
		time.Sleep(time.Minute)
		s.write("a")
		expect(t, h, "add a@51")
		if s.asked().streams != 1 || i.LastSyncResourceVersion() != "51" {
			t.Errorf("%d streams, at %s", s.asked().streams, i.LastSyncResourceVersion())
		}
	})
}

// After 410 everything is listed anew, and what has changed is told, no more.
func TestGone(t *testing.T) {
	for name, f := range map[string]faults{"stream": {}, "pages": {noStreams: true}} {
		t.Run(name, func(t *testing.T) {
			live(t, func(s *fakeServer, _ *Informer) {
				s.set(f)
				s.write("same")
				s.write("changed")
				s.write("gone")
				s.write("reborn")
			}, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
				synctest.Wait()
				if n := len(h.take()); n != 4 {
					t.Fatalf("told of %d pods", n)
				}
				kept, _, _ := i.GetStore().GetByKey("ns0/same")
				f.refuse = 100
				s.set(f)
				s.kick()
				synctest.Wait()
				s.write("changed")
				s.delete("gone")
				s.delete("reborn")
				s.write("reborn")
				s.compact()
				f.refuse = 0
				s.set(f)
				time.Sleep(time.Minute)
				told := map[string]bool{}
				for _, s := range h.take() {
					told[s] = true
				}
				want := []string{"update changed@3 changed@6", "delete unknown gone@4", "delete unknown reborn@5", "add reborn@9"}
				for _, w := range want {
					if !told[w] {
						t.Errorf("told %v, want %q", told, w)
					}
				}
				if len(told) != len(want) {
					t.Errorf("told %v, want %q", told, want)
				}
				if now, _, _ := i.GetStore().GetByKey("ns0/same"); now != kept {
					t.Error("an object that has not changed was replaced")
				}
				if got := i.Status(time.Now()).Lists["expired"]; got != 1 {
					t.Errorf("%d lists because of expiry", got)
				}
			})
		})
	}
}

// After etcd was restored from a backup everything is taken anew, even what has the same version.
func TestRestoredFromBackup(t *testing.T) {
	for name, f := range map[string]faults{
		"stream": {}, "pages": {noStreams: true},
		"stream, told by the watch": {tellsFuture: true}, "pages, told by the watch": {noStreams: true, tellsFuture: true},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(s *fakeServer, _ *Informer) { s.set(f) }, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
				s.write("a")
				restore := s.backup()
				expect(t, h, "add a@2")
				s.write("a")
				s.write("b")
				expect(t, h, "update a@2 a@3", "add b@4")
				waiting := make(chan error, 1)
				go func() { waiting <- i.Barrier().WaitFor(t.Context(), "1000") }()
				restore()
				s.write("a") // It has version 3 again, but is another state.
				other, _, _ := i.GetStore().GetByKey("ns1/a")
				time.Sleep(time.Minute)
				told := h.take()
				if len(told) != 2 {
					t.Errorf("told %q", told)
				}
				if now, _, _ := i.GetStore().GetByKey("ns1/a"); now == other || now.(*corev1.Pod).ResourceVersion != "3" {
					t.Error("the state of the lost history was kept")
				}
				if i.Barrier().Epoch() != 1 || i.LastSyncResourceVersion() != "3" {
					t.Errorf("epoch %d at version %s", i.Barrier().Epoch(), i.LastSyncResourceVersion())
				}
				if err := <-waiting; !errors.Is(err, ErrHistoryLost) {
					t.Errorf("waiting for a version of the lost history: %v", err)
				}
			})
		})
	}
}

// A watch from which nothing comes any more is left.
func TestSilentWatch(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		s.set(faults{stall: 100})
		s.write("a") // wakes the reader, which then stalls
		expect(t, h, "add a@2")
		s.set(faults{})
		s.write("b")
		expect(t, h)
		time.Sleep(maxSilence + time.Second)
		expect(t, h, "add b@3")
	})
}

// A request that is not answered is given up, whichever it is: TCP does not tell a frozen server from one
// that has nothing to say.
func TestFrozenServer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		thawed faults
		// lose is what makes the informer send the request.
		lose func(*fakeServer)
	}{
		{name: "watch", lose: func(*fakeServer) { time.Sleep(2*minWatchTimeout - time.Minute) }},
		{name: "question for the version", lose: (*fakeServer).kick},
		{name: "streaming list", lose: func(s *fakeServer) { s.compact(); s.kick() }},
		{name: "list in pages", thawed: faults{noStreams: true}, lose: func(s *fakeServer) { s.compact(); s.kick() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prepare := func(s *fakeServer, _ *Informer) { s.set(tc.thawed) }
			live(t, prepare, func(t *testing.T, s *fakeServer, _ *Informer, h *recorder) {
				frozen := tc.thawed
				frozen.freeze = true
				s.set(frozen)
				tc.lose(s)
				time.Sleep(2 * time.Minute) // the request is sent, and not answered
				s.set(tc.thawed)
				s.write("a")
				expect(t, h)
				time.Sleep(maxAnswer)
				expect(t, h, "add a@2")
			})
		})
	}
}

// Whatever a server does, it is not asked more often than the back-off says.
func TestNoBusyLoop(t *testing.T) {
	const minutes = 30
	for name, tc := range map[string]struct {
		faults faults
		most   int
	}{
		"everything fails":                   {faults{fail: 100}, 130},
		"nobody listens":                     {faults{refuse: 100}, 750},
		"everything is throttled":            {faults{throttle: 100}, 130},
		"watches end at once":                {faults{end: 100}, 260},
		"watches end at once, paged":         {faults{end: 100, noStreams: true}, 260},
		"watches break at once":              {faults{drop: 100}, 260},
		"versions are always gone":           {faults{gone: 100}, 390},
		"versions are always gone, paged":    {faults{gone: 100, noStreams: true}, 390},
		"versions always go back":            {faults{rewind: 100, noStreams: true}, 390},
		"streams never say that they end":    {faults{noBookmarkEnd: true, end: 50}, 390},
		"watches stall, and lists are paged": {faults{stall: 100, noStreams: true}, 130},
		"watches stall":                      {faults{stall: 100}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(s *fakeServer, _ *Informer) {
				for range 5 {
					s.write("a")
				}
				s.set(tc.faults)
			}, func(t *testing.T, s *fakeServer, _ *Informer, _ *recorder) {
				for range minutes * 60 { // Something happens every second.
					time.Sleep(time.Second)
					s.write("b")
				}
				if n := s.asked().opens + s.asked().lists + s.asked().probes; n > tc.most || n < 3 {
					t.Errorf("%d requests in %d minutes, want no more than %d", n, minutes, tc.most)
				}
				s.set(faults{})
				time.Sleep(6 * time.Minute)
			})
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Run("grows, with jitter, and is bounded", func(t *testing.T) {
		var b backoff
		failure := errors.New("no")
		want := firstDelay
		for range 40 {
			if got := b.next(failure, time.Second); got < want/2 || got > want {
				t.Fatalf("%s, want %s to %s", got, want/2, want)
			}
			want = min(2*want, maxDelay)
		}
	})
	t.Run("a server that is away is asked more often", func(t *testing.T) {
		var b backoff
		for range 40 {
			if got := b.next(syscall.ECONNREFUSED, 0); got > maxDelayUnreachable {
				t.Fatal(got)
			}
		}
	})
	t.Run("a watch that has lived makes the next prompt", func(t *testing.T) {
		var b backoff
		for range 10 {
			b.next(io.EOF, time.Second)
		}
		if got := b.next(io.EOF, provenAfter); got != 0 {
			t.Errorf("%s after the ordinary end of a watch", got)
		}
		if got := b.next(errors.New("broken"), time.Second); got > firstDelay {
			t.Errorf("%s after the first failure", got)
		}
	})
	t.Run("the server's wish counts", func(t *testing.T) {
		var b backoff
		if got := b.next(apierrors.NewTooManyRequests("slow down", 7), time.Hour); got != 7*time.Second {
			t.Errorf("%s, want 7s", got)
		}
	})
}

func TestWatchErrorHandler(t *testing.T) {
	var (
		mu   sync.Mutex
		seen []error
	)
	live(t, func(_ *fakeServer, i *Informer) {
		if err := i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *clientcache.Reflector, err error) {
			if r.TypeDescription() != "*v1.Pod" {
				t.Errorf("reflector of %q", r.TypeDescription())
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, err)
		}); err != nil {
			t.Error(err)
		}
	}, func(t *testing.T, s *fakeServer, _ *Informer, _ *recorder) {
		time.Sleep(11 * time.Minute) // The watch ends in order: no error.
		s.kick()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != 1 || !errors.Is(seen[0], syscall.ECONNRESET) {
			t.Errorf("seen %v, want the one broken connection", seen)
		}
	})
}

// An object for which a transform fails is cached as it is.
func TestTransform(t *testing.T) {
	live(t, func(s *fakeServer, i *Informer) {
		s.write("good")
		s.write("bad")
		if err := i.SetTransform(func(obj any) (any, error) {
			pod := obj.(*corev1.Pod)
			if pod.Name == "bad" {
				return nil, errors.New("no")
			}
			pod.Labels = map[string]string{"transformed": "yes"}
			return pod, nil
		}); err != nil {
			t.Error(err)
		}
	}, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		s.write("later-good") // namespace ns0
		synctest.Wait()
		for _, key := range []string{"ns0/good", "ns0/later-good"} {
			obj, ok, _ := i.GetStore().GetByKey(key)
			if !ok || obj.(*corev1.Pod).Labels["transformed"] != "yes" {
				t.Errorf("%s: %v", key, obj)
			}
		}
		if _, ok, _ := i.GetStore().GetByKey("ns1/bad"); !ok {
			t.Error("bad is missing")
		}
	})
}

func TestRelistAfter(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for _, tc := range []struct {
		err  error
		want reason
	}{
		{io.EOF, notNeeded},
		{syscall.ECONNREFUSED, notNeeded},
		{apierrors.NewTimeoutError("slow", 1), notNeeded},
		{apierrors.NewTooManyRequests("slow down", 1), notNeeded},
		{fmt.Errorf("watching: %w", apierrors.NewResourceExpired("old")), reasonExpired},
		//lint:ignore SA1019 Old servers answer so.
		{apierrors.NewGone("old"), reasonExpired},
		{fmt.Errorf("watching: %w", tooLarge), reasonTooLarge},
		{fmt.Errorf("reading: %w", errWentBack), reasonWentBack},
	} {
		if got := relistAfter(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

// A watch that goes on from further back than was asked for shows nothing of what is past.
func TestRewoundWatch(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		for range 3 {
			s.write("a")
			synctest.Wait()
		}
		expect(t, h, "add a@2", "update a@2 a@3", "update a@3 a@4")
		s.set(faults{rewind: 100, delay: 100})
		s.kick()
		time.Sleep(2 * time.Second)
		s.set(faults{})
		time.Sleep(time.Minute)
		s.write("b")
		synctest.Wait()
		for _, told := range h.take() {
			if told != "update a@4 a@4" && told != "add b@5" {
				t.Errorf("told %q", told)
			}
		}
		if n := i.Status(time.Now()).Lists["version went back"]; n != 1 {
			t.Errorf("%d lists because the version went back, want 1", n)
		}
	})
}

// Events that are at hand are applied as one batch, also when an error comes after them.
func TestBursts(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		s.set(faults{bursts: true, refuse: 100})
		s.kick()
		synctest.Wait()
		for range 2 {
			s.write("a")
			s.write("b")
		}
		s.set(faults{bursts: true})
		time.Sleep(time.Minute)
		expect(t, h, "add a@4", "add b@5") // Nothing in between: they came together.
		s.set(faults{bursts: true, drop: 60})
		for range 100 {
			s.write("c")
			s.write("d")
			time.Sleep(10 * time.Second)
		}
		s.set(faults{})
		time.Sleep(time.Minute)
		for key, pod := range s.state() {
			if obj, ok, _ := i.GetStore().GetByKey(key); !ok || obj.(*corev1.Pod).ResourceVersion != pod.ResourceVersion {
				t.Errorf("%s is not as the server has it", key)
			}
		}
	})
}
