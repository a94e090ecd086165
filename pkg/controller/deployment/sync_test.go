// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// fixture is a controller whose caches hold what the test puts there, in front of a fake API server
// that holds the same at first.
type fixture struct {
	t      *testing.T
	ctx    context.Context
	client *fake.Clientset
	dc     *DeploymentController
	events *record.FakeRecorder

	deployments, replicaSets, pods cache.Indexer
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	d, rs, pods := factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	dc, err := NewDeploymentController(ctx, d, rs, pods, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // Run ends what the queues hold
		ended, cancel := context.WithCancel(ctx)
		cancel()
		dc.Run(ended, 1)
	})
	f := &fixture{t: t, ctx: ctx, client: client, dc: dc, events: record.NewFakeRecorder(100),
		deployments: d.Informer().GetIndexer(), replicaSets: rs.Informer().GetIndexer(), pods: pods.Informer().GetIndexer()}
	dc.recorder = f.events
	dc.clock = clocktesting.NewFakePassiveClock(epoch.Add(time.Hour))
	for _, obj := range objects {
		f.cache(obj)
	}
	return f
}

func (f *fixture) cache(obj runtime.Object) {
	f.t.Helper()
	indexer := f.pods
	switch obj.(type) {
	case *apps.Deployment:
		indexer = f.deployments
	case *apps.ReplicaSet:
		indexer = f.replicaSets
	}
	if err := indexer.Update(obj); err != nil {
		f.t.Fatal(err)
	}
}

// refresh lets the caches see what the API server has.
func (f *fixture) refresh() {
	f.t.Helper()
	sets, err := f.client.AppsV1().ReplicaSets("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var objs []any
	for i := range sets.Items {
		objs = append(objs, &sets.Items[i])
	}
	if err := f.replicaSets.Replace(objs, "1000"); err != nil {
		f.t.Fatal(err)
	}
	deployments, err := f.client.AppsV1().Deployments("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range deployments.Items {
		f.cache(&deployments.Items[i])
	}
	f.client.ClearActions()
}

func (f *fixture) sync() error {
	return f.dc.sync(f.ctx, cache.ObjectName{Namespace: "ns", Name: "web"})
}

// expect syncs and compares the requests, as "verb resource[/subresource]".
func (f *fixture) expect(want ...string) {
	f.t.Helper()
	f.client.ClearActions()
	if err := f.sync(); err != nil {
		f.t.Fatalf("sync: %v", err)
	}
	mustEqual(f.t, "requests", want, f.requests())
}

func (f *fixture) requests() []string {
	var out []string
	for _, a := range f.client.Actions() {
		r := a.GetVerb() + " " + a.GetResource().Resource
		if a.GetSubresource() != "" {
			r += "/" + a.GetSubresource()
		}
		out = append(out, r)
	}
	return out
}

func (f *fixture) expectEvents(want ...string) {
	f.t.Helper()
	var got []string
	for len(f.events.Events) > 0 {
		got = append(got, <-f.events.Events)
	}
	mustEqual(f.t, "events", want, got)
}

func (f *fixture) fail(verb, resource, subresource string, err error) {
	f.client.PrependReactor(verb, resource, func(a kubetesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == subresource, nil, err
	})
}

func (f *fixture) deployment() *apps.Deployment {
	f.t.Helper()
	d, err := f.client.AppsV1().Deployments("ns").Get(f.ctx, "web", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func TestSyncCreatesReplicaSet(t *testing.T) {
	f := newFixture(t, deploymentOf(3, 1, 0))
	f.expect("create replicasets", "update deployments/status")
	d := f.deployment()
	hash := d.Annotations[util.RevisionAnnotation]
	if hash != "1" {
		t.Errorf("revision %q", hash)
	}
	cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	if cond == nil || cond.Reason != "NewReplicaSetCreated" {
		t.Errorf("condition %+v", cond)
	}
	list, _ := f.client.AppsV1().ReplicaSets("ns").List(f.ctx, metav1.ListOptions{})
	name := list.Items[0].Name
	f.expectEvents(fmt.Sprintf("Normal ScalingReplicaSet Scaled up replica set %s from 0 to 3", name))

	// The caches show it: there is nothing to do but to look at the deadline in time.
	f.refresh()
	err := f.sync()
	if len(f.client.Actions()) != 0 {
		t.Errorf("requests: %v", f.requests())
	}
	if want := worker.RequeueAfter(601 * time.Second); err == nil || err.Error() != want.Error() {
		t.Errorf("sync: %v", err)
	}
}

func TestSyncNoEventForAnEmptyReplicaSet(t *testing.T) {
	f := newFixture(t, deploymentOf(0, 1, 0))
	f.expect("create replicasets", "update deployments/status")
	f.expectEvents()
}

func TestSyncDuringDeletion(t *testing.T) {
	d := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(epoch)) })
	orphan := setOf("new", 0, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil })
	f := newFixture(t, d, orphan)
	f.expect("update deployments/status")
}

