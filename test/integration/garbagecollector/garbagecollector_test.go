// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package garbagecollector

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

const hold = "example.com/hold"

// TestGarbageCollector runs one collector for tests that do not disturb each other.
func TestGarbageCollector(t *testing.T) {
	c, gc := start(t, framework.New(t))
	runDeployments(t, c)
	for name, test := range map[string]func(*testing.T, *space){
		"deployment, background":                         testBackground,
		"deployment, foreground":                         testForeground,
		"deployment, orphan":                             testOrphan,
		"foreground with a blocked middle (BC057)":       testBlockedMiddle,
		"create with non-existent owner":                 testNonExistentOwner,
		"orphaned dependents stay":                       testOrphanedStay,
		"solid owner does not block waiting owner":       testSolidOwner,
		"non-blocking reference does not block":          testNonBlocking,
		"blocking reference blocks":                      testBlocking,
		"double deletion with finalizer":                 testDoubleDeletion,
		"cross-namespace reference":                      testCrossNamespace,
		"cluster-scoped dependent of a namespaced owner": testClusterScopedDependent,
		"UID reuse": testUIDReuse,
		"custom resources and mixed relationships": testMixed,
		"CRD deletion cascades":                    testCRDDeletion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newSpace(t))
		})
	}
	_ = gc
}

func testBackground(_ *testing.T, s *space) {
	s.deploy()
	s.deleteDeployment(metav1.DeletePropagationBackground)
	s.waitCounts(0, 0, 0)
}

