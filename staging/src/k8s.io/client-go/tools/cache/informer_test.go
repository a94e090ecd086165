// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// gate is a recorder that waits before it takes anything in, until it is opened.
type gate struct {
	recorder
	opened chan struct{}
}

func (g *gate) OnAdd(obj any, initial bool) { <-g.opened; g.recorder.OnAdd(obj, initial) }
func (g *gate) OnUpdate(old, obj any)       { <-g.opened; g.recorder.OnUpdate(old, obj) }
func (g *gate) OnDelete(obj any)            { <-g.opened; g.recorder.OnDelete(obj) }

// A slow handler delays nobody, and what it has not seen is coalesced per object.
func TestSlowHandler(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		slow := &gate{opened: make(chan struct{})}
		registration, err := i.AddEventHandler(slow)
		if err != nil {
			t.Fatal(err)
		}
		s.write("first") // keeps it busy
		synctest.Wait()
		s.write("brief")
		for range 1000 {
			for n := range 3 {
				s.write("pod-" + strconv.Itoa(n))
			}
			synctest.Wait()
		}
		s.delete("brief")
		s.delete("pod-2")
		synctest.Wait()
		if told := h.take(); len(told) != 3004 {
			t.Errorf("the other handler was told %d times, want 3004", len(told))
		}
		if n := len(i.GetStore().List()); n != 3 {
			t.Errorf("%d pods are stored, want 3", n)
		}
		status := i.Status(time.Now()).Handlers[1]
		if status.Waiting != 4 || status.BusySince == nil || registration.HasSynced() != true {
			t.Errorf("status %+v", status)
		}
		close(slow.opened)
		expect(t, &slow.recorder, "add first@2", "add brief@3", "delete brief@3004", "add pod-0@3001", "add pod-1@3002", "add pod-2@3003", "delete pod-2@3005")
		// What it knows is where the next update starts from.
		s.write("pod-0")
		expect(t, &slow.recorder, "update pod-0@3001 pod-0@3006")
	})
}

// What happens to an object that the handler is still to be told of is told as one way from what it
// knows to what is so.
func TestCoalescing(t *testing.T) {
	write := func(s *fakeServer) { s.write("x") }
	remove := func(s *fakeServer) { s.delete("x") }
	for _, tc := range []struct {
		name  string
		known bool
		steps []func(*fakeServer)
		want  []string
	}{
		{"add, update", false, []func(*fakeServer){write, write}, []string{"add x@5"}},
		{"add, delete", false, []func(*fakeServer){write, remove}, []string{"add x@4", "delete x@5"}},
		{"add, delete, add", false, []func(*fakeServer){write, remove, write}, []string{"add x@6"}},
		{"add, delete, add, delete", false, []func(*fakeServer){write, remove, write, remove}, []string{"add x@6", "delete x@7"}},
		{"update, update", true, []func(*fakeServer){write, write}, []string{"update x@2 x@5"}},
		{"update, delete", true, []func(*fakeServer){write, remove}, []string{"delete x@5"}},
		{"delete, add", true, []func(*fakeServer){remove, write}, []string{"delete x@4", "add x@5"}},
		{"delete, add, update", true, []func(*fakeServer){remove, write, write}, []string{"delete x@4", "add x@6"}},
		{"delete, add, delete", true, []func(*fakeServer){remove, write, remove}, []string{"delete x@4", "add x@5", "delete x@6"}},
		{"delete, add, delete, add", true, []func(*fakeServer){remove, write, remove, write}, []string{"delete x@4", "add x@7"}},
		{"update, delete, add", true, []func(*fakeServer){write, remove, write}, []string{"delete x@5", "add x@6"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
				slow := &gate{opened: make(chan struct{}, 1)}
				if _, err := i.AddEventHandler(slow); err != nil {
					t.Fatal(err)
				}
				slow.opened <- struct{}{}
				if tc.known {
					s.write("x")
				} else {
					s.write("y")
				}
				synctest.Wait()
				slow.take()
				s.write("busy") // It does not come back from this one
				synctest.Wait()
				for _, step := range tc.steps {
					step(s)
					synctest.Wait()
				}
				close(slow.opened) // until now.
				expect(t, &slow.recorder, append([]string{"add busy@3"}, tc.want...)...)
			})
		})
	}
}

func TestLateHandler(t *testing.T) {
	live(t, func(s *fakeServer, _ *Informer) {
		for n := range 200 {
			s.write("pod-" + strconv.Itoa(n))
		}
	}, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		late := &gate{opened: make(chan struct{})}
		registration, err := i.AddEventHandler(late)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if registration.HasSynced() || clientcache.IsDone(registration.HasSyncedChecker()) {
			t.Error("synced before the handler has been told anything")
		}
		if waiting := i.Status(time.Now()).Handlers[1].Waiting; waiting < 100 || waiting > 200 {
			t.Errorf("%d objects wait, want most of 200", waiting)
		}
		s.write("pod-0")
		s.write("new")
		s.delete("pod-1")
		synctest.Wait()
		close(late.opened)
		<-registration.HasSyncedChecker().Done()
		synctest.Wait()
		told := late.take()
		once := map[string]int{}
		for _, line := range told {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "add "), "@")
			if strings.HasPrefix(line, "add ") {
				once[name]++
			}
		}
		for n := range 200 {
			name := "pod-" + strconv.Itoa(n)
			if once[name] != 1 && name != "pod-1" || once[name] > 1 {
				t.Errorf("%s was added %d times", name, once[name])
			}
		}
		if !slices.Contains(told, "add new@203") || !slices.Contains(told, "add pod-7@9 initial") {
			t.Errorf("told %q", told)
		}
	})
}

