// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// other is a second Deployment, which selects the same.
func other(changes ...func(*apps.Deployment)) *apps.Deployment {
	return deploymentOf(1, 1, 0, append(changes, func(d *apps.Deployment) { d.Name, d.UID = "other", "other-uid" })...)
}

// handlerFixture has a queue that records its keys instead of syncing them; queued empties it.
func handlerFixture(t *testing.T, deployments ...*apps.Deployment) (f *fixture, queued func() []string) {
	t.Helper()
	f = newFixture(t)
	for _, d := range deployments {
		f.cache(d)
	}
	var seen []string
	recording := worker.New(worker.Options[cache.ObjectName]{Controller: "test", Sync: func(_ context.Context, key cache.ObjectName) error {
		seen = append(seen, key.String())
		return nil
	}})
	real := f.dc.queue
	f.dc.queue = recording
	t.Cleanup(func() {
		f.dc.queue = real
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		recording.Run(ended, 1)
	})
	return f, func() []string {
		for f.dc.orphans.Len() > 0 {
			f.dc.orphans.ProcessNextItem(f.ctx)
		}
		for recording.Len() > 0 {
			recording.ProcessNextItem(f.ctx)
		}
		keys := seen
		seen = nil
		slices.Sort(keys)
		return keys
	}
}

func TestReplicaSetHandlers(t *testing.T) {
	owned := func(owner *apps.Deployment, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
		return setOf("rs", 1, 0, 1, 1, append([]func(*apps.ReplicaSet){func(rs *apps.ReplicaSet) {
			rs.OwnerReferences = nil
			if owner != nil {
				rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, controllerKind)}
			}
		}}, changes...)...)
	}
	relabelled := func(rs *apps.ReplicaSet) { rs.Labels = map[string]string{"app": "web", "more": "1"} }
	deleting := func(rs *apps.ReplicaSet) { rs.DeletionTimestamp = new(metav1.NewTime(epoch)) }
	otherKind := func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].Kind = "Widget" }
	web, second := deploymentOf(1, 1, 0), other()
	former := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.UID = "former" })
	unselective := other(func(d *apps.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
	broken := other(func(d *apps.Deployment) {
		d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bad"}}}
	})
	both := []*apps.Deployment{web, second}
	cases := map[string]struct {
		deployments []*apps.Deployment
		event       func(*DeploymentController, cache.Indexer)
		want        []string
	}{
		"add": {both, added(owned(web)), []string{"ns/web"}},
		"add, owned by a former deployment of the name": {both, added(owned(former)), nil},
		"add, owned by something else":                  {both, added(owned(web, otherKind)), nil},
		"add, an orphan":                                {both, added(owned(nil)), []string{"ns/other", "ns/web"}},
		"add, an orphan that matches nothing":           {both, added(owned(nil, func(rs *apps.ReplicaSet) { rs.Labels = map[string]string{"app": "x"} })), nil},
		"add, an orphan without labels":                 {both, added(owned(nil, func(rs *apps.ReplicaSet) { rs.Labels = nil })), nil},
		"add, an orphan, and an empty selector":         {[]*apps.Deployment{web, unselective}, added(owned(nil)), []string{"ns/web"}},
		"add, an orphan, and a broken selector":         {[]*apps.Deployment{web, broken}, added(owned(nil)), []string{"ns/web"}},
		"add, being deleted":                            {both, added(owned(web, deleting)), []string{"ns/web"}},
		"add, an orphan being deleted":                  {both, added(owned(nil, deleting)), nil},
		"update":                                        {both, updated(owned(web), owned(web, relabelled)), []string{"ns/web"}},
		"update, an orphan with new labels":             {both, updated(owned(nil), owned(nil, relabelled)), []string{"ns/other", "ns/web"}},
		"update, an orphan with the same labels":        {both, updated(owned(nil), owned(nil)), nil},
		"update, the owner changes":                     {both, updated(owned(web), owned(second)), []string{"ns/other", "ns/web"}},
		"update, it is released":                        {both, updated(owned(web), owned(nil)), []string{"ns/other", "ns/web"}},
		"update, it is adopted":                         {both, updated(owned(nil), owned(web)), []string{"ns/web"}},
		"delete":                                        {both, deleted(owned(web)), []string{"ns/web"}},
		"delete, an orphan":                             {both, deleted(owned(nil)), nil},
		"delete, owned by a former deployment":          {both, deleted(owned(former)), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, queued := handlerFixture(t, c.deployments...)
			c.event(f.dc, f.replicaSets)
			mustEqual(t, "keys", c.want, queued())
		})
	}
}

func added(rs *apps.ReplicaSet) func(*DeploymentController, cache.Indexer) {
	return func(dc *DeploymentController, indexer cache.Indexer) {
		_ = indexer.Add(rs)
		dc.replicaSetAdded(rs, false)
	}
}

func updated(old, cur *apps.ReplicaSet) func(*DeploymentController, cache.Indexer) {
	return func(dc *DeploymentController, indexer cache.Indexer) {
		_ = indexer.Add(cur)
		dc.replicaSetUpdated(old, cur)
	}
}

