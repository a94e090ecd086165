// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}}
}

// start runs the factory's informers until the test ends, and waits until they are filled.
func start(t *testing.T, f clientinformers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		t.Fatal(err)
	}
}

// The typed accessors and listers of client-go read from this module's informers.
func TestTypedAccess(t *testing.T) {
	client := fake.NewClientset(pod("a", "x"), pod("b", "y"), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d"}})
	var f clientinformers.SharedInformerFactory = NewSharedInformerFactory(client, 0)
	pods, deployments := f.Core().V1().Pods(), f.Apps().V1().Deployments()
	if informer, ok := f.InformerFor(&corev1.Pod{}, nil).(*cache.Informer); !ok || informer.GetIndexer() != pods.Informer().GetIndexer() {
		t.Fatalf("the informer is another one than %T", pods.Informer())
	}
	deployments.Lister()
	start(t, f)

	all, err := pods.Lister().List(labels.Everything())
	if err != nil || len(all) != 2 {
		t.Errorf("%d pods, error %v, want 2", len(all), err)
	}
	some, err := pods.Lister().Pods("b").List(labels.SelectorFromSet(labels.Set{"app": "y"}))
	if err != nil || len(some) != 1 || some[0].Name != "y" {
		t.Errorf("pods %v, error %v, want y", some, err)
	}
	if _, err := deployments.Lister().Deployments("a").Get("d"); err != nil {
		t.Error(err)
	}
	again, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		t.Fatal(err)
	}
	if again.Informer().GetIndexer() != pods.Informer().GetIndexer() {
		t.Error("a second informer for pods")
	}
	if obj, err := again.Lister().ByNamespace("a").Get("x"); err != nil || obj.(*corev1.Pod).Name != "x" {
		t.Errorf("got %v, %v", obj, err)
	}
	if synced := f.WaitForCacheSync(t.Context().Done()); !synced[reflect.TypeFor[*corev1.Pod]()] || len(synced) != 2 {
		t.Errorf("synced: %v", synced)
	}
}

// What happens after the start arrives too.
func TestEvents(t *testing.T) {
	client := fake.NewClientset()
	f := NewSharedInformerFactory(client, 0)
	added := make(chan string, 10)
	registration, err := f.Core().V1().Pods().Informer().AddEventHandler(clientcache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { added <- obj.(*corev1.Pod).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	start(t, f)
	if !clientcache.WaitForCacheSync(t.Context().Done(), registration.HasSynced) {
		t.Fatal("the handler has not synced")
	}
	// A fake forgets what is created before the watch.
	for !slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" }) {
		time.Sleep(time.Millisecond)
	}
	if _, err := client.CoreV1().Pods("ns").Create(t.Context(), pod("ns", "new"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if name := <-added; name != "new" {
		t.Errorf("added %s", name)
	}
}

func TestForUnknownResource(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	for _, resource := range []string{"widgets", "tokenreviews", "bindings"} {
		if _, err := f.ForResource(corev1.SchemeGroupVersion.WithResource(resource)); err == nil {
			t.Errorf("there is an informer for %s", resource)
		}
	}
}

// Every resource for which client-go has an informer has one here, and no other.
func TestSameResourcesAsClientGo(t *testing.T) {
	theirs := clientinformers.NewSharedInformerFactory(fake.NewClientset(), 0)
	ours := NewSharedInformerFactory(fake.NewClientset(), 0)
	for resource := range kinds() {
		_, theirErr := theirs.ForResource(resource)
		_, ourErr := ours.ForResource(resource)
		if (theirErr == nil) != (ourErr == nil) {
			t.Errorf("%v: client-go says %v, we say %v", resource, theirErr, ourErr)
		}
	}
	if len(kinds()) < 100 {
		t.Errorf("only %d resources are known", len(kinds()))
	}
}

// A function that makes an informer of a special kind is respected.
func TestCustomInformer(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	custom := coreinformers.NewFilteredPodInformer(fake.NewClientset(), "", 0, nil, func(opts *metav1.ListOptions) {
		opts.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "n").String()
	})
	got := f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) clientcache.SharedIndexInformer { return custom })
	if got != custom || f.Core().V1().Pods().Informer().GetIndexer() != custom.GetIndexer() {
		t.Errorf("got %T", got)
	}
}

