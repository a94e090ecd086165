// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// minWatchTimeout is the shortest time after which the server is asked to end a watch; the
	// longest is twice as long.
	minWatchTimeout = 5 * time.Minute
	// overdue is how long the server may take to end a watch whose time is up.
	overdue = 30 * time.Second
	// maxSilence is how long nothing may come from a server that is known to send bookmarks, which
	// it does every minute, or that has been asked to stream a list.
	maxSilence = 3 * time.Minute
	// maxAnswer is how long the answer to a list, or the first word of the one to a watch, may take: a
	// server has given up a list after a minute unless it is told otherwise, but a connection to one that
	// has frozen, which is alive as far as TCP knows, says nothing.
	maxAnswer = 5 * time.Minute
	// pageSize is how many objects are listed with one request.
	pageSize = 500
	// maxBatch is how many events at hand are applied together.
	maxBatch = 256
	// maxStreamFailures is how many streaming lists in a row may break before pages are tried.
	maxStreamFailures = 2
)

// sink is what a reflector fills.
type sink interface {
	// list begins to take in a list. Afresh says that nothing of the present content may be kept,
	// because an object of the same resource version may be another one.
	list(afresh bool) listing
	// apply takes in what a watch has sent.
	apply(events []Event)
	// failed tells that the watch or a list has ended with an error.
	failed(ctx context.Context, err error)
}

// listing takes in a list. It shows nothing of it before it is complete.
type listing interface {
	add(item Item)
	// commit makes what was added the content. Lost says that the server's history is another one
	// than that of the present content.
	commit(version string, lost bool)
}

// reflector keeps a sink as the source is. One goroutine runs it and owns its fields; others see
// what it publishes in life.
type reflector struct {
	source Source
	sink   sink
	life   *life

	// version is where the watch goes on.
	version string
	// relist is why everything must be listed first.
	relist reason
	// opaque says that versions are not compared: the source is a fake, say.
	opaque bool
	// paged says that lists cannot be streamed.
	paged          bool
	streamFailures int
	// bookmarks says that the source sends bookmarks.
	bookmarks bool
	// doubtful says that the last watch has not ended in order: the server may have been restored from
	// a backup in between.
	doubtful bool
	batch    []Event
}

func newReflector(source Source, sink sink, life *life) *reflector {
	return &reflector{source: source, sink: sink, life: life, relist: reasonFirst}
}

// run lists and watches until ctx is done.
func (r *reflector) run(ctx context.Context) {
	var backoff backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := r.listAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		if why := relistAfter(err); why != notNeeded {
			r.relist = why
		}
		r.doubtful = !ordinary(err)
		delay := backoff.next(err, time.Since(began))
		r.life.ended(err)
		if !ordinary(err) {
			r.sink.failed(ctx, err)
		}
		klog.FromContext(ctx).V(4).Info("Watch ended", "err", err, "relist", string(r.relist), "nextIn", delay)
		sleep(ctx, delay)
	}
}

// listAndWatch lists if need be, and watches until the watch ends. It always returns an error.
func (r *reflector) listAndWatch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := newWatchdog(cancel)
	defer dog.stop()

	reader, err := r.open(ctx, dog)
	if err == nil {
		err = r.follow(reader, dog)
		_ = reader.Close() // The error of a watch that has ended says nothing more.
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) || errors.Is(cause, errOverdue) {
		return cause
	}
	return err
}

// open returns a watch that goes on from where the sink is, which it fills by a list if need be.
func (r *reflector) open(ctx context.Context, dog *watchdog) (EventReader, error) {
	if r.relist != notNeeded {
		if r.relist != reasonFirst || r.version != "" {
			klog.FromContext(ctx).V(2).Info("Listing everything anew", "reason", string(r.relist))
		}
		if !r.paged && r.streamFailures < maxStreamFailures {
			reader, err := r.stream(ctx, dog)
			if !errors.Is(err, errNoStream) {
				return reader, err
			}
			r.paged = true
		}
		if err := r.listPages(ctx, dog); err != nil {
			return nil, err
		}
	} else if err := r.checkHistory(ctx, dog); err != nil {
		return nil, err
	}
	timeout := watchTimeout()
	dog.deadline(maxAnswer)
	reader, err := r.source.Watch(ctx, metav1.ListOptions{
		ResourceVersion:     r.version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(timeout / time.Second)),
	})
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	r.life.opened()
	dog.deadline(timeout + overdue)
	r.setSilence(dog)
	return reader, nil
}

// checkHistory finds out whether the server has gone back behind the version at which the watch is to
// go on. The server itself would not say so: it would keep a watch from the future open, and silent.
func (r *reflector) checkHistory(ctx context.Context, dog *watchdog) error {
	if !r.doubtful || r.opaque {
		return nil
	}
	dog.deadline(maxAnswer)
	page, err := r.source.List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case err != nil:
		return fmt.Errorf("asking for the present version: %w", err)
	case newer(r.version, page.ResourceVersion):
		return errWentBack
	}
	return nil
}

func watchTimeout() time.Duration { return minWatchTimeout + rand.N(minWatchTimeout) }

// errNoStream says that lists cannot be streamed here.
var errNoStream = errors.New("the server does not stream lists")

