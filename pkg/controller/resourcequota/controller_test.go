// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/quota/v1/install"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var widgets = gvr("example.com", "v1", "widgets")

// cluster is a controller on a fake API server in a synctest bubble.
type cluster struct {
	t        *testing.T
	client   *fake.Clientset
	metadata *metadatafake.FakeMetadataClient
	c        *Controller

	// mu guards the following fields.
	mu        sync.Mutex
	found     []schema.GroupVersionResource
	foundErr  error
	broken    bool // widgets cannot be listed
	discovers int
}

func (c *cluster) discover() ([]*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discovers++
	var lists []*metav1.APIResourceList
	for _, r := range c.found {
		lists = append(lists, &metav1.APIResourceList{GroupVersion: r.GroupVersion().String(), APIResources: []metav1.APIResource{
			{Name: r.Resource, Namespaced: true, Kind: "Any", Verbs: []string{"create", "list", "watch", "delete"}}}})
	}
	return lists, c.foundErr
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

type options struct {
	resync   time.Duration
	found    []schema.GroupVersionResource
	foundErr error
	broken   bool
}

// run calls test while a controller runs, with discovery asked every 30 seconds.
func run(t *testing.T, o options, test func(*cluster), objects ...apiruntime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		if o.found == nil && o.foundErr == nil {
			o.found = []schema.GroupVersionResource{gvr("", "v1", "pods"), gvr("", "v1", "services"), widgets}
		}
		c := &cluster{t: t, client: fake.NewClientset(objects...), metadata: metadatafake.NewSimpleMetadataClient(scheme), found: o.found, foundErr: o.foundErr, broken: o.broken}
		c.metadata.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.broken {
				return true, nil, errors.New("conversion webhook is down")
			}
			return false, nil, nil
		})
		version := 1000
		c.client.PrependReactor("update", "resourcequotas", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			version++
			action.(clienttesting.UpdateAction).GetObject().(*v1.ResourceQuota).ResourceVersion = fmt.Sprint(version)
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		typed := informers.NewSharedInformerFactory(c.client, 0)
		metadata := metadatainformer.NewSharedInformerFactory(c.metadata, 0)
		typed.Core().V1().Pods().Informer()
		typed.Core().V1().Services().Informer()
		// Only these have types here.
		factory := informerfactory.NewInformerFactory(&asked{typed}, metadata)
		configuration := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(typed.ForResource), nil)
		started := make(chan struct{})
		quotas, err := NewController(ctx, &ControllerOptions{
			QuotaClient: c.client.CoreV1(), ResourceQuotaInformer: typed.Core().V1().ResourceQuotas(), ResyncPeriod: controller.StaticResyncPeriodFunc(o.resync),
			Registry: generic.NewRegistry(configuration.Evaluators()), DiscoveryFunc: c.discover, IgnoredResourcesFunc: configuration.IgnoredResources,
			InformersStarted: started, InformerFactory: factory, ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc, UpdateFilter: install.DefaultUpdateFilter(),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.c = quotas
		typed.StartWithContext(ctx)
		metadata.Start(ctx.Done())
		close(started)
		var wg sync.WaitGroup
		wg.Go(func() { quotas.Run(ctx, 2) })
		wg.Go(func() { quotas.Sync(ctx, c.discover, 30*time.Second) })
		defer func() {
			cancel()
			wg.Wait()
			typed.Shutdown()
			metadata.Shutdown()
		}()
		c.wait(time.Second)
		test(c)
	})
}

// asked is a typed factory of which pods, services and quotas were asked for.
type asked struct {
	informers.SharedInformerFactory
}

func (*asked) HasInformer(r schema.GroupVersionResource) bool {
	return r.Group == "" && slices.Contains([]string{"pods", "services", "resourcequotas"}, r.Resource)
}

