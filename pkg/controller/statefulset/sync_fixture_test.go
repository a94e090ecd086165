// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kcm-dev/kcm/pkg/controller/history"
)

// fixture is a controller over a fake API server. Its caches show what is there whenever
// the test says so (refresh).
type fixture struct {
	*StatefulSetController
	t        *testing.T
	client   *fake.Clientset
	recorder *record.FakeRecorder
	clock    *clocktesting.FakeClock
	indexers map[string]cache.Indexer
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{t: t, client: fake.NewClientset(), recorder: record.NewFakeRecorder(1000), clock: clocktesting.NewFakeClock(testNow)}
	factory := informers.NewSharedInformerFactory(f.client, 0)
	pods, sets := factory.Core().V1().Pods(), factory.Apps().V1().StatefulSets()
	claims, revisions := factory.Core().V1().PersistentVolumeClaims(), factory.Apps().V1().ControllerRevisions()
	f.StatefulSetController = newController(t.Context(), pods, sets, claims, revisions, f.client, f.clock)
	f.StatefulSetController.recorder = f.recorder
	f.indexers = map[string]cache.Indexer{
		"pods": pods.Informer().GetIndexer(), "statefulsets": sets.Informer().GetIndexer(),
		"persistentvolumeclaims": claims.Informer().GetIndexer(), "controllerrevisions": revisions.Informer().GetIndexer(),
	}
	uid := 0
	// What the API server does to new objects.
	f.client.PrependReactor("create", "*", func(action core.Action) (bool, runtime.Object, error) {
		object := action.(core.CreateAction).GetObject().(metav1.Object)
		uid++
		object.SetUID(types.UID(fmt.Sprintf("made-%d", uid)))
		object.SetCreationTimestamp(metav1.NewTime(f.clock.Now()))
		if pod, ok := object.(*v1.Pod); ok {
			pod.Status.Phase = v1.PodPending
		}
		return false, nil, nil
	})
	for _, object := range objects {
		if err := f.client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	f.refresh()
	t.Cleanup(func() {
		f.Run(t.Context(), 1) // ends the queue's goroutines: the context is done by now
	})
	return f
}

// refresh lets the caches show what the API server holds, and forgets the requests.
func (f *fixture) refresh() {
	f.t.Helper()
	fill := func(name string, list runtime.Object, err error, items []any) {
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.indexers[name].Replace(items, ""); err != nil {
			f.t.Fatal(err)
		}
	}
	ctx := context.Background()
	pods, err := f.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	fill("pods", pods, err, pointers(pods.Items))
	sets, err := f.client.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	fill("statefulsets", sets, err, pointers(sets.Items))
	claims, err := f.client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	fill("persistentvolumeclaims", claims, err, pointers(claims.Items))
	revisions, err := f.client.AppsV1().ControllerRevisions("").List(ctx, metav1.ListOptions{})
	fill("controllerrevisions", revisions, err, pointers(revisions.Items))
	f.client.ClearActions()
}

func pointers[T any](items []T) []any {
	var all []any
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

func (f *fixture) syncWeb() error {
	f.t.Helper()
	return f.sync(f.t.Context(), cache.NewObjectName("ns", "web"))
}

// settle syncs until nothing is sent any more; after each sync the Pods become ready.
func (f *fixture) settle() {
	f.t.Helper()
	for range 200 {
		if err := f.syncWeb(); err != nil && !strings.Contains(err.Error(), "again") {
			f.t.Fatal(err)
		}
		idle := f.requests() == ""
		f.allReady()
		f.refresh()
		if idle {
			return
		}
	}
	f.t.Fatal("it does not come to rest")
}

func (f *fixture) allReady() {
	f.t.Helper()
	for _, pod := range f.pods() {
		if pod.Status.Phase == v1.PodPending {
			pod.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.clock.Now())}}}
			if err := f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), pod, "ns"); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

func (f *fixture) pods() []*v1.Pod {
	f.t.Helper()
	list, err := f.client.CoreV1().Pods("ns").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var pods []*v1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return ordinalOf(a) - ordinalOf(b) })
	return pods
}

func (f *fixture) web() *apps.StatefulSet {
	f.t.Helper()
	set, err := f.client.AppsV1().StatefulSets("ns").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return set
}

// change changes the set as a user would.
func (f *fixture) change(options ...setOption) {
	f.t.Helper()
	set := f.web()
	set.Generation++
	for _, option := range options {
		option(set)
	}
	f.update(set)
}

// update puts an object into the API server and the caches.
func (f *fixture) update(object metav1.Object) {
	f.t.Helper()
	resource := v1.SchemeGroupVersion.WithResource("pods")
	switch object.(type) {
	case *apps.StatefulSet:
		resource = apps.SchemeGroupVersion.WithResource("statefulsets")
	case *v1.PersistentVolumeClaim:
		resource = v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	}
	if err := f.client.Tracker().Update(resource, object.(runtime.Object), "ns"); err != nil {
		f.t.Fatal(err)
	}
	f.refresh()
}

func (f *fixture) revisions() []*apps.ControllerRevision {
	f.t.Helper()
	list, err := f.client.AppsV1().ControllerRevisions("ns").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var revisions []*apps.ControllerRevision
	for i := range list.Items {
		revisions = append(revisions, &list.Items[i])
	}
	history.SortControllerRevisions(revisions)
	return revisions
}

// fail lets the requests of a kind fail, all or the first times.
func (f *fixture) fail(verb, resource string, times int, err error) {
	f.client.PrependReactor(verb, resource, func(core.Action) (bool, runtime.Object, error) {
		if times == 0 {
			return false, nil, nil
		}
		times--
		return true, nil, err
	})
}

// requests lists what was sent, reads left out, as "verb resource/subresource name".
func (f *fixture) requests() string {
	var all []string
	for _, action := range f.client.Actions() {
		name := ""
		switch a := action.(type) {
		case core.CreateAction: // and update
			name = a.GetObject().(metav1.Object).GetName()
		case core.DeleteAction:
			name = a.GetName()
		case core.PatchAction:
			name = a.GetName()
		default:
			continue
		}
		resource := action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			resource += "/" + sub
		}
		if resource == "controllerrevisions" {
			name = "…"
		}
		all = append(all, strings.Join([]string{action.GetVerb(), resource, name}, " "))
	}
	return strings.Join(all, ", ")
}

// told takes the events that were recorded.
func (f *fixture) told() []string {
	var all []string
	for len(f.recorder.Events) > 0 {
		all = append(all, <-f.recorder.Events)
	}
	return all
}

// queued takes all keys out of the queue.
func (f *fixture) queued() string {
	f.t.Helper()
	var keys []string
	f.syncHandler = func(_ context.Context, key cache.ObjectName) error {
		keys = append(keys, key.String())
		return nil
	}
	for f.worker.Len() > 0 {
		f.worker.ProcessNextItem(f.t.Context())
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}
