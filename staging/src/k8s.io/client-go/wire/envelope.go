// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"google.golang.org/protobuf/encoding/protowire"
)

// magic begins what Kubernetes encodes as protobuf; a runtime.Unknown follows.
var magic = []byte("k8s\x00")

// Field numbers of the envelopes: runtime.Unknown and TypeMeta, RawExtension, WatchEvent, lists.
const (
	unknownTypeMeta  = 1
	unknownRaw       = 2
	typeMetaKind     = 2
	extensionRaw     = 1
	watchEventType   = 1
	watchEventObject = 2
	listMetadata     = 1
	listItems        = 2
)

// unwrap takes the object out of its envelope.
func unwrap(b []byte) (kind, raw []byte, err error) {
	if !bytes.HasPrefix(b, magic) {
		return nil, nil, fmt.Errorf("the object does not begin as protobuf of Kubernetes does, but with %q", b[:min(len(b), 16)])
	}
	c := cursor{msg: b[len(magic):]}
	for c.next() {
		switch {
		case c.typ != protowire.BytesType:
		case c.num == unknownTypeMeta:
			kind = kindOfTypeMeta(c.val)
		case c.num == unknownRaw:
			raw = c.val
		}
	}
	if c.bad {
		return nil, nil, errors.New("the envelope of the object is broken")
	}
	return kind, raw, nil
}

func kindOfTypeMeta(b []byte) (kind []byte) {
	c := cursor{msg: b}
	for c.next() {
		if c.num == typeMetaKind {
			kind = c.val
		}
	}
	return kind
}

// readList reads a list from a response, item by item.
func readList(s *stream, d *decoder, k *Kind) (cache.Page, error) {
	var page cache.Page
	first, err := s.peek(len(magic))
	switch {
	case len(first) > 0 && first[0] == '{':
		return readJSONList(s, k)
	case err != nil:
		return page, fmt.Errorf("reading the list: %w", noEOF(err))
	case !bytes.Equal(first, magic):
		return page, fmt.Errorf("the list is neither protobuf of Kubernetes nor JSON: it begins with %q", first)
	}
	s.from += len(magic)
	for whole := false; ; {
		h, err := s.header()
		if errors.Is(err, io.EOF) && whole {
			return page, nil
		}
		if err == nil {
			err = readListEnvelope(s, d, k, h, &page)
			whole = whole || h.num == unknownRaw
		}
		err = noEOF(err)
		if err != nil {
			return page, fmt.Errorf("reading the list: %w", err)
		}
	}
}

// readListEnvelope reads one field of the envelope of a list.
func readListEnvelope(s *stream, d *decoder, k *Kind, h header, page *cache.Page) error {
	if h.num == unknownRaw && h.typ == protowire.BytesType {
		return readListFields(s, d, k, h.length, page)
	}
	b, err := s.takeAll(h.content())
	if err != nil {
		return err
	}
	if h.num == unknownTypeMeta && h.typ == protowire.BytesType {
		if kind := kindOfTypeMeta(b); !bytes.HasSuffix(kind, []byte("List")) {
			return fmt.Errorf("the server has sent an object of kind %q", kind)
		}
	}
	return nil
}