func testForeground(t *testing.T, s *space) {
	s.deploy()
	pods, err := s.env.Client.CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(patch string) {
		t.Helper()
		if _, err := s.env.Client.CoreV1().Pods(s.ns).Patch(t.Context(), pods.Items[0].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"finalizers":["` + hold + `"]}}`)
	s.deleteDeployment(metav1.DeletePropagationForeground)
	s.waitCounts(1, 1, 1)
	s.env.Never(t, "an owner goes before its dependent", short, func(ctx context.Context) (bool, error) {
		n, err := s.counts(ctx)
		return n != [3]int{1, 1, 1}, err
	})
	patch(`{"metadata":{"finalizers":null}}`)
	s.waitCounts(0, 0, 0)
}

func testOrphan(t *testing.T, s *space) {
	s.deploy()
	s.deleteDeployment(metav1.DeletePropagationOrphan)
	s.waitCounts(0, 1, 3)
	sets, err := s.env.Client.AppsV1().ReplicaSets(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owners := sets.Items[0].OwnerReferences; len(owners) != 0 {
		t.Errorf("the replica set has owners %v", owners)
	}
	s.env.Never(t, "what was orphaned goes", short, func(ctx context.Context) (bool, error) {
		n, err := s.counts(ctx)
		return n != [3]int{0, 1, 3}, err
	})
}

func testBlockedMiddle(t *testing.T, s *space) {
	root := s.create("root", nil)
	middle := s.create("middle", []string{hold}, blocking(root))
	s.create("leaf", nil, blocking(middle))
	s.delete("root", metav1.DeletePropagationForeground)
	s.waitGone("leaf")
	s.stays("middle", "root")
	if m, r := s.get("middle"), s.get("root"); m.DeletionTimestamp == nil || r.DeletionTimestamp == nil || r.Finalizers[0] != metav1.FinalizerDeleteDependents {
		t.Errorf("middle %+v, root %+v, want both terminating", m.ObjectMeta, r.ObjectMeta)
	}
	s.release("middle")
	s.waitGone("middle", "root")
}

func testNonExistentOwner(_ *testing.T, s *space) {
	s.create("child", nil, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "ghost", UID: "ghost"})
	s.create("free", nil)
	s.waitGone("child")
	s.stays("free")
}

func testOrphanedStay(t *testing.T, s *space) {
	owner := s.create("owner", nil)
	for i := range 20 {
		s.create(fmt.Sprint("child-", i), nil, owner)
	}
	s.delete("owner", metav1.DeletePropagationOrphan)
	s.waitGone("owner")
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("child-", i))
	}
	s.stays(names...)
	if owners := s.get("child-7").OwnerReferences; len(owners) != 0 {
		t.Errorf("owners %v are left", owners)
	}
}

func testSolidOwner(t *testing.T, s *space) {
	waiting, solid := s.create("waiting", nil), s.create("solid", nil)
	s.create("child", nil, blocking(waiting), solid)
	s.delete("waiting", metav1.DeletePropagationForeground)
	s.waitGone("waiting")
	s.stays("child", "solid")
	if owners := s.get("child").OwnerReferences; len(owners) != 1 || owners[0].Name != "solid" {
		t.Errorf("owners %v, want solid", owners)
	}
}

func testNonBlocking(_ *testing.T, s *space) {
	owner := s.create("owner", nil)
	s.create("child", []string{hold}, owner)
	s.delete("owner", metav1.DeletePropagationForeground)
	s.waitGone("owner")
	s.release("child")
	s.waitGone("child")
}

func testBlocking(_ *testing.T, s *space) {
	owner := s.create("owner", nil)
	s.create("child", []string{hold}, blocking(owner))
	s.create("other", nil, owner)
	s.delete("owner", metav1.DeletePropagationForeground)
	s.waitGone("other")
	s.stays("owner", "child")
	s.release("child")
	s.waitGone("owner", "child")
}

func testDoubleDeletion(_ *testing.T, s *space) {
	owner := s.create("owner", []string{hold})
	s.create("child", nil, blocking(owner))
	s.delete("owner", metav1.DeletePropagationForeground)
	s.waitGone("child")
	s.delete("owner", metav1.DeletePropagationForeground)
	s.release("owner")
	s.waitGone("owner")
}

func testCrossNamespace(t *testing.T, s *space) {
	owner := s.create("owner", nil)
	s.create("good", nil, owner)
	other := newSpace(t)
	// The object of the same name in the child's namespace is not the owner, and not what is deleted.
	other.create("owner", nil)
	other.create("bad", nil, owner)
	other.waitGone("bad")
	s.env.WaitFor(t, "the event", timeout, func(ctx context.Context) (bool, error) {
		events, err := s.env.Client.CoreV1().Events(other.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		want := fmt.Sprintf("ownerRef [v1/ConfigMap, namespace: %s, name: owner, uid: %s] does not exist in namespace %q", other.ns, owner.UID, other.ns)
		for _, e := range events.Items {
			if e.Reason == "OwnerRefInvalidNamespace" && e.Message == want && e.Type == corev1.EventTypeWarning &&
				e.InvolvedObject.Name == "bad" && e.Source.Component == "garbage-collector-controller" {
				return true, nil
			}
		}
		return false, fmt.Errorf("events %v", events.Items)
	})
	s.stays("owner", "good")
	other.stays("owner")
}

func testClusterScopedDependent(t *testing.T, s *space) {
	owner := s.create("owner", nil)
	pvs := s.env.Client.CoreV1().Nodes()
	name := s.ns
	if _, err := pvs.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pvs.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.create("child", nil, owner)
	s.delete("owner", metav1.DeletePropagationBackground)
	s.waitGone("child")
	s.env.Never(t, "the cluster-scoped dependent goes", short, func(ctx context.Context) (bool, error) {
		_, err := pvs.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func testUIDReuse(_ *testing.T, s *space) {
	old := s.create("owner", nil)
	s.delete("owner", metav1.DeletePropagationBackground)
	again := s.create("owner", nil)
	s.create("late", nil, old)
	s.create("child", nil, again)
	s.waitGone("late")
	s.stays("owner", "child")
}

func testMixed(t *testing.T, s *space) {
	gvr := s.createCRD("mixed.gc.kcm.example.com", "gadgets", "Gadget")
	custom := s.createCustom(gvr, "Gadget", "a")
	core := s.create("of-custom", nil, blocking(custom))
	s.createCustom(gvr, "Gadget", "b", core)
	solid := s.create("solid", nil)
	s.createCustom(gvr, "Gadget", "c", custom, solid)
	client := s.dynamic(gvr).Namespace(s.ns)
	policy := metav1.DeletePropagationForeground
	if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	s.waitGone("of-custom")
	for _, name := range []string{"a", "b"} {
		s.env.WaitFor(t, "gadget "+name+" to go", timeout, func(ctx context.Context) (bool, error) {
			_, err := client.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	}
	s.env.WaitFor(t, "gadget c to lose an owner", timeout, func(ctx context.Context) (bool, error) {
		c, err := client.Get(ctx, "c", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return len(c.GetOwnerReferences()) == 1 && c.GetOwnerReferences()[0].Name == "solid", nil
	})
}

func testCRDDeletion(t *testing.T, s *space) {
	gvr := s.createCRD("cascade.gc.kcm.example.com", "gizmos", "Gizmo")
	custom := s.createCustom(gvr, "Gizmo", "owner")
	s.create("child", nil, custom)
	s.stays("child")
	if err := s.dynamic(crds).Delete(t.Context(), "gizmos.cascade.gc.kcm.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitGone("child")
}

// BC056: what was deleted in the foreground while no collector ran.
func TestForegroundDeletionWhileDown(t *testing.T) {
	env := framework.New(t)
	c, _ := start(t, env)
	runDeployments(t, c)
	s := newSpace(t)
	s.deploy()
	c.Stop()
	s.deleteDeployment(metav1.DeletePropagationForeground)
	s.env.Never(t, "somebody deletes", short, func(ctx context.Context) (bool, error) {
		n, err := s.counts(ctx)
		return n != [3]int{1, 1, 3}, err
	})
	c, _ = start(t, env)
	runDeployments(t, c)
	s.waitCounts(0, 0, 0)
}

// The manager runs the collector with its service account's rights, and shows the graph.
func TestInTheManager(t *testing.T) {
	env := framework.New(t)
	m := env.StartManager(t, framework.ManagerOptions{Args: []string{"--controllers=garbage-collector-controller"}})
	s := newSpace(t)
	owner := s.create("owner", nil)
	s.create("child", nil, owner)
	s.create("lost", nil, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "ghost", UID: "ghost"})
	s.waitGone("lost")
	page := "/debug/controllers/garbage-collector-controller/graph?uid=" + string(owner.UID)
	code, body, err := m.Get(t.Context(), env.Config(), page)
	if err != nil || code != http.StatusOK || strings.Count(body, "label=") != 2 || !strings.Contains(body, " -> ") {
		t.Errorf("%s: %d %v\n%s", page, code, err, body)
	}
	s.delete("owner", metav1.DeletePropagationForeground)
	s.waitGone("child", "owner")
}

// Deleting many dependents costs one request each: no read, no retry.
func TestRequests(t *testing.T) {
	const dependents = 200
	env := framework.New(t)
	_, gc := start(t, env)
	s := newSpace(t)
	owner := s.create("owner", nil)
	var last metav1.OwnerReference
	for i := range dependents {
		last = s.create(fmt.Sprint("child-", i), nil, owner)
	}
	env.WaitFor(t, "the graph to have it all", timeout, func(context.Context) (bool, error) {
		return gc.GraphHasUID(last.UID) && gc.GraphHasUID(owner.UID) && gc.IsSynced(klog.FromContext(t.Context())), nil
	})
	mark := env.AuditMark(t)
	s.delete("owner", metav1.DeletePropagationBackground)
	env.WaitFor(t, "the dependents to go", timeout, func(ctx context.Context) (bool, error) {
		list, err := env.Client.CoreV1().ConfigMaps(s.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		n := 0
		for _, cm := range list.Items {
			if strings.HasPrefix(cm.Name, "child-") {
				n++
			}
		}
		if n > 0 {
			return false, fmt.Errorf("%d are left", n)
		}
		return true, nil
	})
	counts := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Resource("configmaps")).
		Count(func(e audit.Event) string { return e.Verb })
	if len(counts) != 1 || counts["delete"] != dependents {
		t.Errorf("requests %v, want %d deletions and nothing else", counts, dependents)
	}
}

// BC060: a kind that cannot be listed, since its conversion webhook is dead, stops nothing else, and
// its own objects are collected when it has recovered.
func TestBrokenConversion(t *testing.T) {
	env := framework.New(t)
	s := newSpace(t)
	gvr := s.createCRD("broken.gc.kcm.example.com", "widgets", "Widget")
	owner := s.create("owner", nil)
	custom := s.createCustom(gvr, "Widget", "w", owner)
	s.create("of-custom", nil, custom)
	patchCRD := func(patch string) {
		t.Helper()
		if _, err := s.dynamic(crds).Patch(context.WithoutCancel(t.Context()), "widgets.broken.gc.kcm.example.com", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const schema = `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	patchCRD(`{"spec":{"versions":[{"name":"v1","served":true,"storage":false,` + schema + `},{"name":"v2","served":true,"storage":true,` + schema + `}],
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"default","name":"nobody"}}}}}}`)
	repair := func() { patchCRD(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`) }
	t.Cleanup(repair)
	v2 := gvr
	v2.Version = "v2"
	env.WaitFor(t, "the list to be broken", timeout, func(ctx context.Context) (bool, error) {
		_, err := s.dynamic(v2).Namespace(s.ns).List(ctx, metav1.ListOptions{})
		return err != nil && !apierrors.IsNotFound(err), nil
	})

	c, gc := start(t, env)
	runDeployments(t, c)
	s.deploy()
	s.deleteDeployment(metav1.DeletePropagationBackground)
	s.waitCounts(0, 0, 0)
	s.stays("of-custom")
	fg := s.create("fg", nil)
	s.create("fg-child", nil, blocking(fg))
	s.delete("fg", metav1.DeletePropagationForeground)
	s.waitGone("fg-child", "fg")
	env.WaitFor(t, "the kind to be named", timeout, func(context.Context) (bool, error) {
		for _, w := range gc.Workers() {
			for _, f := range w.Record().Failing {
				if strings.Contains(f.Key, "broken.gc.kcm.example.com") && strings.Contains(f.LastError, "conversion") {
					return true, nil
				}
			}
		}
		return false, nil
	})

	repair()
	s.delete("owner", metav1.DeletePropagationBackground)
	s.waitGone("of-custom")
}
