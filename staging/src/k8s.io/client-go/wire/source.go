// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	jsonType = "application/json"
)

// Source lists and watches one resource of an API server. It implements cache.Source.
type Source struct {
	client    rest.Interface
	resource  schema.GroupVersionResource
	namespace string
	kind      *Kind
	table     *Table
}

var _ cache.Source = (*Source)(nil)

// NewSource returns a source of a resource, in one namespace unless that is empty. Requests go
// through the client, any one of the API server's: the path is made here, the rest (transport,
// credentials, user agent, rate limit of lists) is the client's. A Kind from Kinds.Metadata asks
// the server for the metadata alone.
func NewSource(client rest.Interface, resource schema.GroupVersionResource, namespace string, kind *Kind, table *Table) *Source {
	return &Source{client: client, resource: resource, namespace: namespace, kind: kind, table: table}
}

// Kind is what the objects of the source are.
func (s *Source) Kind() *Kind { return s.kind }

// List implements cache.Source.
func (s *Source) List(ctx context.Context, opts metav1.ListOptions) (cache.Page, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts.Watch = false
	body, err := s.request(opts, "PartialObjectMetadataList").Stream(ctx)
	if err != nil {
		return cache.Page{}, err
	}
	defer body.Close()
	return readList(newStream(body), newDecoder(s.table), s.kind)
}

// Watch implements cache.Source.
func (s *Source) Watch(ctx context.Context, opts metav1.ListOptions) (cache.EventReader, error) {
	ctx, cancel := context.WithCancel(ctx)
	opts.Watch = true
	request := s.request(opts, "PartialObjectMetadata")
	// A watch is no burden that a limit of requests should hold back.
	request.Throttle(flowcontrol.NewFakeAlwaysRateLimiter())
	body, err := request.Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return &eventReader{ctx: ctx, cancel: cancel, body: body, stream: newStream(body), decoder: newDecoder(s.table), kind: s.kind}, nil
}

func (s *Source) request(opts metav1.ListOptions, as string) *rest.Request {
	root := []string{"apis", s.resource.Group, s.resource.Version}
	if s.resource.Group == "" {
		root = []string{"api", s.resource.Version}
	}
	request := s.client.Verb("GET").AbsPath(root...).
		NamespaceIfScoped(s.namespace, s.namespace != "").
		Resource(s.resource.Resource).
		SpecificallyVersionedParams(&opts, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"})
	// Not compressed: the manager and its API server are near one another, and to compress and
	// decompress what all watches of a cluster carry takes more time on both sides than all the rest.
	return request.SetHeader("Accept", s.accepts(as)).SetHeader("Accept-Encoding", "identity")
}

func (s *Source) accepts(as string) string {
	if s.kind.typeMeta.Kind == "" {
		return protobuf + "," + jsonType
	}
	as = ";as=" + as + ";g=meta.k8s.io;v=v1"
	return protobuf + as + "," + jsonType + as + "," + jsonType
}

// eventReader reads a watch for one goroutine, that of its owner.
type eventReader struct {
	ctx     context.Context
	cancel  context.CancelFunc
	body    io.Closer
	stream  *stream
	decoder *decoder
	kind    *Kind
	// json is set once the server turns out to send JSON.
	json *json.Decoder

	close sync.Once
}

// Next implements cache.EventReader.
func (r *eventReader) Next() (cache.Event, error) {
	event, err := r.next()
	if err != nil && r.ctx.Err() != nil {
		return cache.Event{}, fmt.Errorf("watching: %w", r.ctx.Err())
	}
	return event, err
}

func (r *eventReader) next() (cache.Event, error) {
	if r.json != nil {
		return readJSONEvent(r.json, r.kind)
	}
	// The length of a frame of protobuf would be two gigabytes if it began like JSON.
	first, err := r.stream.peek(1)
	if err != nil {
		return cache.Event{}, err
	}
	if first[0] == '{' {
		r.json = json.NewDecoder(r.stream.reader())
		return readJSONEvent(r.json, r.kind)
	}
	return readEvent(r.stream, r.decoder, r.kind)
}

// Close implements cache.EventReader.
func (r *eventReader) Close() error {
	var err error
	r.close.Do(func() {
		r.cancel()
		err = r.body.Close()
	})
	return err
}
