// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/testutil"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a controller over a fake API server, in a synctest bubble.
type fixture struct {
	t        *testing.T
	client   *fake.Clientset
	versions *testutil.Versions
}

// run starts a controller over objects and calls check, in a bubble of which the time begins at now.
func run(t *testing.T, check func(*fixture), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		f := &fixture{t: t, client: fake.NewClientset(objects...)}
		f.versions = testutil.CountVersions(f.client, 100)
		factory := informers.NewSharedInformerFactory(f.client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		backoff := flowcontrol.NewBackOffWithJitter(time.Second, 15*time.Minute, 0)
		c, err := newController(ctx, factory.Apps().V1().DaemonSets(), factory.Apps().V1().ControllerRevisions(),
			factory.Core().V1().Pods(), factory.Core().V1().Nodes(), f.client, backoff, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Workers()); got != 3 {
			t.Errorf("%d workers", got)
		}
		factory.StartWithContext(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx, 2) })
		f.settle()
		check(f)
		cancel()
		wg.Wait()
		factory.Shutdown()
	})
}

// settle lets the controller work off what it knows.
func (f *fixture) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (f *fixture) ds() *apps.DaemonSet {
	f.t.Helper()
	ds, err := f.client.AppsV1().DaemonSets("default").Get(f.t.Context(), "ds", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return ds
}

func (f *fixture) pods() []v1.Pod {
	f.t.Helper()
	list, err := f.client.CoreV1().Pods("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

func (f *fixture) revisions() []apps.ControllerRevision {
	f.t.Helper()
	list, err := f.client.AppsV1().ControllerRevisions("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b apps.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// update changes an object as a user or a kubelet does.
func (f *fixture) update(obj metav1.Object) {
	f.t.Helper()
	obj.SetResourceVersion(f.versions.Next())
	var err error
	switch o := obj.(type) {
	case *v1.Pod:
		err = f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), o, o.Namespace)
	case *v1.Node:
		err = f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), o, "")
	case *apps.DaemonSet:
		err = f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("daemonsets"), o, o.Namespace)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

// makeReady plays the scheduler and the kubelets.
func (f *fixture) makeReady() {
	f.t.Helper()
	for _, pod := range f.pods() {
		if pod.Spec.NodeName != "" && len(pod.Status.Conditions) > 0 {
			continue
		}
		ready := newPod("", "").Status
		ready.Conditions[0].LastTransitionTime = metav1.Now()
		pod.Status = ready
		pod.Spec.NodeName = pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		f.update(&pod)
	}
}

func (f *fixture) count(verb, resource, subresource string) int {
	n := 0
	for _, action := range f.client.Actions() {
		if action.Matches(verb, resource) && action.GetSubresource() == subresource {
			n++
		}
	}
	return n
}

func (f *fixture) expectEvent(text string) {
	f.t.Helper()
	list, err := f.client.CoreV1().Events("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, e.Type+" "+e.Reason+" "+e.Message)
	}
	if !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) }) {
		f.t.Errorf("events %q, want one with %q", all, text)
	}
}

func newNode(name string, changes ...func(*v1.Node)) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "3"}}
	for _, change := range changes {
		change(node)
	}
	return node
}

func tainted(effect v1.TaintEffect) func(*v1.Node) {
	return func(node *v1.Node) { node.Spec.Taints = []v1.Taint{{Key: "x", Effect: effect}} }
}

