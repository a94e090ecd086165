// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// fixture is a controller whose caches the test fills by hand, and whose Pods go to a
// FakePodControl.
type fixture struct {
	*ReplicaSetController
	client     *fake.Clientset
	setIndexer cache.Indexer
	podControl *controller.FakePodControl
	recorder   *record.FakeRecorder
	clock      *clocktesting.FakeClock
	onWrite    func(*v1.Pod)
}

type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Cleanup(func())
}

func newFixture(t tester, burst int, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{
		client:     fake.NewClientset(),
		podControl: &controller.FakePodControl{},
		recorder:   record.NewFakeRecorder(100),
		clock:      clocktesting.NewFakeClock(testNow),
	}
	factory := informers.NewSharedInformerFactory(f.client, 0)
	kind, err := newReplicaSets(factory.Apps().V1().ReplicaSets(), f.client)
	if err != nil {
		t.Fatal(err)
	}
	f.ReplicaSetController = NewBaseController(t.Context(), Config{
		Name: "replicaset-controller", QueueName: "replicaset", EventComponent: "replicaset-controller",
		Kind: kind, Pods: factory.Core().V1().Pods(), KubeClient: f.client, BurstReplicas: burst,
		Features: Features{TerminatingReplicas: true, DeletionCost: true}, Clock: f.clock,
	})
	f.ReplicaSetController.recorder = f.recorder
	f.ReplicaSetController.podControl = func(onWrite func(*v1.Pod)) controller.PodControlInterface {
		f.onWrite = onWrite
		return f.podControl
	}
	f.setIndexer = kind.informer.GetIndexer()
	f.add(objects...)
	t.Cleanup(func() {
		f.Run(t.Context(), 1) // ends the queues' goroutines: the context is done by now
	})
	return f
}

// add puts objects into the caches, and the sets into the API server too.
func (f *fixture) add(objects ...runtime.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *apps.ReplicaSet:
			_ = f.setIndexer.Add(o)
			_ = f.client.Tracker().Add(o.DeepCopy())
		case *v1.Pod:
			_ = f.podIndexer.Add(o)
		}
	}
	f.client.ClearActions()
}

func (f *fixture) addPods(pods []*v1.Pod) {
	for _, pod := range pods {
		f.add(pod)
	}
}

func (f *fixture) syncSet(t *testing.T, set *apps.ReplicaSet) error {
	t.Helper()
	return f.sync(t.Context(), cache.MetaObjectToName(set))
}

// requests lists what was sent, as "verb resource/subresource".
func (f *fixture) requests() string {
	var all []string
	for _, action := range f.client.Actions() {
		request := action.GetVerb() + " " + action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			request += "/" + sub
		}
		all = append(all, request)
	}
	return strings.Join(all, ", ")
}

// writes checks how many Pods were created, deleted and patched.
func (f *fixture) writes(t *testing.T, creates, deletes, patches int) {
	t.Helper()
	if got := f.podControl; len(got.Templates) != creates || len(got.DeletePodName) != deletes || len(got.Patches) != patches {
		t.Errorf("%d Pods created, %d deleted, %d patched; want %d, %d, %d",
			len(got.Templates), len(got.DeletePodName), len(got.Patches), creates, deletes, patches)
	}
}

// queued takes all keys out of the queue, the sets that an orphan may belong to among
// them, and returns their names.
func (f *fixture) queued(t *testing.T) []string {
	t.Helper()
	for f.orphans.Len() > 0 {
		f.orphans.ProcessNextItem(t.Context())
	}
	var keys []string
	f.syncHandler = func(_ context.Context, key cache.ObjectName) error {
		keys = append(keys, key.Name)
		return nil
	}
	defer func() { f.syncHandler = f.sync }()
	for f.worker.Len() > 0 {
		f.worker.ProcessNextItem(t.Context())
	}
	slices.Sort(keys)
	return keys
}