// TestSyncDeletionRace: the cache does not know yet that the Deployment is being deleted.
func TestSyncDeletionRace(t *testing.T) {
	live := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(epoch)) })
	orphan := setOf("new", 0, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil })
	f := newFixture(t, live, orphan)
	f.cache(deploymentOf(1, 1, 0))
	if err := f.sync(); err == nil || !strings.Contains(err.Error(), "has just been deleted") {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"get deployments"}, f.requests())
}

func TestSyncReplacedDeployment(t *testing.T) {
	live := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.UID = "another" })
	orphan := setOf("new", 0, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil })
	f := newFixture(t, live, orphan)
	f.cache(deploymentOf(1, 1, 0))
	if err := f.sync(); err == nil || !strings.Contains(err.Error(), "original Deployment ns/web is gone: got uid another, wanted web-uid") {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"get deployments"}, f.requests())
}

func TestSyncMissingDeployment(t *testing.T) {
	f := newFixture(t)
	f.expect()
}

func TestSyncEmptySelector(t *testing.T) {
	d := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
	f := newFixture(t, d, setOf("new", 1, 0, 1, 1))
	f.expect("update deployments/status")
	f.expectEvents("Warning SelectingAll This deployment is selecting all pods. A non-empty selector is required.")
	f.refresh()
	f.expect()
}

func TestSyncInvalidSelector(t *testing.T) {
	d := deploymentOf(1, 1, 0, func(d *apps.Deployment) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bad"}}
	})
	f := newFixture(t, d)
	if err := f.sync(); err == nil || !strings.Contains(err.Error(), "ns/web has an invalid selector") {
		t.Errorf("sync: %v", err)
	}
}

func TestSyncWithoutSelector(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.Spec.Selector = nil }))
	if err := f.sync(); err == nil || err.Error() != "deployment ns/web has no selector" {
		t.Errorf("sync: %v", err)
	}
}

func TestSyncAdoptsAndReleases(t *testing.T) {
	orphan := setOf("new", 3, 1, 3, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil; rs.Annotations = nil })
	leaver := setOf("leaver", 0, 0, 3, 1, func(rs *apps.ReplicaSet) { rs.Labels = map[string]string{"app": "other"} })
	stranger := setOf("stranger", 1, 0, 3, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].UID = "another" })
	elsewhere := setOf("elsewhere", 1, 0, 3, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil; rs.Namespace = "elsewhere" })
	deleted := setOf("deleted", 1, 0, 3, 1, func(rs *apps.ReplicaSet) {
		rs.OwnerReferences = nil
		rs.DeletionTimestamp = new(metav1.NewTime(epoch))
		rs.Finalizers = []string{"x/y"}
	})
	f := newFixture(t, deploymentOf(3, 1, 0), orphan, leaver, stranger, elsewhere, deleted)
	f.client.PrependReactor("patch", "replicasets", func(a kubetesting.Action) (bool, runtime.Object, error) {
		if a.(kubetesting.PatchAction).GetName() != "new" {
			return false, nil, nil
		}
		adopted := orphan.DeepCopy()
		adopted.OwnerReferences = leaver.OwnerReferences
		adopted.ResourceVersion = "99"
		return true, adopted, nil
	})
	var written *apps.ReplicaSet
	f.client.PrependReactor("update", "replicasets", func(a kubetesting.Action) (bool, runtime.Object, error) {
		written = a.(kubetesting.UpdateAction).GetObject().(*apps.ReplicaSet)
		return true, written, nil
	})
	f.expect("patch replicasets", "get deployments", "patch replicasets", "update replicasets", "update deployments/status")
	patched := map[string]string{}
	for _, a := range f.client.Actions() {
		if p, ok := a.(kubetesting.PatchAction); ok {
			patched[p.GetName()] = string(p.GetPatch())
		}
	}
	mustEqual(t, "patches", map[string]string{
		"new":    `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"new-uid"}}`,
		"leaver": `{"metadata":{"uid":"leaver-uid","ownerReferences":[{"$patch":"delete","uid":"web-uid"}]}}`,
	}, patched)
	if written.Name != "new" || written.ResourceVersion != "99" || len(written.OwnerReferences) != 1 {
		t.Errorf("what was adopted is not written on its new version: %+v", written.ObjectMeta)
	}
}

