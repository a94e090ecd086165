// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	kcmcache "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// variant is a way to hold all pods.
type variant struct {
	name  string
	about string
	// start returns once the cache has synced.
	start func(context.Context, *rest.Config, *counts) (*running, error)
}

func variants() []variant {
	return []variant{
		{name: "client-go", about: "informers of k8s.io/client-go", start: startClientGo},
		{name: "wire", about: "our source of objects, with a map as store", start: startWire},
	}
}

func (c *counts) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.added.Add(1) },
		UpdateFunc: func(any, any) { c.updated.Add(1) },
	}
}

func startClientGo(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(seen.handler())
	if err != nil {
		cancel()
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		cancel()
		return nil, errors.New("the cache does not sync")
	}
	return &running{
		stored: func() int { return len(informer.GetStore().ListKeys()) },
		stop:   func() { cancel(); factory.Shutdown() },
	}, nil
}

// startWire reads a streaming list into a map: what an informer costs without its machinery.
func startWire(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kind, err := wire.NewKinds().For(&corev1.Pod{})
	if err != nil {
		return nil, err
	}
	source := wire.NewSource(client.CoreV1().RESTClient(), corev1.SchemeGroupVersion.WithResource("pods"), "", kind, wire.NewTable())
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
		switch event.Type {
		case watch.Added:
			seen.added.Add(1)
		case watch.Modified:
			seen.updated.Add(1)
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
