// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientcache "k8s.io/client-go/tools/cache"
)

func newPod(namespace, name, version string, values ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version, Finalizers: values}}
}

func byFinalizer(obj any) ([]string, error) {
	pod := obj.(*corev1.Pod)
	if slices.Contains(pod.Finalizers, "bad") {
		return nil, errors.New("no")
	}
	return pod.Finalizers, nil
}

func newTestStore(t *testing.T, pods ...*corev1.Pod) *Store {
	t.Helper()
	s := NewIndexer(clientcache.MetaNamespaceKeyFunc, clientcache.Indexers{
		clientcache.NamespaceIndex: clientcache.MetaNamespaceIndexFunc,
		"finalizer":                byFinalizer,
	})
	for _, pod := range pods {
		if err := s.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func namesOf(objs []any) []string {
	names := []string{}
	for _, obj := range objs {
		names = append(names, obj.(*corev1.Pod).Name)
	}
	slices.Sort(names)
	return names
}

func expectNames(t *testing.T, what string, got []any, err error, want ...string) {
	t.Helper()
	if err != nil || !slices.Equal(namesOf(got), want) {
		t.Errorf("%s: %v, %v, want %v", what, namesOf(got), err, want)
	}
}

func TestStore(t *testing.T) {
	s := newTestStore(t, newPod("x", "a", "1", "f", "g"), newPod("x", "b", "3", "f"), newPod("y", "c", "2"))
	expectNames(t, "List", s.List(), nil, "a", "b", "c")
	in, err := s.ByIndex(clientcache.NamespaceIndex, "x")
	expectNames(t, "namespace x", in, err, "a", "b")
	in, err = s.ByIndex("finalizer", "nobody's")
	expectNames(t, "no finalizer", in, err)
	in, err = s.Index("finalizer", newPod("", "", "", "f", "g", "h"))
	expectNames(t, "any of f, g, h", in, err, "a", "b")
	if keys, err := s.IndexKeys("finalizer", "g"); err != nil || !slices.Equal(keys, []string{"x/a"}) {
		t.Errorf("keys %v, %v", keys, err)
	}
	if values := s.ListIndexFuncValues("finalizer"); len(values) != 2 || !slices.Contains(values, "f") || !slices.Contains(values, "g") {
		t.Errorf("values %v", values)
	}
	if keys := s.ListKeys(); len(keys) != 3 {
		t.Errorf("keys %v", keys)
	}
	if s.LastStoreSyncResourceVersion() != "3" {
		t.Errorf("version %s, want the newest", s.LastStoreSyncResourceVersion())
	}

	if err := s.Update(newPod("x", "a", "4", "h")); err != nil {
		t.Fatal(err)
	}
	in, err = s.ByIndex("finalizer", "g")
	expectNames(t, "g after the update", in, err)
	if values := s.ListIndexFuncValues("finalizer"); slices.Contains(values, "g") {
		t.Errorf("values %v: g has no objects", values)
	}
	if obj, ok, err := s.Get(newPod("x", "a", "")); err != nil || !ok || obj.(*corev1.Pod).ResourceVersion != "4" {
		t.Errorf("got %v, %v, %v", obj, ok, err)
	}
	if err := s.Delete(newPod("x", "a", "5")); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := s.GetByKey("x/a"); ok || s.LastStoreSyncResourceVersion() != "5" {
		t.Errorf("deleted, but there: %t, version %s", ok, s.LastStoreSyncResourceVersion())
	}
	s.Bookmark("7")
	s.Bookmark("6")
	if s.LastStoreSyncResourceVersion() != "7" {
		t.Errorf("version %s after bookmarks", s.LastStoreSyncResourceVersion())
	}
	if err := s.Replace([]any{newPod("x", "b", "3", "g"), newPod("z", "d", "1")}, "4"); err != nil {
		t.Fatal(err)
	}
	expectNames(t, "after Replace", s.List(), nil, "b", "d")
	in, err = s.ByIndex("finalizer", "f")
	expectNames(t, "f after Replace", in, err)
	if s.LastStoreSyncResourceVersion() != "4" {
		t.Errorf("version %s after Replace", s.LastStoreSyncResourceVersion())
	}
}

func TestStoreErrors(t *testing.T) {
	s := newTestStore(t)
	var keyError clientcache.KeyError
	for what, err := range map[string]error{
		"Add":     s.Add(1),
		"Update":  s.Update(1),
		"Delete":  s.Delete(1),
		"Replace": s.Replace([]any{1}, "1"),
	} {
		if !errors.As(err, &keyError) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := s.Get(1); !errors.As(err, &keyError) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Index("unknown", newPod("", "", "")); err == nil {
		t.Error("Index by an unknown name")
	}
	if _, err := s.ByIndex("unknown", ""); err == nil {
		t.Error("ByIndex by an unknown name")
	}
	if _, err := s.IndexKeys("unknown", ""); err == nil {
		t.Error("IndexKeys by an unknown name")
	}
	if _, err := s.Index("finalizer", newPod("", "", "", "bad")); err == nil {
		t.Error("Index by an object that the index function refuses")
	}
	if s.ListIndexFuncValues("unknown") != nil || s.Resync() != nil {
		t.Error("values of an unknown index, or a failed resync")
	}
}

// An index can be added to a full store; a name that is taken refuses them all; and what an index
// function refuses is not found by it.
func TestAddIndexers(t *testing.T) {
	s := newTestStore(t, newPod("x", "a", "1", "f"), newPod("x", "b", "1", "bad"))
	more := clientcache.Indexers{"name": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Name}, nil }}
	if err := s.AddIndexers(more); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(newPod("x", "c", "1")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		in, err := s.ByIndex("name", name)
		expectNames(t, "index by name", in, err, name)
	}
	more["another"] = byFinalizer
	if err := s.AddIndexers(more); err == nil || len(s.GetIndexers()) != 3 {
		t.Errorf("conflict: %v, %d indexes", err, len(s.GetIndexers()))
	}
	if err := s.AddIndexers(clientcache.Indexers{"late": byFinalizer}); err != nil {
		t.Fatal(err)
	}
	in, err := s.ByIndex("late", "bad")
	expectNames(t, "what the function refuses", in, err)
	in, err = s.ByIndex("late", "f")
	expectNames(t, "late", in, err, "a")
}

// client-go's listing functions, which its listers use, work on the store.
func TestListAll(t *testing.T) {
	s := newTestStore(t, newPod("x", "a", "1"), newPod("x", "b", "1"), newPod("y", "c", "1"))
	var in []any
	take := func(obj any) { in = append(in, obj) }
	err := clientcache.ListAllByNamespace(s, "x", labels.Everything(), take)
	expectNames(t, "namespace x", in, err, "a", "b")
	in = nil
	err = clientcache.ListAll(s, labels.Everything(), take)
	expectNames(t, "all", in, err, "a", "b", "c")
}

// The keys in indexes are the strings of the store, not copies; an update keeps the first one.
func TestKeysAreShared(t *testing.T) {
	s := newTestStore(t, newPod("x", "a", "1", "f"))
	if err := s.Update(newPod("x", "a", "2", "f", "g")); err != nil {
		t.Fatal(err)
	}
	key := s.ListKeys()[0]
	for index, value := range map[string]string{clientcache.NamespaceIndex: "x", "finalizer": "g"} {
		keys, err := s.IndexKeys(index, value)
		if err != nil || len(keys) != 1 || unsafe.StringData(keys[0]) != unsafe.StringData(key) {
			t.Errorf("index %s has a string of its own", index)
		}
	}
}

// Readers see all of a Replace or nothing, in objects and indexes alike, and are never kept waiting.
func TestReplaceIsAtomic(t *testing.T) {
	s := newTestStore(t)
	generation := func(n int) []any {
		var pods []any
		for i := range 50 {
			pods = append(pods, newPod("ns", fmt.Sprintf("pod-%d", i+n%2*25), "1", strconv.Itoa(n)))
		}
		return pods
	}
	if err := s.Replace(generation(0), "1"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				listed := s.List()
				indexed, err := s.ByIndex(clientcache.NamespaceIndex, "ns")
				for _, objs := range [][]any{listed, indexed} {
					if err != nil || len(objs) != 50 {
						t.Errorf("%d pods, %v, want 50", len(objs), err)
						return
					}
					for _, obj := range objs {
						if obj.(*corev1.Pod).Finalizers[0] != objs[0].(*corev1.Pod).Finalizers[0] {
							t.Error("pods of two lists at once")
							return
						}
					}
				}
			}
		})
	}
	for n := range 300 {
		if err := s.Replace(generation(n), strconv.Itoa(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func TestBarrier(t *testing.T) {
	s := newTestStore(t)
	if !s.HasReached("5") {
		t.Error("a cache that has seen no version holds nobody back")
	}
	s.Bookmark("9")
	for version, want := range map[string]bool{"8": true, "9": true, "10": false, "": true, "x": true} {
		if got := s.HasReached(version); got != want {
			t.Errorf("HasReached(%q) = %t", version, got)
		}
	}
	if err := s.WaitFor(t.Context(), "9"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.WaitFor(ctx, "10"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting in vain: %v", err)
	}
	if s.waiters.any.Load() || len(s.waiters.waiting) != 0 {
		t.Error("who has given up is still in line")
	}

	var waiting sync.WaitGroup
	for version := 10; version <= 30; version++ {
		waiting.Go(func() {
			if err := s.WaitFor(t.Context(), strconv.Itoa(version)); err != nil {
				t.Error(err)
			}
			if !s.HasReached(strconv.Itoa(version)) {
				t.Errorf("woken before version %d", version)
			}
		})
	}
	for version := 10; version <= 30; version += 2 {
		if err := s.Add(newPod("x", "a", strconv.Itoa(version))); err != nil {
			t.Fatal(err)
		}
	}
	waiting.Wait()
}

func TestIndexIsBuiltWhenItIsFirstRead(t *testing.T) {
	calls := 0
	s := NewIndexer(clientcache.MetaNamespaceKeyFunc, clientcache.Indexers{"read": func(obj any) ([]string, error) {
		calls++
		return clientcache.MetaNamespaceIndexFunc(obj)
	}})
	for i := range 10 {
		if err := s.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 0 {
		t.Errorf("the index function was called %d times before anybody read the index", calls)
	}
	if found, err := s.ByIndex("read", "a"); err != nil || len(found) != 10 {
		t.Errorf("the first reader finds %d objects, error %v", len(found), err)
	}
	if err := s.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "10"}}); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.IndexKeys("read", "a"); err != nil || len(keys) != 11 {
		t.Errorf("the second reader finds %d keys, error %v", len(keys), err)
	}
}

func TestIndexIsBuiltWhileOthersWrite(t *testing.T) {
	s := NewIndexer(clientcache.MetaNamespaceKeyFunc, clientcache.Indexers{"namespace": clientcache.MetaNamespaceIndexFunc})
	const objects = 2000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range objects {
			_ = s.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i)}})
		}
	})
	for range 4 {
		wg.Go(func() {
			seen := 0
			for seen < objects {
				found, err := s.ByIndex("namespace", "a")
				if err != nil || len(found) < seen {
					t.Errorf("%d objects after %d, error %v", len(found), seen, err)
					return
				}
				seen = len(found)
			}
		})
	}
	wg.Wait()
}