func TestSyncPausedScales(t *testing.T) {
	f := newFixture(t, deploymentOf(6, 1, 0, paused, complete), setOf("old", 4, 0, 4, 1))
	f.expect("update replicasets", "update deployments/status")
	f.expectEvents("Normal ScalingReplicaSet Scaled up replica set old from 4 to 6")
	cond := util.GetDeploymentCondition(f.deployment().Status, apps.DeploymentProgressing)
	if cond.Reason != util.PausedDeployReason {
		t.Errorf("condition %+v", cond)
	}
	f.refresh()
	f.expect() // and no deadline either
}

func TestSyncRecreate(t *testing.T) {
	d := deploymentOf(2, 0, 0, recreating)
	old := setOf("old", 2, 0, 2, 0)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(old, replicaSetKind)}}, Status: v1.PodStatus{Phase: v1.PodRunning}}
	f := newFixture(t, d, old, pod)
	f.expect("update replicasets", "update deployments/status")
	f.expectEvents("Normal ScalingReplicaSet Scaled down replica set old from 2 to 0")

	gone := setOf("old", 0, 0, 2, 0)
	f.refresh()
	f.cache(gone)
	f.expect("update deployments/status") // the status of the old one changed
	f.refresh()
	f.cache(gone)
	if err := f.sync(); len(f.client.Actions()) != 0 {
		t.Errorf("a pod runs, but %v, %v", f.requests(), err)
	}
	if err := f.pods.Delete(pod); err != nil {
		t.Fatal(err)
	}
	f.expect("create replicasets", "update deployments/status")
}

func TestReentrantRollback(t *testing.T) {
	d := deploymentOf(1, 1, 0, annotation(apps.DeprecatedRollbackTo, "0"), annotation(util.RevisionAnnotation, "2"))
	f := newFixture(t, d, setOf("old", 0, 0, 1, 1), setOf("new", 1, 1, 1, 1))
	f.expect("update deployments")
	f.expectEvents(`Normal DeploymentRollback Rolled back deployment "web" to revision 1`)
	got := f.deployment()
	mustEqual(t, "template", templateOf("old"), got.Spec.Template)
	if _, ok := got.Annotations[apps.DeprecatedRollbackTo]; ok {
		t.Error("the annotation is still there")
	}
}

func TestFailedRollback(t *testing.T) {
	d := deploymentOf(1, 1, 0, annotation(apps.DeprecatedRollbackTo, "0"))
	f := newFixture(t, d, setOf("old", 0, 0, 1, 1), setOf("new", 1, 1, 1, 1))
	f.fail("update", "deployments", "", errors.New("down"))
	if err := f.sync(); err == nil {
		t.Error("no error")
	}
	f.expectEvents() // it will be told when it is done
}

func TestSyncCleansUp(t *testing.T) {
	d := deploymentOf(1, 1, 0, complete, historyLimit(1), annotation(util.RevisionAnnotation, "4"))
	old := []*apps.ReplicaSet{setOf("a", 0, 0, 1, 1), setOf("b", 0, 1, 1, 1), setOf("c", 0, 2, 1, 1)}
	f := newFixture(t, d, old[0], old[1], old[2], setOf("new", 1, 3, 1, 1))
	f.expect("delete replicasets", "delete replicasets")
	for i, a := range f.client.Actions() {
		del := a.(kubetesting.DeleteActionImpl)
		pre := del.DeleteOptions.Preconditions
		if del.Name != old[i].Name || pre == nil || *pre.UID != old[i].UID || *pre.ResourceVersion != "5" {
			t.Errorf("deletion %d: %+v", i, del)
		}
	}
	// The cache still shows them: they are not deleted again, nor do they count.
	f.expect()
	f.refresh()
	f.expect()
	f.dc.guard.Clear(nameOf(d), "")
}