func TestLifeOfADaemonSet(t *testing.T) {
	ds := newDS()
	run(t, func(f *fixture) {
		pods := f.pods()
		if len(pods) != 2 {
			t.Fatalf("%d pods, want one on each of two nodes", len(pods))
		}
		hash := controller.ComputeHash(&ds.Spec.Template, nil)
		for _, pod := range pods {
			if pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] != hash || pod.Spec.NodeName != "" || len(pod.Spec.Tolerations) != 6 ||
				pod.GenerateName != "ds-" || !metav1.IsControlledBy(&pod, ds) {
				t.Errorf("pod %+v", pod)
			}
		}
		if r := f.revisions(); len(r) != 1 || r[0].Name != "ds-"+hash || r[0].Revision != 1 || r[0].Labels["app"] != "ds" {
			t.Errorf("revisions %+v", r)
		}
		f.expectEvent("Normal SuccessfulCreate Created pod: ds-1")
		f.makeReady()
		if s := f.ds().Status; s.NumberReady != 2 || s.NumberAvailable != 2 || s.DesiredNumberScheduled != 2 || s.UpdatedNumberScheduled != 2 || s.ObservedGeneration != 2 {
			t.Errorf("status %+v", s)
		}
		writes := len(f.client.Actions())
		pod := f.pods()[0]
		pod.Annotations = map[string]string{"note": "nothing that counts"}
		f.update(&pod)
		if n := f.count("update", "daemonsets", "status"); len(f.client.Actions()) > writes+1 {
			t.Errorf("requests without a reason: %d status updates, %v", n, f.client.Actions()[writes:])
		}

		// A new template goes node by node.
		ds := f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.Containers[0].Image = "example.com/ds:2"
		f.update(ds)
		if got := f.pods(); len(got) != 2 || f.count("delete", "pods", "") != 1 {
			t.Errorf("%d pods after %d deletions", len(got), f.count("delete", "pods", ""))
		}
		f.makeReady()
		f.makeReady()
		f.makeReady()
		if s := f.ds().Status; s.UpdatedNumberScheduled != 2 || s.NumberAvailable != 2 {
			t.Errorf("rolled out: %+v", s)
		}
		if r := f.revisions(); len(r) != 2 || r[1].Revision != 2 {
			t.Errorf("revisions %+v", r)
		}
		// Back to the first template: its revision is the newest again, and no other is made.
		ds = f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.Containers[0].Image = "example.com/ds:1"
		f.update(ds)
		if r := f.revisions(); len(r) != 2 || r[1].Revision != 3 || r[1].Name != "ds-"+hash {
			t.Errorf("revisions after going back: %+v", r)
		}
	}, ds.DeepCopy(), newNode("n1"), newNode("n2"), newNode("n3", tainted(v1.TaintEffectNoSchedule)))
}

func TestNodesThatChange(t *testing.T) {
	n1 := newNode("n1")
	run(t, func(f *fixture) {
		f.makeReady()
		if _, err := f.client.CoreV1().Nodes().Create(t.Context(), newNode("n2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		f.makeReady()
		if got := len(f.pods()); got != 2 {
			t.Fatalf("%d pods with a second node", got)
		}
		// A taint that forbids new Pods leaves the one that is there.
		tainted(v1.TaintEffectNoSchedule)(n1)
		f.update(n1.DeepCopy())
		if got := len(f.pods()); got != 2 {
			t.Errorf("%d pods after a NoSchedule taint", got)
		}
		if s := f.ds().Status; s.NumberMisscheduled != 1 || s.DesiredNumberScheduled != 1 {
			t.Errorf("status %+v", s)
		}
		n1.Spec.Taints = nil
		f.update(n1.DeepCopy())
		if s := f.ds().Status; s.NumberMisscheduled != 0 || s.DesiredNumberScheduled != 2 {
			t.Errorf("status without the taint: %+v", s)
		}
		tainted(v1.TaintEffectNoExecute)(n1)
		f.update(n1.DeepCopy())
		if got := f.pods(); len(got) != 1 || got[0].Spec.NodeName != "n2" {
			t.Errorf("%d pods after a NoExecute taint", len(got))
		}
		before := len(f.client.Actions())
		n1.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
		f.update(n1.DeepCopy())
		if got := f.client.Actions()[before:]; len(got) != 0 {
			t.Errorf("requests for a node's status: %v", got)
		}
	}, newDS(), n1.DeepCopy())
}

func TestDaemonSetsThatGetNoPods(t *testing.T) {
	for name, change := range map[string]func(*apps.DaemonSet){
		"being deleted":  func(ds *apps.DaemonSet) { ds.DeletionTimestamp = new(metav1.NewTime(now)) },
		"selecting all":  func(ds *apps.DaemonSet) { ds.Spec.Selector = &metav1.LabelSelector{} },
		"bad selector":   func(ds *apps.DaemonSet) { ds.Spec.Selector.MatchLabels["app"] = "not a value!" },
		"no such node":   func(ds *apps.DaemonSet) { ds.Spec.Template.Spec.NodeName = "n9" },
		"other selector": func(ds *apps.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				if n := f.count("create", "pods", ""); n != 0 {
					t.Errorf("%d pods", n)
				}
				if name == "selecting all" {
					f.expectEvent("Warning SelectingAll This daemon set is selecting all pods. A non-empty selector is required.")
				}
			}, newDS(change), newNode("n1"))
		})
	}
}

