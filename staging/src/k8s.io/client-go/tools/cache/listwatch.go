// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// NewListWatchSource returns a Source that reads through a client: a clientset, a dynamic client, or
// a fake of one.
func NewListWatchSource(lw clientcache.ListerWatcher) Source {
	return &listWatchSource{
		lw:        clientcache.ToListerWatcherWithContext(lw),
		noStreams: watchlist.DoesClientNotSupportWatchListSemantics(lw),
	}
}

type listWatchSource struct {
	lw        clientcache.ListerWatcherWithContext
	noStreams bool
}

func (s *listWatchSource) List(ctx context.Context, opts metav1.ListOptions) (Page, error) {
	list, err := s.lw.ListWithContext(ctx, opts)
	if err != nil {
		return Page{}, err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return Page{}, fmt.Errorf("reading a list: %T is no list: %w", list, err)
	}
	// A copy of each item, for a pointer into the list would keep all of it alive.
	objs, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return Page{}, fmt.Errorf("reading the items of a %T: %w", list, err)
	}
	page := Page{
		Items:           make([]Item, len(objs)),
		ResourceVersion: listMeta.GetResourceVersion(),
		Continue:        listMeta.GetContinue(),
	}
	for i, obj := range objs {
		page.Items[i] = Item{Object: obj}
	}
	return page, nil
}

func (s *listWatchSource) Watch(ctx context.Context, opts metav1.ListOptions) (EventReader, error) {
	if s.noStreams && opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		return nil, ErrStreamingListUnsupported
	}
	w, err := s.lw.WatchWithContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &watchReader{ctx: ctx, watch: w, closed: make(chan struct{})}, nil
}

// watchReader pulls from a watch that pushes.
type watchReader struct {
	ctx    context.Context // of Watch
	watch  watch.Interface
	once   sync.Once
	closed chan struct{}
}

func (r *watchReader) Next() (Event, error) {
	select {
	case e, ok := <-r.watch.ResultChan():
		if !ok {
			if err := r.ctx.Err(); err != nil {
				return Event{}, err
			}
			return Event{}, io.EOF
		}
		return eventOf(e)
	case <-r.ctx.Done():
		return Event{}, r.ctx.Err()
	case <-r.closed:
		return Event{}, errors.New("the watch was closed")
	}
}

// More says that an event waits in the channel.
func (r *watchReader) More() bool { return len(r.watch.ResultChan()) > 0 }

func (r *watchReader) Close() error {
	r.once.Do(func() {
		close(r.closed)
		r.watch.Stop()
	})
	return nil
}

func eventOf(e watch.Event) (Event, error) {
	if e.Type == watch.Error {
		return Event{}, apierrors.FromObject(e.Object)
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return Event{}, fmt.Errorf("a watch sent a %T of type %q: %w", e.Object, e.Type, err)
	}
	event := Event{Type: e.Type, ResourceVersion: m.GetResourceVersion()}
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		event.Object = e.Object
		return event, nil
	case watch.Bookmark:
		event.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		return event, nil
	default:
		return Event{}, fmt.Errorf("a watch sent an event of unknown type %q", e.Type)
	}
}

// unaskable is a ListerWatcher that cannot be asked. It stands for an informer's Source where
// client-go wants a ListerWatcher.
type unaskable struct{}

var errUnaskable = errors.New("this informer reads from a Source")

func (unaskable) List(metav1.ListOptions) (runtime.Object, error)   { return nil, errUnaskable }
func (unaskable) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errUnaskable }