func TestSyncCleanUpFails(t *testing.T) {
	d := deploymentOf(1, 1, 0, complete, historyLimit(0), annotation(util.RevisionAnnotation, "2"))
	f := newFixture(t, d, setOf("a", 0, 0, 1, 1), setOf("new", 1, 1, 1, 1))
	f.fail("delete", "replicasets", "", errors.New("down"))
	if err := f.sync(); err == nil {
		t.Error("no error")
	}
	if f.dc.guard.IsDeleting(nameOf(d), "a-uid") {
		t.Error("a deletion that failed is taken for done")
	}
	f.fail("delete", "replicasets", "", apierrors.NewNotFound(apps.Resource("replicasets"), "a"))
	f.expect("delete replicasets")
}

func TestCreateFails(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0))
	f.fail("create", "replicasets", "", apierrors.NewForbidden(apps.Resource("replicasets"), "x", errors.New("quota")))
	if err := f.sync(); err == nil || !strings.Contains(err.Error(), "quota") {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"create replicasets", "update deployments/status"}, f.requests())
	cond := util.GetDeploymentCondition(f.deployment().Status, apps.DeploymentProgressing)
	if cond == nil || cond.Status != v1.ConditionFalse || cond.Reason != "ReplicaSetCreateError" {
		t.Fatalf("condition: %+v", cond)
	}
	if !strings.HasPrefix(cond.Message, `Failed to create new replica set "web-`) {
		t.Errorf("message %s", cond.Message)
	}
	f.expectEvents("Warning ReplicaSetCreateError " + cond.Message)

	f.refresh()
	if err := f.sync(); err == nil {
		t.Error("no error")
	}
	mustEqual(t, "requests of the retry", []string{"create replicasets"}, f.requests())
}

func TestCreateInTerminatingNamespace(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0))
	err := apierrors.NewForbidden(apps.Resource("replicasets"), "x", errors.New("terminating"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceTerminatingCause})
	f.fail("create", "replicasets", "", err)
	f.expect("create replicasets") // no status, no retry
	f.expectEvents()
}

// TestFencedCreate: a manager that has lost its lease has nothing to tell.
func TestFencedCreate(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0))
	f.fail("create", "replicasets", "", fmt.Errorf("Post: %w", gate.ErrFenced))
	if err := f.sync(); !errors.Is(err, gate.ErrFenced) {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"create replicasets"}, f.requests())
	f.expectEvents()
}

func TestNameCollision(t *testing.T) {
	d := deploymentOf(1, 1, 0)
	s := snapshotOf(d)
	name := planOf(t, s).create.Name
	blocker := setOf("blocker", 1, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.Name = name; rs.OwnerReferences[0].UID = "another" })
	f := newFixture(t, d, blocker)
	f.expect("create replicasets", "update deployments/status")
	f.expectEvents()
	got := f.deployment()
	mustEqual(t, "status", apps.DeploymentStatus{CollisionCount: new(int32(1))}, got.Status)

	f.refresh()
	f.expect("create replicasets", "update deployments/status")
	if list, _ := f.client.AppsV1().ReplicaSets("ns").List(f.ctx, metav1.ListOptions{}); len(list.Items) != 2 {
		t.Errorf("%d replica sets", len(list.Items))
	}
	if got := f.deployment(); *got.Status.CollisionCount != 1 || got.Status.ObservedGeneration != 1 {
		t.Errorf("status %+v", got.Status)
	}
}

// TestNameTakenByOurOwn: the ReplicaSet was created by us a moment ago, and the cache had not shown
// it when the round began.
func TestNameTakenByOurOwn(t *testing.T) {
	d := deploymentOf(1, 1, 0)
	created := planOf(t, snapshotOf(d)).create
	f := newFixture(t, d)
	f.client.PrependReactor("create", "replicasets", func(kubetesting.Action) (bool, runtime.Object, error) {
		f.cache(created)
		return true, nil, apierrors.NewAlreadyExists(apps.Resource("replicasets"), created.Name)
	})
	if err := f.sync(); err == nil || err.Error() != worker.RequeueAfter(soon).Error() {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"create replicasets"}, f.requests())
	f.expectEvents()
}

func TestNameTakenByWhatTheCacheDoesNotShow(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0))
	f.fail("create", "replicasets", "", apierrors.NewAlreadyExists(apps.Resource("replicasets"), "x"))
	if err := f.sync(); !apierrors.IsAlreadyExists(err) {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"create replicasets"}, f.requests())
}