// stream fills the sink from a streaming list and returns its watch.
func (r *reflector) stream(ctx context.Context, dog *watchdog) (EventReader, error) {
	timeout := watchTimeout()
	dog.deadline(maxAnswer)
	reader, err := r.source.Watch(ctx, metav1.ListOptions{
		SendInitialEvents:    ptr.To(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		TimeoutSeconds:       ptr.To(int64(timeout / time.Second)),
	})
	switch {
	case errors.Is(err, ErrStreamingListUnsupported):
		r.opaque = true
		return nil, errNoStream
	case apierrors.IsInvalid(err):
		return nil, errNoStream
	case err != nil:
		return nil, fmt.Errorf("opening a streaming list: %w", err)
	}
	dog.deadline(timeout + overdue)
	dog.silence(maxSilence)
	if err := r.readInitial(reader, dog); err != nil {
		_ = reader.Close() // The list's error is the one that matters.
		if !errors.Is(err, errNoStream) {
			r.streamFailures++
			err = fmt.Errorf("reading a streaming list: %w", err)
		}
		return nil, err
	}
	r.streamFailures = 0
	r.life.opened()
	r.setSilence(dog)
	return reader, nil
}

// readInitial reads a streaming list up to its end.
func (r *reflector) readInitial(reader EventReader, dog *watchdog) error {
	list := r.sink.list(r.afresh())
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		dog.alive()
		switch e.Type {
		case watch.Added, watch.Modified:
			list.add(e.Item)
		case watch.Bookmark:
			if !e.InitialEventsEnd {
				return errNoStream // It has sent everything, and does not say so.
			}
			r.bookmarks = true
			return r.listed(list, e.ResourceVersion)
		default:
			return fmt.Errorf("a streaming list has an event of type %q", e.Type)
		}
	}
}

// listPages fills the sink from a list in pages.
func (r *reflector) listPages(ctx context.Context, dog *watchdog) error {
	list := r.sink.list(r.afresh())
	opts := metav1.ListOptions{Limit: pageSize}
	for {
		dog.deadline(maxAnswer)
		page, err := r.source.List(ctx, opts)
		switch {
		case err != nil && opts.Continue != "" && apierrors.IsResourceExpired(err):
			// It has taken too long to come to this page. All at once cannot expire.
			list = r.sink.list(r.afresh())
			opts = metav1.ListOptions{}
			continue
		case err != nil:
			return fmt.Errorf("listing: %w", err)
		}
		for _, item := range page.Items {
			list.add(item)
		}
		if page.Continue == "" {
			r.streamFailures = 0
			return r.listed(list, page.ResourceVersion)
		}
		opts.Continue = page.Continue
	}
}

// listed makes a complete list what the sink holds.
func (r *reflector) listed(list listing, version string) error {
	lost := !r.opaque && newer(r.version, version)
	if lost && r.relist != reasonWentBack {
		return errWentBack // What of the list was left to the present content is of another history.
	}
	why := r.relist
	list.commit(version, lost || why == reasonWentBack)
	r.version, r.relist = version, notNeeded
	r.life.listed(why)
	return nil
}

// afresh says whether the present content says nothing about what is listed.
func (r *reflector) afresh() bool { return r.opaque || r.relist == reasonWentBack }

// follow passes on what the watch sends until it ends. It always returns an error.
func (r *reflector) follow(reader EventReader, dog *watchdog) error {
	burst, _ := reader.(burstReader)
	for {
		e, err := reader.Next()
		if err == nil {
			dog.alive()
			err = r.take(e, dog)
		}
		if err != nil || burst == nil || len(r.batch) >= maxBatch || !burst.More() {
			r.flush()
		}
		if err != nil {
			return err
		}
	}
}

// take puts an event in the batch.
func (r *reflector) take(e Event, dog *watchdog) error {
	if !r.opaque && newer(r.version, e.ResourceVersion) {
		return errWentBack
	}
	if e.Type == watch.Bookmark && !r.bookmarks {
		r.bookmarks = true
		r.setSilence(dog)
	}
	if e.ResourceVersion != "" {
		r.version = e.ResourceVersion
	}
	r.batch = append(r.batch, e)
	return nil
}

func (r *reflector) flush() {
	if len(r.batch) == 0 {
		return
	}
	r.sink.apply(r.batch)
	r.life.seen(len(r.batch))
	clear(r.batch)
	r.batch = r.batch[:0]
}

func (r *reflector) setSilence(dog *watchdog) {
	if r.bookmarks {
		dog.silence(maxSilence)
		return
	}
	dog.silence(0)
}

// watchdog ends a watch that should have ended, or from which nothing comes: a connection that is
// dead may look alive.
type watchdog struct {
	overdue, silent *time.Timer
	limit           time.Duration
}

// newWatchdog returns a watchdog that waits for nothing yet.
func newWatchdog(bark func(cause error)) *watchdog {
	d := &watchdog{
		overdue: time.AfterFunc(time.Hour, func() { bark(errOverdue) }),
		silent:  time.AfterFunc(time.Hour, func() { bark(errSilent) }),
	}
	d.stop()
	return d
}

func (d *watchdog) stop() {
	d.overdue.Stop()
	d.silent.Stop()
}

// deadline lets the watch live that long.
func (d *watchdog) deadline(in time.Duration) { d.overdue.Reset(in) }

// silence lets the watch be silent for that long; zero for ever.
func (d *watchdog) silence(limit time.Duration) {
	d.limit = limit
	d.silent.Stop()
	d.alive()
}

// alive says that something has come.
func (d *watchdog) alive() {
	if d.limit > 0 {
		d.silent.Reset(d.limit)
	}
}