// BC010: a quota that refuses Pods hides no status, and few requests are wasted.
func TestStatusInSpiteOfRefusedPods(t *testing.T) {
	refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("exceeded quota"))
	}
	ds := newDS()
	ds.Spec.Template.Spec.NodeSelector = map[string]string{"later": "yes"}
	nodes := []runtime.Object{ds}
	for i := range 8 {
		nodes = append(nodes, newNode(fmt.Sprint("n", i)))
	}
	run(t, func(f *fixture) {
		f.client.PrependReactor("create", "pods", refuse)
		ds := f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.NodeSelector = nil
		f.update(ds)
		if s := f.ds().Status; s.DesiredNumberScheduled != 8 || s.CurrentNumberScheduled != 0 || s.ObservedGeneration != 3 {
			t.Errorf("status %+v", s)
		}
		if n := f.count("create", "pods", ""); n > 10 {
			t.Errorf("%d attempts in a second, want a slow start and back-off", n)
		}
		f.expectEvent("Warning FailedCreate Error creating: pods is forbidden: exceeded quota")
	}, nodes...)
}

func TestFailedPodsAreReplacedWithBackoff(t *testing.T) {
	run(t, func(f *fixture) {
		fail := func() {
			f.makeReady()
			for _, pod := range f.pods() {
				phase(v1.PodFailed)(&pod)
				f.update(&pod)
			}
		}
		fail()
		f.expectEvent("Warning FailedDaemonPod Found failed daemon pod default/ds-1 on node n1, will try to kill it")
		deleted := f.count("delete", "pods", "")
		if deleted != 1 {
			t.Fatalf("%d deletions", deleted)
		}
		for range 6 {
			fail()
		}
		start := f.count("delete", "pods", "")
		for range 20 {
			fail()
		}
		if n := f.count("delete", "pods", "") - start; n > 3 {
			t.Errorf("%d pods replaced in 40 s, want fewer and fewer", n)
		}
	}, newDS(), newNode("n1"))
}

func TestSucceededPodsAreReplaced(t *testing.T) {
	run(t, func(f *fixture) {
		f.makeReady()
		pod := f.pods()[0]
		phase(v1.PodSucceeded)(&pod)
		f.update(&pod)
		f.expectEvent("Normal SucceededDaemonPod Found succeeded daemon pod default/ds-1 on node n1, will try to delete it")
		if got := f.pods(); len(got) != 1 || got[0].Name == pod.Name {
			t.Errorf("pods %v", got)
		}
	}, newDS(), newNode("n1"))
}

func TestAdoptionAndRelease(t *testing.T) {
	orphan := newPod("orphan", "n1")
	orphan.OwnerReferences = nil
	stranger := newPod("stranger", "n2")
	stranger.Labels["app"] = "other"
	run(t, func(f *fixture) {
		pod, err := f.client.CoreV1().Pods("default").Get(t.Context(), "orphan", metav1.GetOptions{})
		if err != nil || len(pod.OwnerReferences) != 1 {
			t.Errorf("the orphan was not adopted: %+v, %v", pod.OwnerReferences, err)
		}
		pod, err = f.client.CoreV1().Pods("default").Get(t.Context(), "stranger", metav1.GetOptions{})
		if err != nil || len(pod.OwnerReferences) != 0 {
			t.Errorf("the stranger was not released: %+v, %v", pod.OwnerReferences, err)
		}
		if got := len(f.pods()); got != 3 {
			t.Errorf("%d pods, want one more for n2", got)
		}
	}, newDS(onDelete), orphan, stranger, newNode("n1"), newNode("n2"))
}

// A DaemonSet that was made anew under its name adopts nothing for the one that the cache still has.
func TestAnotherDaemonSetAdoptsNothing(t *testing.T) {
	orphan := newPod("orphan", "n1")
	orphan.OwnerReferences = nil
	run(t, func(f *fixture) {
		f.client.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
			another := newDS()
			another.UID = "another"
			return true, another, nil
		})
		if _, err := f.client.CoreV1().Pods("default").Create(t.Context(), orphan, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		if pod, err := f.client.CoreV1().Pods("default").Get(t.Context(), "orphan", metav1.GetOptions{}); err != nil || len(pod.OwnerReferences) != 0 {
			t.Errorf("owners %v, %v", pod.OwnerReferences, err)
		}
	}, newDS(onDelete), newNode("n1"))
}

