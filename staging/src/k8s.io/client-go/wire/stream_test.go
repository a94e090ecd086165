// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// encodeAs encodes an object as an API server does.
func encodeAs(t testing.TB, mediaType string, obj runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme.Scheme).SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer for %s", mediaType)
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	b, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gvks[0].GroupVersion()), obj)
	if err != nil {
		t.Fatalf("encoding %T: %v", obj, err)
	}
	return b
}

// frame is an event as a watch sends it.
func frame(t testing.TB, typ watch.EventType, obj runtime.Object) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: encodeAs(t, protobuf, obj)}}
	b, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func podList(n int) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more"}}
	for i := range n {
		list.Items = append(list.Items, *ordinaryPod(i))
	}
	return list
}

// readers deliver the bytes in all the ways that a connection may.
func readers(b []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"at once":       bytes.NewReader(b),
		"byte by byte":  iotest.OneByteReader(bytes.NewReader(b)),
		"in halves":     iotest.HalfReader(bytes.NewReader(b)),
		"with the end":  iotest.DataErrReader(bytes.NewReader(b)),
		"in odd pieces": &pieces{b: b, n: 1021},
	}
}

type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

func TestReadList(t *testing.T) {
	k := podKind(t)
	for _, mediaType := range []string{protobuf, jsonType} {
		for how, r := range readers(encodeAs(t, mediaType, podList(30))) {
			t.Run(mediaType+" "+how, func(t *testing.T) {
				page, err := readList(newStream(r), newDecoder(NewTable()), k)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Items) != 30 || page.ResourceVersion != "77" || page.Continue != "more" {
					t.Fatalf("%d items of version %q, continued by %q", len(page.Items), page.ResourceVersion, page.Continue)
				}
				for i, item := range page.Items {
					if pod := item.Object.(*corev1.Pod); pod.Name != ordinaryPod(i).Name || len(pod.Spec.Containers[0].Env) != 0 || item.Size == 0 {
						t.Fatalf("item %d is %s of size %d", i, pod.Name, item.Size)
					}
				}
			})
		}
	}
}

func TestReadListThatIsNone(t *testing.T) {
	k := podKind(t)
	whole := encodeAs(t, protobuf, podList(3))
	for name, b := range map[string][]byte{
		"nothing":          {},
		"HTML":             []byte("<html>"),
		"an object":        encodeAs(t, protobuf, ordinaryPod(1)),
		"a broken item":    bytes.Replace(whole, []byte("web-00001"), []byte("web-00001\x00\x01")[:9], 1)[:len(whole)-40],
		"JSON that breaks": []byte(`{"items": [`),
		"bad JSON item":    []byte(`{"items": [{"spec": 1}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			if page, err := readList(newStream(bytes.NewReader(b)), newDecoder(NewTable()), k); err == nil {
				t.Errorf("no error, and %d items", len(page.Items))
			}
		})
	}
	// Wherever the connection breaks, the list is not taken for a shorter one. (Only the fields after
	// the list itself, which are empty, may be missing.)
	for cut := range len(whole) {
		_, err := readList(newStream(bytes.NewReader(whole[:cut])), newDecoder(NewTable()), k)
		if rest := string(whole[cut:]); err == nil && rest != "\x1a\x00\x22\x00" && rest != "\x22\x00" {
			t.Fatalf("a list that breaks after %d of %d bytes is no error", cut, len(whole))
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("a list that breaks after %d bytes looks as if it had ended in order: %v", cut, err)
		}
	}
}

func TestReadEvents(t *testing.T) {
	k := podKind(t)
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	big := ordinaryPod(2)
	big.Annotations = map[string]string{"big": strings.Repeat("x", 300_000)}
	var b []byte
	for _, f := range [][]byte{
		frame(t, watch.Added, ordinaryPod(1)), frame(t, watch.Added, big), frame(t, watch.Bookmark, end), frame(t, watch.Modified, ordinaryPod(1)),
		frame(t, watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "100"}}), frame(t, watch.Deleted, ordinaryPod(1)),
	} {
		b = append(b, f...)
	}
	want := "ADDED web-00001 1001; ADDED web-00002 1002; BOOKMARK 99 end; MODIFIED web-00001 1001; BOOKMARK 100; DELETED web-00001 1001; EOF"
	for how, r := range readers(b) {
		t.Run(how, func(t *testing.T) {
			if got := readAll(newStream(r), k); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

func readAll(s *stream, k *Kind) string {
	var lines []string
	for d := newDecoder(NewTable()); ; {
		event, err := readEvent(s, d, k)
		if err != nil {
			return strings.Join(append(lines, err.Error()), "; ")
		}
		line := string(event.Type)
		if event.Object != nil {
			line += " " + event.Object.(*corev1.Pod).Name
		}
		line += " " + event.ResourceVersion
		if event.InitialEventsEnd {
			line += " end"
		}
		lines = append(lines, line)
	}
}

func TestReadEventsThatAreNone(t *testing.T) {
	k := podKind(t)
	whole := frame(t, watch.Added, ordinaryPod(1))
	for cut := 1; cut < len(whole); cut++ {
		_, err := readEvent(newStream(bytes.NewReader(whole[:cut])), newDecoder(NewTable()), k)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("an event that breaks after %d of %d bytes: %v", cut, len(whole), err)
		}
	}
	for name, b := range map[string][]byte{
		"unknown type":    frame(t, "STRANGE", ordinaryPod(1)),
		"too big":         {0xff, 0xff, 0xff, 0xff},
		"empty":           {0, 0, 0, 0},
		"no envelope":     {0, 0, 0, 6, 0x12, 4, 0x0a, 2, 'a', 'b'},
		"error of no one": frame(t, watch.Error, ordinaryPod(1)),
	} {
		t.Run(name, func(t *testing.T) {
			if event, err := readEvent(newStream(bytes.NewReader(b)), newDecoder(NewTable()), k); err == nil {
				t.Errorf("no error, and event %v", event)
			}
		})
	}
}

// TestBufferIsGivenBack: one huge object must not keep a huge buffer for the life of the watch.
func TestBufferIsGivenBack(t *testing.T) {
	k := podKind(t)
	big := ordinaryPod(2)
	big.Annotations = map[string]string{"big": strings.Repeat("x", 300_000)}
	b := frame(t, watch.Added, big)
	for range 2 * shrinkAfter {
		b = append(b, frame(t, watch.Modified, ordinaryPod(1))...)
	}
	s, d := newStream(&pieces{b: b, n: 2000}), newDecoder(NewTable())
	grown := 0
	for {
		if _, err := readEvent(s, d, k); err != nil {
			break
		}
		grown = max(grown, len(s.buf))
	}
	if grown < 300_000 || len(s.buf) > 8*usualBuffer {
		t.Errorf("the buffer grew to %d and ended at %d bytes", grown, len(s.buf))
	}
}

// TestNothingOfTheBufferIsKept overwrites the buffer and looks whether an object changes.
func TestNothingOfTheBufferIsKept(t *testing.T) {
	k, table := podKind(t), NewTable()
	d := newDecoder(table)
	raw := marshal(t, ordinaryPod(1))
	pod := decoded(t, d, k, raw)
	before := fmt.Sprintf("%+v", pod)
	for i := range raw {
		raw[i] = 'X'
	}
	for _, b := range [][]byte{d.own, d.origin, d.labels, d.annotations, d.spec, d.specRest, d.affinity, d.status, d.statusRest, d.host, d.rest} {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 'Y'
		}
	}
	if after := fmt.Sprintf("%+v", pod); after != before {
		t.Errorf("the object has changed with the buffer:\n%s\n%s", before, after)
	}
}
