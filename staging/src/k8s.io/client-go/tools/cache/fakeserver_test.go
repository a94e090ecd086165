// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// fakeServer is an API server for one resource: a map, its history, and faults.
type fakeServer struct {
	// mu guards the following fields.
	mu        sync.Mutex
	changed   *sync.Cond
	objects   map[string]*corev1.Pod
	history   []serverEvent // ascending
	version   int
	compacted int
	uids      int
	faults    faults
	random    *rand.Rand
	// kicked counts the times that all watches were broken.
	kicked int
	requests
	openWatches int
}

// requests are what a server was asked.
type requests struct {
	lists, probes, opens, streams int
	watch                         metav1.ListOptions // of the last watch
}

// asked returns what the server was asked so far.
func (s *fakeServer) asked() requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

type serverEvent struct {
	version int
	kind    watch.EventType
	pod     *corev1.Pod
}

// faults are the chances, in percent, that something goes wrong.
type faults struct {
	refuse, throttle, fail int // of a request
	noStreams              bool
	noBookmarkEnd          bool // streaming lists do not say that they are complete
	expireContinue         int  // of a page after the first
	end, drop, gone        int  // of a watch, before each event
	freeze                 bool // requests are not answered
	stall                  int  // of a watch, for ever, before each event
	duplicate, rewind      int  // of an event, of a watch when it is opened
	delay                  int
	bursts                 bool // readers know when there is more
	tellsFuture            bool // of a watch from a version that is still to come
	pageSize               int
}

func newFakeServer(seed uint64) *fakeServer {
	s := &fakeServer{objects: map[string]*corev1.Pod{}, version: 1, random: rand.New(rand.NewPCG(seed, 1))}
	s.changed = sync.NewCond(&s.mu)
	s.faults.pageSize = 7
	return s
}

func (s *fakeServer) set(f faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.pageSize == 0 {
		f.pageSize = 7
	}
	s.faults = f
}

// write creates or updates the pod of the name.
func (s *fakeServer) write(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := watch.Modified
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns" + strconv.Itoa(len(name)%2), Name: name}}
	if old := s.objects[name]; old != nil {
		pod.UID, pod.Generation = old.UID, old.Generation
	} else {
		kind = watch.Added
		s.uids++
		pod.UID = types.UID(strconv.Itoa(s.uids))
	}
	pod.Generation++
	pod.ResourceVersion = strconv.Itoa(s.version)
	pod.Labels = map[string]string{"parity": strconv.Itoa(s.random.IntN(3))}
	s.objects[name] = pod
	s.history = append(s.history, serverEvent{s.version, kind, pod})
	s.changed.Broadcast()
	return pod
}

func (s *fakeServer) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[name]
	if old == nil {
		return
	}
	s.version++
	delete(s.objects, name)
	last := old.DeepCopy()
	last.ResourceVersion = strconv.Itoa(s.version)
	s.history = append(s.history, serverEvent{s.version, watch.Deleted, last})
	s.changed.Broadcast()
}

// compact forgets the history.
func (s *fakeServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.version
	s.history = nil
}

// kick breaks all watches.
func (s *fakeServer) kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kicked++
	s.changed.Broadcast()
}

// restore makes the server what it was when the backup was taken.
func (s *fakeServer) backup() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, version := maps.Clone(s.objects), s.version
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.objects, s.version, s.compacted, s.history = maps.Clone(objects), version, 0, nil
		s.uids += 1000
		s.kicked++
		s.changed.Broadcast()
	}
}

func (s *fakeServer) state() map[string]*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := map[string]*corev1.Pod{}
	for _, pod := range s.objects {
		state[pod.Namespace+"/"+pod.Name] = pod
	}
	return state
}

func (s *fakeServer) chanceLocked(percent int) bool { return s.random.IntN(100) < percent }

func (s *fakeServer) requestFaultLocked() error {
	switch {
	case s.chanceLocked(s.faults.refuse):
		return syscall.ECONNREFUSED
	case s.chanceLocked(s.faults.throttle):
		return apierrors.NewTooManyRequests("slow down", 2)
	case s.chanceLocked(s.faults.fail):
		return apierrors.NewInternalError(errors.New("no luck"))
	}
	return nil
}

// thaw returns when the server is not frozen, or the request is given up.
func (s *fakeServer) thaw(ctx context.Context) error {
	s.mu.Lock()
	frozen := s.faults.freeze
	s.mu.Unlock()
	if !frozen {
		return nil
	}
	<-ctx.Done() // What a frozen server has taken in is lost with the connection.
	return ctx.Err()
}