func (c *cluster) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) status(name string) v1.ResourceQuotaStatus {
	c.t.Helper()
	obj, err := c.client.Tracker().Get(v1.SchemeGroupVersion.WithResource("resourcequotas"), "ns", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return obj.(*v1.ResourceQuota).Status
}

func (c *cluster) wantUsed(when, name, used string) {
	c.t.Helper()
	if got := text(c.status(name).Used); got != used {
		c.t.Errorf("%s: used %q, want %q", when, got, used)
	}
}

// writes counts the writes of status since the last call; events are returned by reason.
func (c *cluster) writes() (statuses int, events []string) {
	for _, action := range c.client.Actions() {
		if action.GetVerb() == "update" && action.GetSubresource() == "status" {
			statuses++
		}
		if create, ok := action.(clienttesting.CreateAction); ok && action.GetVerb() == "create" {
			if event, ok := create.GetObject().(*v1.Event); ok {
				events = append(events, event.InvolvedObject.Name+": "+event.Reason+": "+event.Message)
			}
		}
	}
	c.client.ClearActions()
	return statuses, events
}

func quotaNamed(name string, pairs ...string) *v1.ResourceQuota {
	q := newQuota(list(pairs...), v1.ResourceQuotaStatus{})
	q.Name = name
	return q
}

func newPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "pod", ResourceVersion: "1"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	if err := c.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "ns", name); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func TestCountsAndReplenishes(t *testing.T) {
	run(t, options{}, func(c *cluster) {
		c.wantUsed("at first", "q", "count/pods=2 pods=2")
		c.wantUsed("at first", "other", "services=0")
		// More than two may be tried: the fake's first list has no version by which to wait for a write.
		if n, events := c.writes(); n < 2 || len(events) != 0 {
			c.t.Errorf("%d writes, events %v", n, events)
		}
		c.deletePod("a")
		c.wantUsed("deleted", "q", "count/pods=1 pods=1")
		c.wait(10 * time.Second)
		if n, _ := c.writes(); n != 1 {
			c.t.Errorf("%d writes for one deletion", n)
		}
		ended := newPod("b")
		ended.Status.Phase, ended.ResourceVersion = v1.PodFailed, "2"
		if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), ended, "ns"); err != nil {
			c.t.Fatal(err)
		}
		synctest.Wait()
		c.wantUsed("ended", "q", "count/pods=1 pods=0")
	}, quotaNamed("q", "pods=5", "count/pods=5"), quotaNamed("other", "services=1"), newPod("a"), newPod("b"))
}

// A resource that cannot be listed concerns only what it counts.
func TestBrokenResource(t *testing.T) {
	run(t, options{broken: true}, func(c *cluster) {
		c.wantUsed("healthy", "healthy", "pods=1")
		c.wantUsed("touched", "touched", "pods=1")
		c.wait(20 * time.Second)
		if _, events := c.writes(); len(events) != 0 {
			c.t.Errorf("events while the first list may still come: %v", events)
		}
		c.wait(20 * time.Second)
		_, events := c.writes()
		if len(events) != 1 || !strings.HasPrefix(events[0], "touched: UsageUnknown: Could not count") || !strings.Contains(events[0], "count/widgets.example.com: widgets.example.com could not be listed yet (") ||
			!strings.Contains(events[0], "conversion webhook is down") {
			c.t.Errorf("events %q", events)
		}
		if failing := c.c.primary.Record().FailingCount + c.c.priority.Record().FailingCount; failing != 0 {
			c.t.Errorf("%d quotas are retried: they are to wait for the resource", failing)
		}
		if got := unsynced(c.t); got != 1 {
			c.t.Errorf("%v resources are unsynced by the metric", got)
		}
		c.deletePod("a")
		c.wantUsed("healthy goes on", "healthy", "pods=0")
		c.wantUsed("so does the other", "touched", "pods=0")
		if _, events := c.writes(); len(events) != 0 {
			c.t.Errorf("told again: %v", events)
		}
		c.set(func() { c.broken = false })
		c.wait(2 * time.Minute)
		c.wantUsed("mended", "touched", "count/widgets.example.com=0 pods=0")
		if got := unsynced(c.t); got != 0 {
			c.t.Errorf("mended: %v resources are unsynced by the metric", got)
		}
	}, quotaNamed("healthy", "pods=5"), quotaNamed("touched", "pods=5", "count/widgets.example.com=3"), newPod("a"))
}