// A request without an answer may have been carried out: the API server is asked before the next one.
func TestCreateWithoutAnAnswer(t *testing.T) {
	ds := newDS()
	ds.Spec.Template.Spec.NodeSelector = map[string]string{"later": "yes"}
	run(t, func(f *fixture) {
		lost := false
		f.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if lost {
				return false, nil, nil
			}
			lost = true
			return true, nil, errors.New("read tcp: connection reset by peer")
		})
		ds := f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.NodeSelector = nil
		f.update(ds)
		if n := f.count("list", "pods", ""); n < 2 {
			t.Errorf("pods were listed %d times, want a live look besides the informer's", n)
		}
		if got := f.pods(); len(got) != 1 {
			t.Errorf("%d pods", len(got))
		}
	}, ds, newNode("n1"))
}

// Who is refused because the namespace is going has nothing to report and nothing to retry.
func TestNamespaceInDeletion(t *testing.T) {
	ds := newDS()
	ds.Spec.Template.Spec.NodeSelector = map[string]string{"later": "yes"}
	run(t, func(f *fixture) {
		refused := apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("namespace default is being terminated"))
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
		f.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
		ds := f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.NodeSelector = nil
		f.update(ds)
		attempts := f.count("create", "pods", "")
		time.Sleep(time.Minute)
		f.settle()
		if n := f.count("create", "pods", ""); attempts == 0 || n != attempts {
			t.Errorf("%d attempts, and %d a minute later", attempts, n)
		}
	}, ds, newNode("n1"))
}

// What was deleted is not deleted again while the cache still shows it.
func TestDeletionThatTheCacheDoesNotShow(t *testing.T) {
	run(t, func(f *fixture) {
		f.makeReady()
		// The API server has taken the request, and nobody hears of it.
		f.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		ds := f.ds()
		ds.Generation++
		ds.Spec.Template.Spec.Containers[0].Image = "example.com/ds:2"
		f.update(ds)
		for range 3 {
			node := newNode("n1")
			node.Labels = map[string]string{"round": f.versions.Next()}
			f.update(node)
			ds := f.ds()
			ds.Annotations = map[string]string{"round": f.versions.Next()}
			f.update(ds)
		}
		if n := f.count("delete", "pods", ""); n != 1 {
			t.Errorf("%d deletions, want 1", n)
		}
	}, newDS(), newNode("n1"))
}

// A new version of the DaemonSet may mend what the Pods failed of: the back-off is not that of the old one.
func TestBackoffIsOfAVersion(t *testing.T) {
	run(t, func(f *fixture) {
		kept := func() bool {
			before := f.count("delete", "pods", "")
			f.makeReady()
			for _, pod := range f.pods() {
				phase(v1.PodFailed)(&pod)
				f.update(&pod)
			}
			return f.count("delete", "pods", "") == before
		}
		// Until the back-off is long, and has just begun.
		for range 25 {
			kept()
		}
		for kept() {
			time.Sleep(time.Second)
		}
		if !kept() {
			t.Fatal("the back-off does not grow")
		}
		before := f.count("delete", "pods", "")
		ds := f.ds()
		ds.Generation++
		ds.Annotations = map[string]string{"version": "2"}
		f.update(ds)
		f.settle()
		if f.count("delete", "pods", "") == before {
			t.Error("the new version waits for the old one's back-off")
		}
	}, newDS(onDelete), newNode("n1"))
}

// A revision of the current template that the cache does not show yet is taken as it is.
func TestRevisionThatIsThereAlready(t *testing.T) {
	ds := newDS()
	run(t, func(f *fixture) {
		if got := f.ds().Status.CollisionCount; got != nil && *got != 0 {
			t.Errorf("collision count %d", *got)
		}
		if got := len(f.pods()); got != 1 {
			t.Errorf("%d pods", got)
		}
	}, ds, newNode("n1"), func() *apps.ControllerRevision {
		made, err := (&syncer{ds: ds}).snapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		// Unlike the template's, its labels match no selector, so that no list of the controller has it.
		made.Labels = map[string]string{apps.DefaultDaemonSetUniqueLabelKey: made.Labels[apps.DefaultDaemonSetUniqueLabelKey]}
		made.OwnerReferences, made.UID = nil, "made"
		return made
	}())
}

