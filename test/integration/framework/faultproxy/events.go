// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchEvent is what a rule can select events by.
type WatchEvent struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type watch.EventType
	// Object is the metadata of the event's object; empty for ERROR.
	Object metav1.ObjectMeta
}

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
	// maxEvent bounds one protobuf frame: etcd takes no object above 1.5 MiB, and the
	// API server's own limit for a request is 3 MiB.
	maxEvent = 16 << 20
)

// eventReader hands on a watch's body one whole event at a time, each when the
// rules of that moment let it. It needs no goroutine: it blocks the copy loop.
type eventReader struct {
	proxy     *Proxy
	ctx       context.Context
	call      call
	mediaType string
	body      io.ReadCloser
	in        *bufio.Reader
	frame     []byte // rest of the event being handed on
}

// newEventReader wraps the body of a watch. Bodies in another encoding than
// JSON and protobuf are passed on as they are: event faults do not apply there.
func (p *Proxy) newEventReader(ctx context.Context, c call, resp *http.Response) io.ReadCloser {
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || (mediaType != jsonType && mediaType != protobufType) {
		return resp.Body
	}
	return &eventReader{proxy: p, ctx: ctx, call: c, mediaType: mediaType, body: resp.Body, in: bufio.NewReader(resp.Body)}
}

// Read implements io.Reader.
func (r *eventReader) Read(b []byte) (int, error) {
	if len(r.frame) == 0 {
		frame, payload, err := r.next()
		if err != nil {
			return 0, err
		}
		if err := r.pass(payload); err != nil {
			return 0, err
		}
		r.frame = frame
	}
	n := copy(b, r.frame)
	r.frame = r.frame[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *eventReader) Close() error { return r.body.Close() }

// next reads one event: the frame as it came, and the payload in it.
func (r *eventReader) next() (frame, payload []byte, err error) {
	if r.mediaType == jsonType {
		line, err := r.in.ReadBytes('\n')
		if len(line) > 0 {
			return line, line, nil
		}
		return nil, nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(r.in, size[:]); err != nil {
		return nil, nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxEvent {
		return nil, nil, fmt.Errorf("watch event of %d bytes, more than %d", n, maxEvent)
	}
	frame = make([]byte, len(size)+int(n))
	copy(frame, size[:])
	if _, err := io.ReadFull(r.in, frame[len(size):]); err != nil {
		return nil, nil, err
	}
	return frame, frame[len(size):], nil
}

// pass returns when the event may go on, or with an error when the watch was cut.
func (r *eventReader) pass(payload []byte) error {
	delayed := map[*ActiveRule]bool{}
	counted := map[*ActiveRule]bool{}
	var event *WatchEvent // decoded when the first rule asks
	for {
		rule, changed := r.proxy.eventRule(r.call, func(a *ActiveRule) bool {
			if a.rule.Event == nil {
				return true
			}
			if event == nil {
				event = decodeEvent(r.mediaType, payload)
			}
			return a.rule.Event(*event)
		}, delayed, counted)
		if rule == nil {
			return nil
		}
		if rule.rule.EventDelay > 0 && !delayed[rule] {
			delayed[rule] = true
			if !sleep(r.ctx, rule.rule.EventDelay) {
				return context.Cause(r.ctx)
			}
		}
		if !rule.rule.WithholdEvents {
			continue
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// eventRule returns the first rule that still keeps the event back, and the
// channel that tells of the next change. It counts the event once per rule.
func (p *Proxy) eventRule(c call, selects func(*ActiveRule) bool, delayed, counted map[*ActiveRule]bool) (*ActiveRule, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if !r.rule.hasEventFault() || !r.rule.Match.matches(c) || !selects(r) {
			continue
		}
		if delayed[r] && !r.rule.WithholdEvents {
			continue
		}
		if !counted[r] {
			counted[r] = true
			r.events++
			p.changedLocked()
		}
		return r, p.changed
	}
	return nil, p.changed
}

// decodeEvent reads an event's type and metadata. What cannot be decoded gives
// an empty event: the proxy must not fail where a client would not.
func decodeEvent(mediaType string, payload []byte) *WatchEvent {
	if mediaType == jsonType {
		var event struct {
			Type   watch.EventType              `json:"type"`
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		if json.Unmarshal(payload, &event) != nil {
			return &WatchEvent{}
		}
		return &WatchEvent{Type: event.Type, Object: event.Object.ObjectMeta}
	}
	var event metav1.WatchEvent
	if event.Unmarshal(payload) != nil {
		return &WatchEvent{}
	}
	decoded := &WatchEvent{Type: watch.EventType(event.Type)}
	// The object is the 4-byte magic "k8s\0" and a runtime.Unknown around the real one.
	// Metadata is field 1 of every kind, so PartialObjectMetadata reads all of them.
	const magic = "k8s\x00"
	raw := event.Object.Raw
	if len(raw) < len(magic) || string(raw[:len(magic)]) != magic {
		return decoded
	}
	var unknown runtime.Unknown
	var object metav1.PartialObjectMetadata
	if unknown.Unmarshal(raw[len(magic):]) == nil && object.Unmarshal(unknown.Raw) == nil {
		decoded.Object = object.ObjectMeta
	}
	return decoded
}
