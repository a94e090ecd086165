// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package informers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

const timeout = 2 * time.Minute

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func TestMain(m *testing.M) { framework.Main(m) }

// watcher is an informer with a handler that keeps a picture of its own.
type watcher struct {
	name     string
	informer *cache.Informer

	// mu guards the following fields.
	mu     sync.Mutex
	view   map[string]string // the resource version of each key
	faults []string
}

// start runs informers of all kinds of sources until the test ends.
func start(t *testing.T, config *rest.Config) []*watcher {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sources := wire.NewSources(client.CoreV1().RESTClient(), wire.NewKinds(), wire.NewTable())
	typed := informers.NewSharedInformerFactory(client, 0)
	wired := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithSources(sources.Typed))
	partial := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	wiredPartial := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, metadatainformer.WithSources(sources.Metadata))

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		for _, f := range []interface{ Shutdown() }{typed, wired, partial, wiredPartial} {
			f.Shutdown()
		}
	})
	watchers := []*watcher{
		watch(t, "client", typed.InformerFor(&corev1.ConfigMap{}, nil)),
		watch(t, "wire", wired.InformerFor(&corev1.ConfigMap{}, nil)),
		watch(t, "metadata client", partial.ForResource(configMaps).Informer()),
		watch(t, "metadata wire", wiredPartial.ForResource(configMaps).Informer()),
	}
	typed.StartWithContext(ctx)
	wired.StartWithContext(ctx)
	partial.Start(ctx.Done())
	wiredPartial.Start(ctx.Done())
	return watchers
}

func watch(t *testing.T, name string, informer clientcache.SharedIndexInformer) *watcher {
	t.Helper()
	w := &watcher{name: name, informer: informer.(*cache.Informer), view: map[string]string{}}
	if _, err := informer.AddEventHandler(w); err != nil {
		t.Fatal(err)
	}
	return w
}

func keyAndVersion(obj any) (string, string) {
	if unknown, ok := obj.(clientcache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", ""
	}
	return m.GetNamespace() + "/" + m.GetName(), m.GetResourceVersion()
}

func (w *watcher) note(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *watcher) OnAdd(obj any, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, version := keyAndVersion(obj)
	if w.view[key] != "" {
		w.note("%s was added, but known", key)
	}
	w.view[key] = version
}

func (w *watcher) OnUpdate(old, obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, version := keyAndVersion(obj)
	if _, before := keyAndVersion(old); w.view[key] != before {
		w.note("%s was updated from %s, but known at %q", key, before, w.view[key])
	}
	w.view[key] = version
}

func (w *watcher) OnDelete(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, _ := keyAndVersion(obj)
	if w.view[key] == "" {
		w.note("%s was deleted, but not known", key)
	}
	delete(w.view, key)
}

// difference says how the watcher's store and handler differ from what is so; empty if they do not.
func (w *watcher) difference(want map[string]string) string {
	stored := map[string]string{}
	for _, obj := range w.informer.GetStore().List() {
		key, version := keyAndVersion(obj)
		stored[key] = version
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var differences []string
	for what, got := range map[string]map[string]string{"store": stored, "handler": w.view} {
		for key := range maps.Keys(want) {
			if got[key] != want[key] {
				differences = append(differences, fmt.Sprintf("%s: %s@%s, want %s", what, key, got[key], want[key]))
			}
		}
		for key := range got {
			if want[key] == "" {
				differences = append(differences, fmt.Sprintf("%s: %s@%s, which is gone", what, key, got[key]))
			}
		}
	}
	slices.Sort(differences)
	return strings.Join(differences, "; ")
}

// waitConverged waits until all watchers show what the server has, and checks what they were told.
func waitConverged(t *testing.T, env *framework.Env, watchers []*watcher) {
	t.Helper()
	for _, w := range watchers {
		env.WaitFor(t, w.name+" to show what the server has", timeout, func(ctx context.Context) (bool, error) {
			list, err := env.Client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			want := map[string]string{}
			for _, c := range list.Items {
				want[c.Namespace+"/"+c.Name] = c.ResourceVersion
			}
			if difference := w.difference(want); difference != "" {
				return false, fmt.Errorf("%s; %+v", difference, w.informer.Status(time.Now()))
			}
			return true, nil
		})
		w.mu.Lock()
		if len(w.faults) > 0 {
			t.Errorf("%s: %q", w.name, w.faults)
		}
		w.mu.Unlock()
	}
}