// Types that are not of the API come from the function.
func TestForeignType(t *testing.T) {
	f := NewSharedInformerFactoryWithOptions(fake.NewClientset(), 7*time.Second, WithTransform(func(obj any) (any, error) { return obj, nil }))
	var period time.Duration
	f.InformerFor(&metav1.PartialObjectMetadata{}, func(_ kubernetes.Interface, resync time.Duration) clientcache.SharedIndexInformer {
		period = resync
		return clientcache.NewSharedIndexInformer(&clientcache.ListWatch{}, &metav1.PartialObjectMetadata{}, resync, nil)
	})
	if period != 7*time.Second {
		t.Errorf("resync period %s", period)
	}
}

func TestOptions(t *testing.T) {
	client := fake.NewClientset(pod("a", "x"), pod("a", "y"), pod("b", "x"))
	f := NewSharedInformerFactoryWithOptions(client, 0,
		WithNamespace("a"),
		WithTweakListOptions(func(opts *metav1.ListOptions) { opts.LabelSelector = "app=x" }),
		WithTransform(func(obj any) (any, error) {
			obj.(metav1.Object).SetAnnotations(map[string]string{"transformed": "true"})
			return obj, nil
		}),
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Second}))
	pods := f.Core().V1().Pods()
	resynced := make(chan struct{}, 100)
	if _, err := pods.Informer().AddEventHandler(clientcache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) { resynced <- struct{}{} },
	}); err != nil {
		t.Fatal(err)
	}
	start(t, f)
	got, err := pods.Lister().List(labels.Everything())
	if err != nil || len(got) != 1 || got[0].Namespace != "a" || got[0].Name != "x" || got[0].Annotations["transformed"] != "true" {
		t.Errorf("got %v, %v, want a/x, transformed", got, err)
	}
	<-resynced
}

// noSource is a source that lists one pod that no client knows of.
type noSource struct{}

var errNoSource = errors.New("nothing here")

func (s noSource) List(context.Context, metav1.ListOptions) (cache.Page, error) {
	return cache.Page{ResourceVersion: "1", Items: []cache.Item{{Object: pod("ns", "elsewhere"), Size: 7}}}, nil
}
func (s noSource) Watch(_ context.Context, opts metav1.ListOptions) (cache.EventReader, error) {
	if opts.SendInitialEvents != nil {
		return nil, cache.ErrStreamingListUnsupported
	}
	return nil, errNoSource
}

// Sources can come from elsewhere than the client, per resource.
func TestWithSources(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	f := NewSharedInformerFactoryWithOptions(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}), 0,
		WithSources(func(resource schema.GroupVersionResource, _ string) cache.Source {
			if resource == pods {
				return noSource{}
			}
			return nil
		}))
	podLister, nodeLister := f.Core().V1().Pods().Lister(), f.Core().V1().Nodes().Lister()
	start(t, f)
	if _, err := podLister.Pods("ns").Get("elsewhere"); err != nil {
		t.Error(err)
	}
	if _, err := nodeLister.Get("n"); err != nil {
		t.Error(err)
	}
	statuses := f.Statuses(time.Now())
	if len(statuses) != 2 || statuses[0].Resource != "nodes" || statuses[1].Resource != "pods" || statuses[1].Bytes != 7 {
		t.Errorf("statuses %+v", statuses)
	}
	if !f.HasInformer(pods) || f.HasInformer(corev1.SchemeGroupVersion.WithResource("secrets")) || f.HasInformer(corev1.SchemeGroupVersion.WithResource("widgets")) {
		t.Error("HasInformer is wrong")
	}
}

// After Shutdown no informer is started.
func TestShutdown(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	f.Core().V1().Pods().Informer()
	f.Shutdown()
	f.Start(t.Context().Done())
	if synced := f.WaitForCacheSync(t.Context().Done()); len(synced) != 0 {
		t.Errorf("started: %v", synced)
	}
}

// A cache that cannot be filled is named when waiting is given up.
func TestNotSynced(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errNoSource })
	f := NewSharedInformerFactory(client, 0)
	f.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	f.StartWithContext(ctx)
	cancel()
	result := f.WaitForCacheSyncWithContext(ctx)
	if result.AsError() == nil || result.Synced[reflect.TypeFor[*corev1.Pod]()] {
		t.Errorf("result %v", result)
	}
	f.Shutdown()
}