func (s *fakeServer) List(ctx context.Context, opts metav1.ListOptions) (Page, error) {
	if err := s.thaw(ctx); err != nil {
		return Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if opts.Limit == 1 {
		s.probes++
	} else {
		s.lists++
	}
	if err := s.requestFaultLocked(); err != nil {
		return Page{}, err
	}
	names := slices.Sorted(maps.Keys(s.objects))
	version := s.version
	if opts.Continue != "" {
		if s.chanceLocked(s.faults.expireContinue) {
			return Page{}, apierrors.NewResourceExpired("the continue token is too old")
		}
		var after string
		if _, err := fmt.Sscanf(opts.Continue, "%d %s", &version, &after); err != nil {
			return Page{}, err
		}
		if version != s.version { // The model keeps no old states.
			return Page{}, apierrors.NewResourceExpired("the continue token is too old")
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	}
	page := Page{ResourceVersion: strconv.Itoa(version)}
	for i, name := range names {
		if opts.Limit > 0 && i == min(int(opts.Limit), s.faults.pageSize) {
			page.Continue = fmt.Sprintf("%d %s", version, names[i-1])
			break
		}
		page.Items = append(page.Items, Item{Object: s.objects[name].DeepCopy(), Size: 100})
	}
	return page, nil
}

func (s *fakeServer) Watch(ctx context.Context, opts metav1.ListOptions) (EventReader, error) {
	if err := s.thaw(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	s.requests.watch = opts
	if err := s.requestFaultLocked(); err != nil {
		return nil, err
	}
	r := &fakeReader{server: s, kicked: s.kicked, ends: time.Now().Add(time.Duration(*opts.TimeoutSeconds) * time.Second)}
	if opts.SendInitialEvents != nil {
		if s.faults.noStreams {
			return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		}
		s.streams++
		r.at = s.version
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			r.initial = append(r.initial, podEvent(watch.Added, s.objects[name]))
		}
		r.initial = append(r.initial, Event{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(s.version), InitialEventsEnd: !s.faults.noBookmarkEnd})
	} else {
		at, err := strconv.Atoi(opts.ResourceVersion)
		switch {
		case err != nil:
			return nil, apierrors.NewBadRequest("a watch needs a version here")
		case at < s.compacted:
			return nil, apierrors.NewResourceExpired("too old resource version")
		case at > s.version && s.faults.tellsFuture:
			tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
			tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
			return nil, tooLarge
		}
		r.at = at
		if s.chanceLocked(s.faults.rewind) {
			r.at = max(s.compacted, at-3)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	r.ctx, r.stop = ctx, stop
	s.openWatches++
	return r, nil
}

func podEvent(kind watch.EventType, pod *corev1.Pod) Event {
	return Event{Type: kind, Item: Item{Object: pod.DeepCopy(), Size: 100}, ResourceVersion: pod.ResourceVersion}
}

type fakeReader struct {
	server  *fakeServer
	ctx     context.Context
	stop    func() bool
	closed  bool
	kicked  int
	ends    time.Time
	at      int
	initial []Event
	again   *Event
	marked  time.Time
}

func (r *fakeReader) Close() error {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.server.openWatches--
		r.stop()
	}
	return nil
}

// More says that an event, or an error, is at hand.
func (r *fakeReader) More() bool {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.bursts && (len(r.initial) > 0 || len(s.history) > 0 && s.history[len(s.history)-1].version > r.at)
}

func (r *fakeReader) Next() (Event, error) {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	if s.chanceLocked(f.delay) {
		s.mu.Unlock()
		time.Sleep(time.Second)
		s.mu.Lock()
	}
	switch {
	case s.chanceLocked(f.end):
		return Event{}, io.EOF
	case s.chanceLocked(f.drop):
		return Event{}, io.ErrUnexpectedEOF
	case s.chanceLocked(f.gone):
		return Event{}, apierrors.NewResourceExpired("gone")
	case s.chanceLocked(f.stall):
		for r.ctx.Err() == nil {
			s.changed.Wait()
		}
		return Event{}, r.ctx.Err()
	}
	if r.again != nil && s.chanceLocked(f.duplicate) {
		e := *r.again
		r.again = nil
		return e, nil
	}
	for _, in := range []time.Duration{time.Minute, time.Until(r.ends)} { // for the bookmark, and the end
		wake := time.AfterFunc(in, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
		defer wake.Stop()
	}
	r.marked = time.Now()
	for {
		if e, err := r.nextLocked(); e != nil || err != nil {
			if err != nil {
				return Event{}, err
			}
			r.again = e
			return *e, nil
		}
		s.changed.Wait()
	}
}

func (r *fakeReader) nextLocked() (*Event, error) {
	s := r.server
	switch {
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	case r.kicked != s.kicked:
		return nil, syscall.ECONNRESET
	case !time.Now().Before(r.ends):
		return nil, io.EOF
	case len(r.initial) > 0:
		e := r.initial[0]
		r.initial = r.initial[1:]
		return &e, nil
	case r.at < s.compacted:
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	for _, h := range s.history {
		if h.version > r.at {
			r.at = h.version
			e := podEvent(h.kind, h.pod)
			return &e, nil
		}
	}
	if time.Since(r.marked) >= time.Minute {
		r.marked = time.Now()
		r.at = max(r.at, s.version)
		return &Event{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(r.at)}, nil
	}
	return nil, nil
}
