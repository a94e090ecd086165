// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// inBubble runs test with a started factory whose informers are all stopped at the end.
func inBubble(t *testing.T, test func(ctx context.Context, t *testing.T, client *fake.Clientset, factory informers.SharedInformerFactory)) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer factory.Shutdown()
		defer cancel()
		test(ctx, t, client, factory)
	})
}

func createNamespace(ctx context.Context, t *testing.T, client *fake.Clientset, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestScopeTakesItsHandlersOffTheSharedInformer(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, client *fake.Clientset, shared informers.SharedInformerFactory) {
		var mu sync.Mutex
		counts := map[string]int{}
		handler := func(who string) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				mu.Lock()
				defer mu.Unlock()
				counts[who]++
			}}
		}
		old := &informerScope{failed: func(err error) { t.Error(err) }}
		scoped := &scopedFactory{shared, old}
		// Each way to add a handler is remembered.
		informer := scoped.Core().V1().Namespaces().Informer()
		if _, err := informer.AddEventHandler(handler("plain")); err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddEventHandlerWithResyncPeriod(handler("period"), time.Minute); err != nil {
			t.Fatal(err)
		}
		generic, err := scoped.ForResource(corev1.SchemeGroupVersion.WithResource("namespaces"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := generic.Informer().AddEventHandlerWithOptions(handler("options"), cache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		other := &informerScope{failed: func(err error) { t.Error(err) }}
		if _, err := (&scopedFactory{shared, other}).Core().V1().Namespaces().Informer().AddEventHandler(handler("other")); err != nil {
			t.Fatal(err)
		}

		shared.StartWithContext(ctx)
		shared.WaitForCacheSyncWithContext(ctx)
		createNamespace(ctx, t, client, "one")
		if err := old.close(); err != nil {
			t.Fatal(err)
		}
		createNamespace(ctx, t, client, "two")

		want := map[string]int{"plain": 1, "period": 1, "options": 1, "other": 2}
		if !reflect.DeepEqual(counts, want) {
			t.Errorf("events seen = %v, want %v", counts, want)
		}
	})
}

func TestScopeContainsAHandlersPanic(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, client *fake.Clientset, shared informers.SharedInformerFactory) {
		var failures []error
		scope := &informerScope{failed: func(err error) { failures = append(failures, err) }}
		seen := 0
		informer := (&scopedFactory{shared, scope}).Core().V1().Namespaces().Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			if seen++; seen == 1 {
				panic("bad object")
			}
		}}); err != nil {
			t.Fatal(err)
		}
		shared.StartWithContext(ctx)
		shared.WaitForCacheSyncWithContext(ctx)
		createNamespace(ctx, t, client, "one")
		createNamespace(ctx, t, client, "two")
		if len(failures) != 1 || failures[0].Error() != "panic in its event handler: bad object" {
			t.Errorf("failures = %v, want one: the panic", failures)
		}
		if seen != 2 {
			t.Errorf("%d events delivered, want 2: the informer goes on", seen)
		}
	})
}

// Every group accessor must lead to the scoped factory, or handlers would escape the scope.
func TestScopedFactoryCoversEveryGroup(t *testing.T) {
	shared := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	scope := &informerScope{}
	scoped := &scopedFactory{shared, scope}
	factory := reflect.TypeFor[informers.SharedInformerFactory]()
	groups := 0
	for i := range factory.NumMethod() {
		method := factory.Method(i)
		if method.Type.NumIn() != 0 || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		groups++
		version := reflect.ValueOf(scoped).MethodByName(method.Name).Call(nil)[0]
		resource := version.Method(0).Call(nil)[0]
		resourceInformer := resource.Method(0).Call(nil)[0]
		informer := resourceInformer.MethodByName("Informer").Call(nil)[0].Interface().(cache.SharedIndexInformer)
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			t.Fatal(err)
		}
		if len(scope.handlers) != groups {
			t.Fatalf("a handler added by %s() escapes the scope", method.Name)
		}
	}
	if groups < 21 {
		t.Errorf("only %d groups were tried", groups)
	}
}
