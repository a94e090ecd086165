// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Sources makes sources that share one table. Its methods are what informer factories ask for a
// source; they may be called concurrently.
type Sources struct {
	client rest.Interface
	// direct serves busy resources. It is client where there is nothing better.
	direct rest.Interface
	kinds  *Kinds
	table  *Table
	types  map[schema.GroupVersionResource]runtime.Object
}

// NewSources makes sources that send all their requests through the client; any one of the API
// server's will do: a clientset's CoreV1().RESTClient(), say. The table may be that of other sources.
// Where there is a config, NewSourcesFor is better.
func NewSources(client rest.Interface, kinds *Kinds, table *Table) *Sources {
	s := &Sources{client: client, direct: client, kinds: kinds, table: table, types: map[schema.GroupVersionResource]runtime.Object{}}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if obj, ok := reflect.New(typ).Interface().(object); ok {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			s.types[resource] = obj
		}
	}
	return s
}

// busyResources are those whose objects change all the time in a big cluster: at every step of a
// pod, and at every heartbeat of a node.
func busyResources() []schema.GroupResource {
	return []schema.GroupResource{
		{Resource: "pods"}, {Resource: "nodes"},
		{Group: "coordination.k8s.io", Resource: "leases"}, {Group: "discovery.k8s.io", Resource: "endpointslices"},
	}
}

// NewSourcesFor makes sources for the API server of a config. Transport wrappers, credentials, user
// agent and rate limit are the config's.
//
// Busy resources have a connection of their own with HTTP/1.1, which takes half the time of HTTP/2
// for each event: what arrives is read by the goroutine that decodes it, without another one in
// between, a copy, and a write that opens the flow-control window again. A connection that is dead
// without a word is found by TCP's probes within half a minute. What answers those, a balancer or a
// frozen server, is found by the informer, which gives up what it has not heard of for minutes; the
// pings of HTTP/2 would be sooner.
func NewSourcesFor(config *rest.Config, kinds *Kinds, table *Table) (*Sources, error) {
	client, err := restClient(config)
	if err != nil {
		return nil, err
	}
	s := NewSources(client, kinds, table)
	if config.Transport != nil {
		// The transport is the caller's, whatever it speaks.
		return s, nil
	}
	if s.direct, err = restClient(directConfig(config)); err != nil {
		return nil, err
	}
	return s, nil
}

func restClient(config *rest.Config) (rest.Interface, error) {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the informers: %w", err)
	}
	return client.RESTClient(), nil
}

func directConfig(config *rest.Config) *rest.Config {
	direct := rest.CopyConfig(config)
	direct.NextProtos = []string{"http/1.1"}
	if direct.Dial == nil {
		dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
		}}
		direct.Dial = dialer.DialContext
	}
	return direct
}

func (s *Sources) clientOf(resource schema.GroupVersionResource) rest.Interface {
	if slices.Contains(busyResources(), resource.GroupResource()) {
		return s.direct
	}
	return s.client
}

// Typed returns a source of the objects of a resource of Kubernetes. It is nil for a resource that
// client-go's scheme does not know, or that protobuf cannot encode.
func (s *Sources) Typed(resource schema.GroupVersionResource, namespace string) cache.Source {
	obj := s.types[resource]
	if obj == nil {
		return nil
	}
	kind, err := s.kinds.For(obj)
	if err != nil {
		return nil
	}
	return NewSource(s.clientOf(resource), resource, namespace, kind, s.table)
}

// Metadata returns a source of the metadata of a resource's objects, whatever they are.
func (s *Sources) Metadata(resource schema.GroupVersionResource, namespace string) cache.Source {
	return NewSource(s.clientOf(resource), resource, namespace, s.kinds.Metadata(), s.table)
}