func unsynced(t *testing.T) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(registeredMetrics().unsynced.WithLabelValues("example.com", "v1", "widgets"))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// What could be counted before keeps its value when it no longer can.
func TestLastValueIsKept(t *testing.T) {
	q := quotaNamed("q", "count/widgets.example.com=3", "pods=2")
	q.Status = v1.ResourceQuotaStatus{Hard: list("count/widgets.example.com=3", "pods=2"), Used: list("count/widgets.example.com=2", "pods=2")}
	run(t, options{broken: true}, func(c *cluster) {
		c.wantUsed("at the start", "q", "count/widgets.example.com=2 pods=0")
	}, q)
}

// Discovery that fails takes nothing away, and one that never worked is tried again (TestDiscoverySync of upstream).
func TestDiscovery(t *testing.T) {
	t.Run("fails at the start", func(t *testing.T) {
		run(t, options{foundErr: errors.New("down")}, func(c *cluster) {
			c.wantUsed("without discovery", "q", "pods=1")
			c.set(func() { c.found, c.foundErr = []schema.GroupVersionResource{gvr("", "v1", "pods"), widgets}, nil })
			c.wait(31 * time.Second)
			c.wantUsed("discovered", "q", "count/widgets.example.com=0 pods=1")
		}, quotaNamed("q", "pods=5", "count/widgets.example.com=3"), newPod("a"))
	})
	t.Run("fails in part, then wholly, then says that it is gone", func(t *testing.T) {
		run(t, options{}, func(c *cluster) {
			c.wantUsed("discovered", "q", "count/widgets.example.com=0 pods=1")
			pods := gvr("", "v1", "pods")
			watched := func(when string, want ...schema.GroupVersionResource) {
				c.t.Helper()
				c.wait(31 * time.Second)
				if got := c.c.monitors.watched(); !slices.Equal(got, want) {
					c.t.Errorf("%s: watched %v, want %v", when, got, want)
				}
			}
			c.set(func() {
				c.found = []schema.GroupVersionResource{pods}
				c.foundErr = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{widgets.GroupVersion(): errors.New("down")}}
			})
			watched("in part", pods, widgets)
			c.set(func() { c.found, c.foundErr = nil, errors.New("down") })
			watched("wholly", pods, widgets)
			c.set(func() {
				c.found, c.foundErr = []schema.GroupVersionResource{pods, gvr("events.k8s.io", "v1", "events"), gvr("", "v1", "events")}, nil
			})
			watched("gone", pods)
			if c.c.registry.Get(widgets.GroupResource()) != nil {
				c.t.Error("its evaluator is left")
			}
			c.set(func() { c.found = append(c.found, widgets) })
			watched("back", pods, widgets)
		}, quotaNamed("q", "pods=5", "count/widgets.example.com=3"), newPod("a"))
	})
}

// A recount that finds something else is a drift; a count after an event is none.
func TestDrift(t *testing.T) {
	run(t, options{resync: time.Minute}, func(c *cluster) {
		drift := func() float64 {
			value, err := testutil.GetCounterMetricValue(registeredMetrics().drift.WithLabelValues("pods"))
			if err != nil {
				c.t.Fatal(err)
			}
			return value
		}
		before := drift()
		c.deletePod("a")
		c.wait(2 * time.Minute)
		if got := drift() - before; got != 0 {
			c.t.Errorf("drift %v after a deletion", got)
		}
		q := quotaNamed("q", "pods=5")
		q.Status, q.ResourceVersion = v1.ResourceQuotaStatus{Hard: list("pods=5"), Used: list("pods=4")}, "5000"
		if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("resourcequotas"), q, "ns"); err != nil {
			c.t.Fatal(err)
		}
		synctest.Wait()
		c.wantUsed("before the recount", "q", "pods=4")
		c.wait(time.Minute + time.Second)
		c.wantUsed("after it", "q", "pods=1")
		if got := drift() - before; got != 1 {
			c.t.Errorf("drift %v", got)
		}
	}, quotaNamed("q", "pods=5"), newPod("a"), newPod("b"))
}

