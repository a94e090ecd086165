// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// JSON is what some aggregated API servers answer. It is read the plain way: their resources are
// few and small.

// fromJSON decodes an object and trims it as protobuf would be.
func (k *Kind) fromJSON(raw []byte) (runtime.Object, int, error) {
	obj := k.fresh()
	if err := utiljson.Unmarshal(raw, obj); err != nil {
		return nil, 0, fmt.Errorf("decoding %T from JSON: %w", obj, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.typeMeta.GroupVersionKind())
	k.Trim(obj)
	return obj, len(raw), nil
}

// reader gives what is left of a stream.
func (s *stream) reader() io.Reader { return &streamReader{s} }

type streamReader struct{ s *stream }

func (r *streamReader) Read(p []byte) (int, error) {
	if r.s.from < r.s.to {
		n := copy(p, r.s.buf[r.s.from:r.s.to])
		r.s.from += n
		return n, nil
	}
	if r.s.err != nil {
		return 0, r.s.err
	}
	return r.s.r.Read(p)
}

func readJSONList(s *stream, k *Kind) (cache.Page, error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.NewDecoder(s.reader()).Decode(&list); err != nil {
		return cache.Page{}, fmt.Errorf("reading the list: %w", noEOF(err))
	}
	page := cache.Page{ResourceVersion: list.Metadata.ResourceVersion, Continue: list.Metadata.Continue}
	for _, raw := range list.Items {
		obj, size, err := k.fromJSON(raw)
		if err != nil {
			return cache.Page{}, err
		}
		page.Items = append(page.Items, cache.Item{Object: obj, Size: int32(size)})
	}
	return page, nil
}

// jsonEvent is an event of a watch in JSON.
type jsonEvent struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

func readJSONEvent(from *json.Decoder, k *Kind) (cache.Event, error) {
	var e jsonEvent
	if err := from.Decode(&e); err != nil {
		if errors.Is(err, io.EOF) {
			return cache.Event{}, err
		}
		return cache.Event{}, fmt.Errorf("reading an event: %w", err)
	}
	switch e.Type {
	case watch.Error:
		var status metav1.Status
		if err := utiljson.Unmarshal(e.Object, &status); err != nil {
			return cache.Event{}, fmt.Errorf("decoding the error of the watch: %w", err)
		}
		return cache.Event{}, apierrors.FromObject(&status)
	case watch.Added, watch.Modified, watch.Deleted:
		obj, size, err := k.fromJSON(e.Object)
		if err != nil {
			return cache.Event{}, err
		}
		return withObject(cache.Event{Type: e.Type}, obj, size), nil
	case watch.Bookmark:
		// A bookmark is an object of the kind, and has no other fields.
		var meta metav1.PartialObjectMetadata
		if err := utiljson.Unmarshal(e.Object, &meta); err != nil {
			return cache.Event{}, fmt.Errorf("decoding a bookmark: %w", err)
		}
		return bookmark(&meta), nil
	default:
		return cache.Event{}, fmt.Errorf("the watch has an event of the unknown type %q", e.Type)
	}
}