// TestFailedScaleIsReported: a ReplicaSet that cannot be updated does not keep the Deployment from
// telling its state, and is tried again.
func TestFailedScaleIsReported(t *testing.T) {
	f := newFixture(t, deploymentOf(3, 1, 0), setOf("new", 1, 1, 3, 1), setOf("old", 3, 0, 3, 1))
	f.fail("update", "replicasets", "", errors.New("denied"))
	if err := f.sync(); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("sync: %v", err)
	}
	mustEqual(t, "requests", []string{"update replicasets", "update deployments/status"}, f.requests())
	if got := f.deployment().Status; got.ObservedGeneration != 1 || got.UnavailableReplicas != 0 {
		t.Errorf("status %+v", got)
	}
	f.expectEvents()
}

// TestStaleReplicaSetEndsTheRound: a ReplicaSet that changed is decided on anew when the cache shows it.
func TestStaleReplicaSetEndsTheRound(t *testing.T) {
	conflict := apierrors.NewConflict(apps.Resource("replicasets"), "old", errors.New("changed"))
	gone := apierrors.NewNotFound(apps.Resource("replicasets"), "old")
	for _, c := range []struct{ err, want error }{{conflict, worker.RequeueAfter(staleRecheck)}, {gone, gone}} {
		f := newFixture(t, deploymentOf(3, 1, 0), setOf("new", 1, 1, 3, 1), setOf("old", 3, 0, 3, 1))
		f.fail("update", "replicasets", "", c.err)
		if got := f.sync(); got == nil || !strings.Contains(got.Error(), c.want.Error()) {
			t.Errorf("sync: %v", got)
		}
		mustEqual(t, "requests", []string{"update replicasets"}, f.requests())
	}
}

func TestStatusOfADeploymentThatChangedOrIsGone(t *testing.T) {
	conflict := apierrors.NewConflict(apps.Resource("deployments"), "web", errors.New("changed"))
	gone := apierrors.NewNotFound(apps.Resource("deployments"), "web")
	for _, c := range []struct{ err, want error }{{conflict, worker.RequeueAfter(staleRecheck)}, {gone, nil}} {
		f := newFixture(t, deploymentOf(3, 1, 0), setOf("new", 3, 1, 3, 1))
		f.fail("update", "deployments", "status", c.err)
		if got := f.sync(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("sync: %v", got)
		}
		mustEqual(t, "requests", []string{"update deployments/status"}, f.requests())
	}
}

// TestReadsItsOwnWrites: while the cache does not show the last write, nothing is sent.
func TestReadsItsOwnWrites(t *testing.T) {
	for _, resource := range []string{"replicasets", "deployments"} {
		t.Run(resource, func(t *testing.T) {
			f := newFixture(t, deploymentOf(3, 1, 0), setOf("new", 1, 1, 3, 1), setOf("old", 3, 0, 3, 1))
			f.client.PrependReactor("update", "*", func(a kubetesting.Action) (bool, runtime.Object, error) {
				obj := a.(kubetesting.UpdateAction).GetObject().DeepCopyObject()
				if a.GetResource().Resource == resource {
					obj.(metav1.Object).SetResourceVersion("20")
				}
				return true, obj, nil
			})
			seen := func(rv string) {
				f.t.Helper()
				if err := f.replicaSets.Update(setOf("old", 3, 0, 3, 1, func(rs *apps.ReplicaSet) { rs.ResourceVersion = rv })); err != nil {
					t.Fatal(err)
				}
				f.cache(deploymentOf(3, 1, 0, func(d *apps.Deployment) { d.ResourceVersion = rv }))
			}
			seen("10")
			f.expect("update replicasets", "update deployments/status")
			if err := f.sync(); err == nil || err.Error() != worker.RequeueAfter(staleRecheck).Error() {
				t.Errorf("sync: %v", err)
			}
			if n := len(f.client.Actions()); n != 2 {
				t.Errorf("requests: %v", f.requests())
			}
			seen("20")
			f.expect("update replicasets", "update deployments/status")
		})
	}
}

func TestTerminalErrors(t *testing.T) {
	f := newFixture(t, deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.Spec.Strategy.Type = "Magic" }))
	f.dc.queue.Add(cache.ObjectName{Namespace: "ns", Name: "web"})
	f.dc.queue.ProcessNextItem(f.ctx)
	rec := f.dc.Workers()[0].Record()
	if rec.FailingCount != 1 || rec.Failing[0].Retrying || rec.Failing[0].LastError != "unexpected deployment strategy type: Magic" {
		t.Errorf("record: %+v", rec)
	}
	if rec.Queue != "deployment" || rec.Controller != "deployment-controller" {
		t.Errorf("record: %+v", rec)
	}
}