func deleted(rs *apps.ReplicaSet) func(*DeploymentController, cache.Indexer) {
	return func(dc *DeploymentController, _ cache.Indexer) { dc.replicaSetDeleted(rs) }
}

// TestOrphanWasAdopted: between the event and its turn the ReplicaSet got an owner, or went.
func TestOrphanWasAdopted(t *testing.T) {
	f, queued := handlerFixture(t, deploymentOf(1, 1, 0))
	orphan := setOf("rs", 1, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil })
	f.dc.replicaSetAdded(orphan, true)
	mustEqual(t, "keys of one that is gone", []string(nil), queued())
	f.dc.replicaSetAdded(orphan, false)
	f.cache(setOf("rs", 1, 0, 1, 1))
	mustEqual(t, "keys of one that is owned", []string(nil), queued())
	f.dc.replicaSetAdded(orphan, false)
	f.cache(setOf("rs", 1, 0, 1, 1, func(rs *apps.ReplicaSet) {
		rs.OwnerReferences, rs.DeletionTimestamp = nil, new(metav1.NewTime(epoch))
	}))
	mustEqual(t, "keys of one that is being deleted", []string(nil), queued())
}

func TestPodDeletion(t *testing.T) {
	rs := setOf("rs", 1, 0, 1, 1)
	orphanSet := setOf("orphan", 1, 0, 1, 1, func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil })
	pod := func(owner *apps.ReplicaSet, kind string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
		if owner != nil {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, replicaSetKind)}
			p.OwnerReferences[0].Kind = kind
		}
		return p
	}
	former := rs.DeepCopy()
	former.UID = types.UID("former")
	cases := map[string]struct {
		d    *apps.Deployment
		pod  *v1.Pod
		want []string
	}{
		"of a Recreate deployment":     {deploymentOf(1, 0, 0, recreating), pod(rs, "ReplicaSet"), []string{"ns/web"}},
		"of a rolling one":             {deploymentOf(1, 1, 0), pod(rs, "ReplicaSet"), nil},
		"of something else":            {deploymentOf(1, 0, 0, recreating), pod(rs, "Job"), nil},
		"of nothing":                   {deploymentOf(1, 0, 0, recreating), pod(nil, ""), nil},
		"of a former replica set":      {deploymentOf(1, 0, 0, recreating), pod(former, "ReplicaSet"), nil},
		"of a replica set of nobody's": {deploymentOf(1, 0, 0, recreating), pod(orphanSet, "ReplicaSet"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, queued := handlerFixture(t, c.d)
			f.cache(rs)
			f.cache(orphanSet)
			f.dc.podDeleted(c.pod)
			mustEqual(t, "keys", c.want, queued())
		})
	}
}

// TestPodDeletionWithSiblings: the Deployment is woken by each of its pods, not only by the last.
func TestPodDeletionWithSiblings(t *testing.T) {
	f, queued := handlerFixture(t, deploymentOf(2, 0, 0, recreating))
	rs := setOf("rs", 2, 0, 2, 0)
	f.cache(rs)
	for i := range 2 {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "ns",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, replicaSetKind)}}}
		f.cache(p)
		f.dc.podDeleted(p)
		mustEqual(t, "keys", []string{"ns/web"}, queued())
	}
}

func TestPodsOfEachReplicaSet(t *testing.T) {
	rs1, rs2 := setOf("rs1", 1, 0, 1, 1), setOf("rs2", 1, 0, 1, 1)
	f := newFixture(t)
	for name, owner := range map[string]*apps.ReplicaSet{"a": rs1, "b": rs1, "c": rs2, "orphan": nil} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		if owner != nil {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, replicaSetKind)}
		}
		f.cache(p)
	}
	pods, err := f.dc.podsOf([]*apps.ReplicaSet{rs1, rs2})
	if err != nil || len(pods) != 2 || len(pods[rs1.UID]) != 2 || len(pods[rs2.UID]) != 1 {
		t.Errorf("got %v, %v", pods, err)
	}
}

// BenchmarkPodsOf: the pods of other owners cost nothing.
func BenchmarkPodsOf(b *testing.B) {
	for _, noise := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("10-pods-%d-others", noise), func(b *testing.B) {
			rs, other := setOf("rs", 10, 0, 10, 0), setOf("other", 10, 0, 10, 0)
			informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
			if err := controller.AddPodControllerIndexer(informer); err != nil {
				b.Fatal(err)
			}
			dc := &DeploymentController{podIndexer: informer.GetIndexer()}
			for i := range 10 + noise {
				owner := rs
				if i >= 10 {
					owner = other
				}
				p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "ns",
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, replicaSetKind)}}}
				if err := dc.podIndexer.Add(p); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if pods, err := dc.podsOf([]*apps.ReplicaSet{rs}); err != nil || len(pods[rs.UID]) != 10 {
					b.Fatal(len(pods[rs.UID]), err)
				}
			}
		})
	}
}