func TestNoObjects(t *testing.T) {
	live(t, nil, func(t *testing.T, _ *fakeServer, i *Informer, h *recorder) {
		late := &recorder{}
		registration, err := i.AddEventHandler(late)
		if err != nil {
			t.Fatal(err)
		}
		<-registration.HasSyncedChecker().Done()
		expect(t, h)
		expect(t, late)
	})
}

// Each handler is resynced at its own period, whenever it was added; too short a period is a second.
func TestResync(t *testing.T) {
	live(t, func(s *fakeServer, _ *Informer) { s.write("a") }, func(t *testing.T, s *fakeServer, i *Informer, h *recorder) {
		minute, short, none := &recorder{}, &recorder{}, &recorder{}
		for r, period := range map[*recorder]time.Duration{minute: time.Minute, short: time.Millisecond, none: 0} {
			if _, err := i.AddEventHandlerWithResyncPeriod(r, period); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, h, "add a@2 initial")
		expect(t, none, "add a@2 initial")
		expect(t, minute, "add a@2 initial")
		expect(t, short, "add a@2 initial")
		time.Sleep(time.Second)
		expect(t, short, "update a@2 a@2")
		time.Sleep(59 * time.Second)
		expect(t, minute, "update a@2 a@2")
		synctest.Wait()
		if n := len(short.take()); n != 59 {
			t.Errorf("%d more resyncs, want 59", n)
		}
		expect(t, none)
		expect(t, h)
		s.delete("a")
		synctest.Wait()
		minute.take()
		time.Sleep(time.Minute)
		expect(t, minute)
	})
}

// A handler can remove itself, and one can wait until it is not called any more.
func TestRemoveEventHandler(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		var registration clientcache.ResourceEventHandlerRegistration
		calls := 0
		registration, err := i.AddEventHandler(clientcache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			if err := i.RemoveEventHandler(registration); err != nil {
				t.Error(err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.write("a")
		s.write("b")
		synctest.Wait()
		if err := clientcache.ShutDownEventHandler(i, registration); err != nil {
			t.Error(err)
		}
		if calls != 1 || i.handlerCount() != 1 {
			t.Errorf("%d calls, %d handlers are left", calls, i.handlerCount())
		}
		other, _ := clientcache.NewSharedIndexInformer(&clientcache.ListWatch{}, &corev1.Pod{}, 0, nil).AddEventHandler(&recorder{})
		if err := i.RemoveEventHandler(other); err == nil {
			t.Error("another informer's registration was accepted")
		}
	})
}

// A handler that was never called can be shut down before the informer runs.
func TestRemoveBeforeRun(t *testing.T) {
	i := NewInformer(newFakeServer(1), &corev1.Pod{}, Options{})
	registration, err := i.AddEventHandler(&recorder{})
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcache.ShutDownEventHandler(i, registration); err != nil || i.handlerCount() != 0 || registration.HasSynced() {
		t.Errorf("%v, %d handlers, synced %t", err, i.handlerCount(), registration.HasSynced())
	}
}

func TestLifeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewInformer(newFakeServer(1), &corev1.Pod{}, Options{Description: "pods"})
		if i.HasSynced() || i.IsStopped() || i.GetController().LastSyncResourceVersion() != "" || i.HasSyncedChecker().Name() != "pods" {
			t.Error("not as an informer should be that has not started")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.Run(ctx.Done())
		}()
		synctest.Wait()
		i.RunWithContext(ctx) // It runs already: this returns.
		for name, err := range map[string]error{
			"transform":     i.SetTransform(func(obj any) (any, error) { return obj, nil }),
			"error handler": i.SetWatchErrorHandler(func(*clientcache.Reflector, error) {}),
		} {
			if err == nil {
				t.Errorf("%s was set after the start", name)
			}
		}
		if !clientcache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			t.Error("not synced")
		}
		cancel()
		<-done
		if !i.IsStopped() {
			t.Error("not stopped")
		}
		if _, err := i.AddEventHandler(&recorder{}); !errors.Is(err, errStopped) {
			t.Errorf("adding a handler: %v", err)
		}
		if err := i.AddIndexers(clientcache.Indexers{"x": parityIndex}); !errors.Is(err, errStopped) {
			t.Errorf("adding an index: %v", err)
		}
		i.RunWithContext(t.Context()) // It never starts again.
	})
}

// Where panics are survivable, the handler goes on with the next notification.
func TestHandlerPanics(t *testing.T) {
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = true }()
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		var told []string
		if _, err := i.AddEventHandlerWithOptions(clientcache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			told = append(told, stateOf(obj))
			if len(told) == 1 {
				panic("the first one fails")
			}
		}}, clientcache.HandlerOptions{Logger: new(klog.Background())}); err != nil {
			t.Fatal(err)
		}
		s.write("a")
		s.write("b")
		synctest.Wait()
		if fmt.Sprint(told) != "[a@2 b@3]" {
			t.Errorf("told %v", told)
		}
	})
}

// An informer that hears nothing, or has no watch, says so.
func TestCheck(t *testing.T) {
	live(t, nil, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		if err := i.Check(time.Now()); err != nil {
			t.Error(err)
		}
		s.set(faults{refuse: 100})
		s.kick()
		time.Sleep(brokenTooLong)
		if err := i.Check(time.Now()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		err := i.Check(time.Now())
		if err == nil || !strings.Contains(err.Error(), "no watch for 2m") || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("unhealthy: %v", err)
		}
		if i.Status(time.Now()).Unhealthy == "" {
			t.Error("the status does not say so")
		}
		s.set(faults{})
		time.Sleep(10 * time.Second)
		if err := i.Check(time.Now()); err != nil {
			t.Error(err)
		}
		if err := i.Check(time.Now().Add(silentTooLong + time.Minute)); err == nil {
			t.Error("silence is healthy")
		}
	})
}