func TestResyncDisabled(t *testing.T) {
	run(t, options{}, func(c *cluster) {
		q := quotaNamed("q", "pods=5")
		q.Status, q.ResourceVersion = v1.ResourceQuotaStatus{Hard: list("pods=5"), Used: list("pods=4")}, "5000"
		if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("resourcequotas"), q, "ns"); err != nil {
			c.t.Fatal(err)
		}
		c.wait(24 * time.Hour)
		c.wantUsed("a day later", "q", "pods=4")
	}, quotaNamed("q", "pods=5"))
}

// Admission has charged for a pod that the cache did not show yet when a deletion was counted.
func TestSecondLook(t *testing.T) {
	run(t, options{}, func(c *cluster) {
		c.deletePod("a")
		c.wantUsed("counted", "q", "pods=0")
		if err := c.client.Tracker().Add(newPod("late")); err != nil {
			c.t.Fatal(err)
		}
		c.wait(secondLook - time.Second)
		c.wantUsed("before the second look", "q", "pods=0")
		c.wait(2 * time.Second)
		c.wantUsed("after it", "q", "pods=1")
	}, quotaNamed("q", "pods=5"), newPod("a"))
}

// A lower count is not believed right after a charge.
func TestChargesSettle(t *testing.T) {
	run(t, options{}, func(c *cluster) {
		charge := func(used, version string) {
			c.t.Helper()
			q := quotaNamed("q", "pods=5", "services=1")
			q.Status, q.ResourceVersion = v1.ResourceQuotaStatus{Hard: list("pods=5", "services=1"), Used: list("pods="+used, "services=0")}, version
			if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("resourcequotas"), q, "ns"); err != nil {
				c.t.Fatal(err)
			}
			synctest.Wait()
		}
		charge("3", "5000") // a third pod is admitted, and not there yet
		c.deletePod("a")
		c.wantUsed("counted too early", "q", "pods=3 services=0")
		if err := c.client.Tracker().Add(newPod("c")); err != nil {
			c.t.Fatal(err)
		}
		c.wait(settle + 100*time.Millisecond)
		c.wantUsed("settled", "q", "pods=2 services=0")
		// Charges without an end hold a lower count back for a while only.
		c.wait(time.Minute)
		for i := range 30 {
			charge(fmt.Sprint(3+i), fmt.Sprint(6000+i))
			if i == 0 {
				c.deletePod("b")
			}
			c.wait(500 * time.Millisecond)
			if got := text(c.status("q").Used); strings.HasPrefix(got, "pods=1 ") {
				if i < 15 {
					c.t.Errorf("believed after %d charges", i)
				}
				return
			}
		}
		c.t.Error("never believed")
	}, quotaNamed("q", "pods=5", "services=1"), newPod("a"), newPod("b"))
}

func TestWriteFailures(t *testing.T) {
	tests := map[string]struct {
		err    error
		writes int
	}{
		"conflict": {apierrors.NewConflict(v1.Resource("resourcequotas"), "q", errors.New("admission was here")), 2},
		"deleted":  {apierrors.NewNotFound(v1.Resource("resourcequotas"), "q"), 1},
		"down":     {errors.New("down"), 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, options{}, func(c *cluster) {
				c.writes()
				failures := 1
				c.client.Lock()
				c.client.PrependReactor("update", "resourcequotas", func(clienttesting.Action) (bool, apiruntime.Object, error) {
					failures--
					return failures >= 0, nil, tc.err
				})
				c.client.Unlock()
				q := quotaNamed("q", "pods=6")
				q.ResourceVersion = "5000"
				if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("resourcequotas"), q, "ns"); err != nil {
					c.t.Fatal(err)
				}
				c.wait(time.Second)
				if n, _ := c.writes(); n != tc.writes {
					c.t.Errorf("%d writes, want %d", n, tc.writes)
				}
			}, quotaNamed("q", "pods=5"))
		})
	}
}

