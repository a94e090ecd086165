// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Source lists and watches one resource, perhaps restricted to a namespace or by selectors that the
// source itself adds to the options. Its methods may be called concurrently.
//
// Objects that a source gives belong to the cache from then on: the source keeps no reference to an
// object by which it would be changed. Objects may share sub-structures with one another, since
// nobody changes what is cached. Each object must be a metav1.Object.
type Source interface {
	// List reads one page: opts say the limit, the continue token and the resource version.
	//
	// The error of an API server is (or wraps) a *apierrors.StatusError; apierrors.IsResourceExpired,
	// IsTooManyRequests and such must see it.
	List(ctx context.Context, opts metav1.ListOptions) (Page, error)

	// Watch opens a watch and returns once the server has answered. With opts.SendInitialEvents it
	// is a streaming list: an Added event for every object there is, then a Bookmark with
	// InitialEventsEnd set, then what changes. opts.TimeoutSeconds is always set.
	//
	// A server that refuses a streaming list answers 422 Invalid, which is returned as it is. What
	// cannot even be asked for one (a fake client) is told by ErrStreamingListUnsupported; its
	// resource versions are then not trusted to mean anything either.
	//
	// The reader ends when ctx does; Next then returns an error promptly.
	Watch(ctx context.Context, opts metav1.ListOptions) (EventReader, error)
}

// Page is a part of a list.
type Page struct {
	Items []Item
	// ResourceVersion is the version of the list; the watch goes on from there.
	ResourceVersion string
	// Continue asks for the next page; empty on the last one.
	Continue string
}

// Item is an object and what it costs.
type Item struct {
	Object runtime.Object
	// Size is about how many bytes of memory the object holds alone, for the live view; zero when
	// the source does not know.
	Size int32
}

// EventReader is a watch that is pulled by the one goroutine that owns it.
type EventReader interface {
	// Next blocks for the next event. Its error is
	//   - io.EOF when the server has ended the watch in order;
	//   - the *apierrors.StatusError of an ERROR event (410 Gone, say);
	//   - the context's error when the context of Watch is done;
	//   - anything else when the connection broke or the stream made no sense.
	// After an error it is not called again.
	Next() (Event, error)

	// Close ends the watch and releases all it holds, goroutines included. It may be called more
	// than once and, to wake a blocked Next, from another goroutine.
	Close() error
}

// burstReader is an EventReader that knows whether its next event is at hand. Events that are at
// hand are applied to the cache as one batch. Implementing it is optional.
type burstReader interface {
	EventReader
	// More says that Next will return without waiting.
	More() bool
}

// Event is one event of a watch.
type Event struct {
	// Type is watch.Added, watch.Modified, watch.Deleted or watch.Bookmark.
	Type watch.EventType
	// Item has the object: the last state before its end for a deletion, nothing for a bookmark.
	Item
	// ResourceVersion is that of the event: of the object (for a deletion: of the deletion), or of
	// the bookmark.
	ResourceVersion string
	// InitialEventsEnd is set on the bookmark that ends the initial events of a streaming list:
	// the one with the annotation metav1.InitialEventsAnnotationKey.
	InitialEventsEnd bool
}