// A revision of an older release may lack the label, and hold the same template in other bytes. It rolls nothing.
func TestRevisionOfAnOlderRelease(t *testing.T) {
	ds := newDS()
	older, err := (&syncer{ds: ds}).snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	older.UID = "older"
	delete(older.Labels, apps.DefaultDaemonSetUniqueLabelKey)
	raw := strings.Replace(string(older.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1)
	if raw == string(older.Data.Raw) {
		t.Fatalf("the test does not change %s", raw)
	}
	older.Data.Raw = []byte(raw)
	run(t, func(f *fixture) {
		r := f.revisions()
		if len(r) != 1 || r[0].Labels[apps.DefaultDaemonSetUniqueLabelKey] != older.Name {
			t.Errorf("revisions %+v", r)
		}
		if got := f.pods(); len(got) != 1 || got[0].Labels[apps.DefaultDaemonSetUniqueLabelKey] != older.Name {
			t.Errorf("pods %+v", got)
		}
	}, ds, older, newNode("n1"))
}

func TestHistoryLimit(t *testing.T) {
	run(t, func(f *fixture) {
		for i := range 5 {
			ds := f.ds()
			ds.Generation++
			ds.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("example.com/ds:", 10+i)
			f.update(ds)
		}
		if r := f.revisions(); len(r) != 3 || r[2].Revision != 6 {
			t.Errorf("%d revisions, want the current one and two: %+v", len(r), r)
		}
	}, newDS(onDelete, func(ds *apps.DaemonSet) { ds.Spec.RevisionHistoryLimit = new(int32(2)) }))
}

// Another template has the name that the current one would get.
func TestHashCollision(t *testing.T) {
	ds := newDS()
	taken := &apps.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ds-" + controller.ComputeHash(&ds.Spec.Template, nil), UID: "taken"},
		Data:       runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"other"}]}}}}`)}, Revision: 1,
	}
	run(t, func(f *fixture) {
		f.settle()
		if got := f.ds().Status.CollisionCount; got == nil || *got != 1 {
			t.Errorf("collision count %v", got)
		}
		want := "ds-" + controller.ComputeHash(&ds.Spec.Template, new(int32(1)))
		if !slices.ContainsFunc(f.revisions(), func(r apps.ControllerRevision) bool { return r.Name == want }) {
			t.Errorf("no revision %s", want)
		}
		if got := len(f.pods()); got != 1 {
			t.Errorf("%d pods", got)
		}
	}, ds, taken, newNode("n1"))
}

func TestDuplicateRevisionsBecomeOne(t *testing.T) {
	ds := newDS()
	s := &syncer{ds: ds}
	first, err := s.snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	first.UID, first.Revision = "first", 1
	second := first.DeepCopy()
	second.Name, second.UID, second.Revision = "ds-second", "second", 2
	second.Labels[apps.DefaultDaemonSetUniqueLabelKey] = "second"
	pod := newPod("pod", "n1")
	pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] = first.Labels[apps.DefaultDaemonSetUniqueLabelKey]
	run(t, func(f *fixture) {
		if r := f.revisions(); len(r) != 1 || r[0].Name != "ds-second" {
			t.Errorf("revisions %+v", r)
		}
		if got := f.pods(); len(got) != 1 || got[0].Labels[apps.DefaultDaemonSetUniqueLabelKey] != "second" {
			t.Errorf("pods %+v", got)
		}
	}, ds, first, second, pod, newNode("n1"))
}

func TestStatusIsTriedTwice(t *testing.T) {
	for _, tc := range []struct{ failures, want int }{{0, 1}, {1, 2}} {
		t.Run(fmt.Sprint(tc.failures, " failures"), func(t *testing.T) {
			failures := tc.failures
			ds := newDS()
			c := &DaemonSetsController{client: fake.NewClientset(ds)}
			client := c.client.(*fake.Clientset)
			tries := 0
			client.PrependReactor("update", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				if failures > 0 {
					failures--
					return true, nil, errors.New("disk full")
				}
				return true, ds, nil
			})
			s := &syncer{DaemonSetsController: c, ds: ds}
			s.guard = consistency.NewGuard(nil)
			if err := s.writeStatus(t.Context(), apps.DaemonSetStatus{ObservedGeneration: 9}); err != nil || tries != tc.want {
				t.Errorf("%d tries, %v", tries, err)
			}
			failures, tries = statusTries, 0
			if err := s.writeStatus(t.Context(), apps.DaemonSetStatus{ObservedGeneration: 9}); err == nil || tries != statusTries {
				t.Errorf("%d tries, %v, want a failure", tries, err)
			}
		})
	}
}

func TestAvailabilityComesByItself(t *testing.T) {
	run(t, func(f *fixture) {
		f.makeReady()
		if s := f.ds().Status; s.NumberReady != 1 || s.NumberAvailable != 0 {
			t.Fatalf("status %+v", s)
		}
		time.Sleep(30 * time.Second)
		f.settle()
		if s := f.ds().Status; s.NumberAvailable != 1 {
			t.Errorf("after minReadySeconds: %+v", s)
		}
	}, newDS(minReady(30)), newNode("n1"))
}