// Many deletions lead to few counts.
func TestDeletionsAreCoalesced(t *testing.T) {
	var objects []apiruntime.Object
	for i := range 90 {
		objects = append(objects, newPod(fmt.Sprint("p", i)))
	}
	run(t, options{}, func(c *cluster) {
		c.writes()
		for i := range 90 {
			if err := c.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "ns", fmt.Sprint("p", i)); err != nil {
				c.t.Fatal(err)
			}
		}
		c.wait(time.Second)
		c.wantUsed("all are gone", "q", "pods=0")
		if n, _ := c.writes(); n > 45 {
			c.t.Errorf("%d writes for 90 deletions", n)
		}
	}, append(objects, quotaNamed("q", "pods=1000"))...)
}

// Definitions come and go a thousand times: nothing of them is left.
func TestMonitorsLeaveNothing(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	typed := informers.NewSharedInformerFactory(client, 0)
	metadataClient := metadatafake.NewSimpleMetadataClient(scheme)
	// The fake's own watches are never forgotten.
	metadataClient.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewRaceFreeFake(), nil })
	metadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	factory := informerfactory.NewInformerFactory(&asked{typed}, metadata)
	var found []schema.GroupVersionResource
	discover := func() ([]*metav1.APIResourceList, error) {
		var lists []*metav1.APIResourceList
		for _, r := range found {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: r.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: r.Resource, Namespaced: true, Verbs: []string{"create", "list", "watch", "delete"}}}})
		}
		return lists, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	close(started)
	c, err := NewController(ctx, &ControllerOptions{
		QuotaClient: client.CoreV1(), ResourceQuotaInformer: typed.Core().V1().ResourceQuotas(), ResyncPeriod: controller.NoResyncPeriodFunc,
		Registry: generic.NewRegistry(nil), DiscoveryFunc: discover, InformersStarted: started, InformerFactory: factory, ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
	})
	if err != nil {
		t.Fatal(err)
	}
	typed.StartWithContext(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx, 1) })
	defer func() {
		cancel()
		wg.Wait()
		typed.Shutdown()
		metadata.Shutdown()
	}()
	round := func(i int) {
		found = []schema.GroupVersionResource{gvr(fmt.Sprintf("g%d.example.com", i), "v1", "widgets")}
		if err := c.discover(ctx, discover); err != nil {
			t.Fatal(err)
		}
		mon := c.monitors.all[found[0]]
		waitFor(t, "the first list", mon.informer.HasSynced)
		found = nil
		if err := c.discover(ctx, discover); err != nil {
			t.Fatal(err)
		}
		metadataClient.ClearActions()
	}
	for i := range 100 {
		round(i)
	}
	goroutines, heap := settled(t, 0)
	for i := range 1000 {
		round(100 + i)
	}
	after, heapAfter := settled(t, goroutines)
	t.Logf("goroutines %d, then %d; heap %d KiB, then %d KiB", goroutines, after, heap>>10, heapAfter>>10)
	if after > goroutines {
		t.Errorf("%d goroutines, then %d", goroutines, after)
	}
	if heapAfter > heap+heap/4+1<<20 {
		t.Errorf("heap %d, then %d", heap, heapAfter)
	}
	if len(c.monitors.all)+len(c.monitors.byResource)+len(c.registry.List()) != 0 {
		t.Errorf("left: monitors %v, evaluators %v", c.monitors.all, c.registry.List())
	}
}

// settled returns the number of goroutines, once it is no more than wanted, and the heap.
func settled(t *testing.T, want int) (goroutines int, heap uint64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		goroutines = runtime.NumGoroutine()
		if want > 0 && goroutines <= want {
			break
		}
		time.Sleep(50 * time.Millisecond)
		if want == 0 && runtime.NumGoroutine() == goroutines {
			break
		}
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return goroutines, stats.HeapAlloc
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
