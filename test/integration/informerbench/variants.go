// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	kcmcache "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clientmetadatainformer "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// variant is a way to hold all pods.
type variant struct {
	name string
	// beside is the variant of client-go that it is compared to; it itself for those.
	beside string
	about  string
	// start returns once the cache has synced.
	start func(context.Context, *rest.Config, *counts) (*running, error)
}

const (
	clientGo         = "client-go"
	clientGoMetadata = "client-go-metadata"
)

func variants() []variant {
	return []variant{
		{name: clientGo, beside: clientGo, about: "pods in a shared informer of k8s.io/client-go", start: startClientGo},
		{name: "kcm", beside: clientGo, about: "pods in our shared informer, read by our source", start: startOurs},
		{name: "wire", beside: clientGo, about: "pods in a map, read by our source: what our informer adds is the difference", start: startWire},
		{name: "nothing", beside: clientGo, about: "the watch read and thrown away, undecoded: what TLS, HTTP/2 and waking up cost, and no informer can save", start: startNothing},
		{name: "nothing-http1", beside: clientGo, about: "the same with HTTP/1.1, as our source reads pods", start: startNothingDirect},
		{name: clientGoMetadata, beside: clientGoMetadata, about: "the metadata of pods in a shared metadata informer of k8s.io/client-go", start: startClientGoMetadata},
		{name: "kcm-metadata", beside: clientGoMetadata, about: "the metadata of pods in our shared metadata informer, read by our source", start: startOurMetadata},
	}
}

func (c *counts) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) { c.update() },
	}
}

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

func startClientGo(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := clientinformers.NewSharedInformerFactory(client, 0)
	return startFactory(ctx, factory, factory.Core().V1().Pods().Informer(), seen)
}

func startOurs(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	sources, err := wire.NewSourcesFor(config, wire.NewKinds(), wire.NewTable())
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithSources(sources.Typed))
	return startFactory(ctx, factory, factory.Core().V1().Pods().Informer(), seen)
}

func startClientGoMetadata(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := clientmetadatainformer.NewSharedInformerFactory(client, 0)
	return startFactory(ctx, factory, factory.ForResource(podsResource).Informer(), seen)
}

func startOurMetadata(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	sources, err := wire.NewSourcesFor(config, wire.NewKinds(), wire.NewTable())
	if err != nil {
		return nil, err
	}
	factory := metadatainformer.NewSharedInformerFactoryWithOptions(nil, 0, metadatainformer.WithSources(sources.Metadata))
	return startFactory(ctx, factory, factory.ForResource(podsResource).Informer(), seen)
}

// factory is what all four factories can do.
type factory interface {
	Start(<-chan struct{})
	Shutdown()
}

func startFactory(ctx context.Context, f factory, informer cache.SharedIndexInformer, seen *counts) (*running, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := func() { cancel(); f.Shutdown() }
	registration, err := informer.AddEventHandler(seen.handler())
	if err != nil {
		stop()
		return nil, err
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		stop()
		return nil, errors.New("the cache does not sync")
	}
	return &running{stored: func() int { return len(informer.GetStore().ListKeys()) }, stop: stop}, nil
}

// startWire reads a streaming list into a map: what an informer costs without its machinery.
func startWire(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	sources, err := wire.NewSourcesFor(config, wire.NewKinds(), wire.NewTable())
	if err != nil {
		return nil, err
	}
	source := sources.Typed(podsResource, "")
	timeout, yes := int64(3600), true
	reader, err := source.Watch(ctx, metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
	})
	if err != nil {
		return nil, err
	}
	store := &mapStore{objects: map[string]runtime.Object{}, synced: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- store.run(reader, seen) }()
	select {
	case <-store.synced:
	case err := <-done:
		return nil, fmt.Errorf("the watch ended before the cache synced: %w", err)
	}
	return &running{stored: store.len, stop: func() { _ = reader.Close(); <-done }}, nil
}

type mapStore struct {
	synced chan struct{}

	mu      sync.Mutex // guards objects
	objects map[string]runtime.Object
}

func (s *mapStore) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

func (s *mapStore) run(reader kcmcache.EventReader, seen *counts) error {
	for {
		event, err := reader.Next()
		if err != nil {
			return err
		}
		if event.Type == watch.Bookmark {
			if event.InitialEventsEnd {
				close(s.synced)
			}
			continue
		}
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("the watch has a %T", event.Object)
		}
		s.put(event.Type, pod)
		if event.Type == watch.Modified {
			seen.update()
		}
	}
}

func (s *mapStore) put(typ watch.EventType, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	if typ == watch.Deleted {
		delete(s.objects, key)
		return
	}
	s.objects[key] = pod
}