// readListFields reads the fields of the list itself, which has so many bytes.
func readListFields(s *stream, d *decoder, k *Kind, left uint64, page *cache.Page) error {
	for left > 0 {
		h, err := s.header()
		if err != nil {
			return noEOF(err)
		}
		if size := uint64(h.size) + h.content(); size < h.content() || size > left {
			return fmt.Errorf("field %d of the list is longer than the list", h.num)
		} else {
			left -= size
		}
		b, err := s.takeAll(h.content())
		if err != nil {
			return err
		}
		if h.typ != protowire.BytesType {
			continue
		}
		switch h.num {
		case listMetadata:
			var meta metav1.ListMeta
			if err := meta.Unmarshal(b); err != nil {
				return fmt.Errorf("decoding the list's metadata: %w", err)
			}
			page.ResourceVersion, page.Continue = meta.ResourceVersion, meta.Continue
		case listItems:
			obj, size, err := k.object(d, b)
			if err != nil {
				return err
			}
			page.Items = append(page.Items, cache.Item{Object: obj, Size: int32(size)})
		}
	}
	return nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lengthOfFrame is the number of bytes that say how long a frame is.
const lengthOfFrame = 4

// readEvent reads the next event of a watch. Its error is io.EOF when the stream ended in order.
func readEvent(s *stream, d *decoder, k *Kind) (cache.Event, error) {
	b, err := s.peek(lengthOfFrame)
	if err != nil {
		return cache.Event{}, err
	}
	length := binary.BigEndian.Uint32(b)
	s.from += lengthOfFrame
	frame, err := s.takeAll(uint64(length))
	if err != nil {
		return cache.Event{}, fmt.Errorf("reading an event: %w", err)
	}
	if bytes.HasPrefix(frame, magic) {
		if _, frame, err = unwrap(frame); err != nil {
			return cache.Event{}, err
		}
	}
	typ, object, ok := splitEvent(frame)
	if !ok {
		return cache.Event{}, errors.New("an event of the watch is broken")
	}
	kind, raw, err := unwrap(object)
	if err != nil {
		return cache.Event{}, err
	}
	return decodeEvent(d, k, typ, kind, raw)
}

// splitEvent finds the type of an event and the envelope of its object.
func splitEvent(frame []byte) (typ, object []byte, ok bool) {
	c := cursor{msg: frame}
	for c.next() {
		switch {
		case c.typ != protowire.BytesType:
		case c.num == watchEventType:
			typ = c.val
		case c.num == watchEventObject:
			inner := cursor{msg: c.val}
			for inner.next() {
				if inner.num == extensionRaw && inner.typ == protowire.BytesType {
					object = inner.val
				}
			}
			if inner.bad {
				return nil, nil, false
			}
		}
	}
	return typ, object, !c.bad
}

func decodeEvent(d *decoder, k *Kind, typ, kind, raw []byte) (cache.Event, error) {
	event := cache.Event{}
	switch string(typ) {
	case string(watch.Added):
		event.Type = watch.Added
	case string(watch.Modified):
		event.Type = watch.Modified
	case string(watch.Deleted):
		event.Type = watch.Deleted
	case string(watch.Bookmark):
		return decodeBookmark(k, raw)
	case string(watch.Error):
		return event, decodeError(kind, raw)
	default:
		return event, fmt.Errorf("the watch has an event of the unknown type %q", typ)
	}
	obj, size, err := k.object(d, raw)
	if err != nil {
		return event, err
	}
	return withObject(event, obj, size), nil
}

func withObject(event cache.Event, obj runtime.Object, size int) cache.Event {
	event.Object, event.Size = obj, int32(size)
	if meta, ok := obj.(metav1.ObjectMetaAccessor); ok {
		event.ResourceVersion = meta.GetObjectMeta().GetResourceVersion()
	}
	return event
}

func decodeBookmark(k *Kind, raw []byte) (cache.Event, error) {
	obj := k.fresh()
	if err := obj.Unmarshal(raw); err != nil {
		return cache.Event{}, fmt.Errorf("decoding a bookmark: %w", err)
	}
	return bookmark(obj), nil
}

func bookmark(obj metav1.ObjectMetaAccessor) cache.Event {
	meta := obj.GetObjectMeta()
	return cache.Event{
		Type:             watch.Bookmark,
		ResourceVersion:  meta.GetResourceVersion(),
		InitialEventsEnd: meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true",
	}
}

// decodeError returns the error of an ERROR event.
func decodeError(kind, raw []byte) error {
	if string(kind) != "Status" {
		return fmt.Errorf("the watch has failed with an object of kind %q", kind)
	}
	var status metav1.Status
	if err := status.Unmarshal(raw); err != nil {
		return fmt.Errorf("decoding the error of the watch: %w", err)
	}
	return apierrors.FromObject(&status)
}
