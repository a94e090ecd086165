// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when the Pods of tests were created.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newPod(name, node string, phase v1.PodPhase, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1.PodSpec{NodeName: node},
		Status:     v1.PodStatus{Phase: phase},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func created(minute int) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute))
	}
}

func evicted(pod *v1.Pod) { pod.Status.Reason = "Evicted" }

func deleting(pod *v1.Pod) {
	pod.DeletionTimestamp = new(metav1.NewTime(epoch))
	pod.DeletionGracePeriodSeconds = new(int64(30))
}

func forceDeleted(pod *v1.Pod) {
	deleting(pod)
	pod.DeletionGracePeriodSeconds = new(int64(0))
}

func held(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} }

func newNode(name string, ready v1.ConditionStatus, taints ...string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}
	}
	for _, key := range taints {
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoExecute})
	}
	return node
}

// cluster is a controller that runs in a synctest bubble. Its caches are filled by hand,
// so that they may differ from the API server.
type cluster struct {
	t         *testing.T
	gc        *PodGCController
	client    *fake.Clientset
	podCache  cache.Indexer
	nodeCache cache.Indexer
}

// run calls test while a controller with upstream's periods runs. The cached objects are on
// the API server too. The first pass has ended when test is called.
func run(t *testing.T, threshold int, cached []runtime.Object, test func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset()}
		factory := informers.NewSharedInformerFactory(c.client, 0)
		c.gc = NewPodGC(t.Context(), c.client, factory.Core().V1().Pods(), factory.Core().V1().Nodes(), threshold)
		c.gc.synced = nil // the informers do not run
		c.podCache = factory.Core().V1().Pods().Informer().GetIndexer()
		c.nodeCache = factory.Core().V1().Nodes().Informer().GetIndexer()
		for _, object := range cached {
			c.cache(object)
			c.serve(object)
		}
		// What is deleted leaves the cache; finalizers hold nothing here.
		c.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			key := action.GetNamespace() + "/" + action.(clienttesting.DeleteAction).GetName()
			if obj, ok, _ := c.podCache.GetByKey(key); ok {
				_ = c.podCache.Delete(obj)
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.gc.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		synctest.Wait()
		test(c)
	})
}

func (c *cluster) cache(object runtime.Object) {
	c.t.Helper()
	var err error
	switch o := object.(type) {
	case *v1.Pod:
		err = c.podCache.Add(o)
	case *v1.Node:
		err = c.nodeCache.Add(o)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) serve(object runtime.Object) {
	c.t.Helper()
	if err := c.client.Tracker().Add(object.DeepCopyObject()); err != nil {
		c.t.Fatal(err)
	}
}

// wait lets time pass, and what is due then happen.
func (c *cluster) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// requests lists what was sent since the last call, as "verb resource/subresource name",
// sorted.
func (c *cluster) requests() string {
	var all []string
	for _, action := range c.client.Actions() {
		name := ""
		if named, ok := action.(interface{ GetName() string }); ok {
			name = named.GetName()
		}
		request := action.GetVerb() + " " + action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			request += "/" + sub
		}
		all = append(all, fmt.Sprintf("%s %s", request, name))
	}
	c.client.ClearActions()
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// want fails the test unless exactly these requests were sent since the last look.
func (c *cluster) want(when, requests string) {
	c.t.Helper()
	if got := c.requests(); got != requests {
		c.t.Errorf("%s: requests %q, want %q", when, got, requests)
	}
}

// react puts a reaction in front, while the controller may be sending requests.
func (c *cluster) react(verb, resource string, reaction clienttesting.ReactionFunc) {
	c.client.Lock()
	defer c.client.Unlock()
	c.client.PrependReactor(verb, resource, reaction)
}
