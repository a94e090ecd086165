// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicaset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// TestReplicaSets runs one controller for tests that do not disturb each other.
func TestReplicaSets(t *testing.T) {
	start(t, framework.New(t), framework.ControllersOptions{})
	for name, test := range map[string]func(*testing.T, *framework.Env){
		"life":                         testLife,
		"scale subresource":            testScaleSubresource,
		"adopts, then deletes surplus": testAdoptionAndDeletion,
		"general adoption":             testGeneralAdoption,
		"label edit (BC026)":           testLabelEdit,
		"orphan of two sets":           testOrphanOfTwoSets,
		"overlapping":                  testOverlapping,
		"deleting and failed pods":     testDeletingAndFailedPods,
		"deletion order (BC024)":       testDeletionOrder,
		"invalid deletion cost":        testInvalidDeletionCost,
		"fully labelled replicas":      testFullyLabeledReplicas,
		"ready and available":          testReadyAndAvailable,
		"terminating replicas":         testTerminatingReplicas,
		"template change":              testTemplateChange,
		"quota":                        testQuota,
		"deleted and made anew":        testRecreated,
		"deletion leaves the pods":     testDefaultDeletionPolicy,
		"namespace in deletion":        testNamespaceInDeletion,
		"rejected pods (BC027)":        testRejectedPods,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, framework.New(t))
		})
	}
}

func testLife(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	kubelet(t, env)
	set := c.create(web(3))
	c.waitReady("web", 3)
	for _, pod := range c.pods() {
		want := *metav1.NewControllerRef(set, apps.SchemeGroupVersion.WithKind("ReplicaSet"))
		if len(pod.OwnerReferences) != 1 || pod.GenerateName != "web-" || !strings.HasPrefix(pod.Name, "web-") ||
			pod.OwnerReferences[0].UID != want.UID || !*pod.OwnerReferences[0].Controller || !*pod.OwnerReferences[0].BlockOwnerDeletion {
			t.Errorf("pod %s, made from %q, owned by %+v", pod.Name, pod.GenerateName, pod.OwnerReferences)
		}
	}
	c.deletePod(c.pods()[0].Name)
	c.waitEvents("web", map[string]int{"Normal SuccessfulCreate Created pod": 4})
	c.waitReady("web", 3)
	c.scale("web", 1)
	c.waitReady("web", 1)
	c.scale("web", 0)
	c.waitReady("web", 0)
	c.waitEvents("web", map[string]int{"Normal SuccessfulCreate Created pod": 4, "Normal SuccessfulDelete Deleted pod": 3})
}

func testScaleSubresource(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	kubelet(t, env)
	c.create(web(1))
	c.waitReady("web", 1)
	scale, err := env.Client.AppsV1().ReplicaSets(c.ns).GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	_, err = env.Client.AppsV1().ReplicaSets(c.ns).UpdateScale(t.Context(), "web", &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.ns}, Spec: autoscaling.ScaleSpec{Replicas: 2}}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitReady("web", 2)
}

func testAdoptionAndDeletion(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	for i := range 3 {
		c.createPod(fmt.Sprintf("own-%d", i), web(2))
	}
	set := c.create(web(2))
	names := c.waitActive(set, 2)
	for _, name := range names {
		if !strings.HasPrefix(name, "own-") {
			t.Errorf("pod %s was created although there were enough", name)
		}
	}
	c.waitEvents("web", map[string]int{"Normal SuccessfulDelete Deleted pod": 1})
}

func testGeneralAdoption(t *testing.T, env *framework.Env) {
	config, err := env.Client.CoreV1().ConfigMaps(newCluster(t, env).ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, env: env, ns: config.Namespace}
	owner := func(isController bool) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: config.UID, Controller: &isController}}
		}
	}
	set := web(1)
	c.createPod("owned", set, owner(true))
	c.createPod("has-an-owner", set, owner(false))
	created := c.create(set)
	if got := c.waitActive(created, 1); got[0] != "has-an-owner" {
		t.Errorf("the set's pod is %s, want the one without a controller", got[0])
	}
	pod, err := env.Client.CoreV1().Pods(c.ns).Get(t.Context(), "has-an-owner", metav1.GetOptions{})
	if err != nil || len(pod.OwnerReferences) != 2 {
		t.Errorf("owners %+v, %v: want both", pod.OwnerReferences, err)
	}
	if pod, err = env.Client.CoreV1().Pods(c.ns).Get(t.Context(), "owned", metav1.GetOptions{}); err != nil || metav1.IsControlledBy(pod, created) {
		t.Errorf("the pod of another controller was taken: %v", err)
	}
}

func testLabelEdit(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	kubelet(t, env)
	set := c.create(web(2))
	before := c.waitActive(set, 2)
	c.waitReady("web", 2)
	c.patchPod(before[0], `{"metadata":{"labels":{"app":"other"}}}`)
	c.createPod("orphan", set)
	env.WaitFor(t, "the relabelled pod to be released", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, before[0], metav1.GetOptions{})
		return err == nil && metav1.GetControllerOf(pod) == nil, err
	})
	c.waitReady("web", 2) // the replacement or the orphan makes two; a surplus goes again
	c.waitActive(set, 2)
	if pod, err := env.Client.CoreV1().Pods(c.ns).Get(t.Context(), before[0], metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the released pod was deleted: %v", err)
	}
	// Back again: it is adopted, and one is too many.
	c.patchPod(before[0], `{"metadata":{"labels":{"app":"web"}}}`)
	env.WaitFor(t, "the pod to be adopted or deleted", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, before[0], metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && metav1.IsControlledBy(pod, set), err
	})
	c.waitActive(set, 2)
}

func testOrphanOfTwoSets(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	one, two := c.create(web(1, named("one"))), c.create(web(1, named("two")))
	c.waitActive(one, 1)
	c.waitActive(two, 1)
	c.createPod("orphan", one)
	env.WaitFor(t, "the orphan to be claimed", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, "orphan", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil // adopted, and the one too many
		}
		if err != nil {
			return false, err
		}
		if len(pod.OwnerReferences) > 1 {
			t.Errorf("the orphan has two owners: %+v", pod.OwnerReferences)
		}
		return metav1.GetControllerOf(pod) != nil, nil
	})
	c.waitActive(one, 1)
	c.waitActive(two, 1)
}

func testOverlapping(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	var sets []*apps.ReplicaSet
	for i := range 3 {
		sets = append(sets, c.create(web(int32(i+1), named(fmt.Sprintf("web-%d", i)))))
	}
	for i, set := range sets {
		c.waitActive(set, i+1)
	}
	if got := len(c.pods()); got != 6 {
		t.Errorf("%d pods in all, want 6", got)
	}
	c.scale("web-2", 1)
	c.waitActive(sets[2], 1)
	c.waitActive(sets[0], 1)
	c.waitActive(sets[1], 2)
}

func testDeletingAndFailedPods(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := c.create(web(2))
	names := c.waitActive(set, 2)
	c.patchPod(names[0], `{"metadata":{"finalizers":["`+finalizer+`"]}}`)
	c.deletePod(names[0])
	c.setStatus(names[1], corev1.PodStatus{Phase: corev1.PodFailed})
	again := c.waitActive(set, 2)
	if slices.Contains(again, names[0]) || slices.Contains(again, names[1]) {
		t.Errorf("active pods %v, of which %v are deleted or failed", again, names)
	}
	if got := len(c.pods()); got != 4 {
		t.Errorf("%d pods, want two old and two new ones", got)
	}
	c.waitSet("web", "2 replicas", func(set *apps.ReplicaSet) bool { return set.Status.Replicas == 2 })
	c.patchPod(names[0], `{"metadata":{"finalizers":null}}`)
}

// A set is scaled down step by step; its pods are made by hand, and adopted.
func testDeletionOrder(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	config, err := env.Client.CoreV1().ConfigMaps(c.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ownedByConfig := func(set *apps.ReplicaSet) {
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: config.UID, Controller: new(true)}}
	}
	sibling := web(1, named("sibling"), ownedByConfig, func(set *apps.ReplicaSet) {
		set.Spec.Selector.MatchLabels = map[string]string{"app": "sibling"}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	})
	on := func(node string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }
	hourAgo := time.Now().Add(-time.Hour)
	c.createPod("neighbour", sibling, on("crowded"))
	c.setStatus("neighbour", readyStatus(hourAgo))

	set := web(6, ownedByConfig)
	c.createPod("p1-unassigned", set)
	c.createPod("p2-pending", set, on("a"))
	c.createPod("p3-not-ready", set, on("b"))
	c.setStatus("p3-not-ready", corev1.PodStatus{Phase: corev1.PodRunning})
	for name, change := range map[string]func(*corev1.Pod){
		"p4-cheap": func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{corev1.PodDeletionCost: "-1"}
			on("c")(pod)
		},
		"p5-crowded": on("crowded"),
		"p6-alone":   on("d"),
	} {
		c.createPod(name, set, change)
		c.setStatus(name, readyStatus(hourAgo))
	}
	c.create(sibling)
	created := c.create(set)
	left := c.waitActive(created, 6)
	c.waitSet("sibling", "its pod", func(set *apps.ReplicaSet) bool { return set.Status.ReadyReplicas == 1 })
	for n := 5; n > 0; n-- {
		c.scale("web", n)
		left = left[1:]
		if got := c.waitActive(created, n); !slices.Equal(got, left) {
			t.Fatalf("of %d, %v are left, want %v", n, got, left)
		}
	}
}

func testInvalidDeletionCost(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := web(3)
	hourAgo := time.Now().Add(-time.Hour)
	c.createPod("cheap", set, func(pod *corev1.Pod) { pod.Spec.NodeName = "a" })
	c.createPod("dear", set, func(pod *corev1.Pod) { pod.Spec.NodeName = "b" })
	c.createPod("middle", set, func(pod *corev1.Pod) { pod.Spec.NodeName = "c" })
	for _, name := range []string{"cheap", "dear", "middle"} {
		c.setStatus(name, readyStatus(hourAgo))
	}
	c.patchPod("cheap", `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-5"}}}`)
	c.patchPod("dear", `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"100"}}}`)
	// The API server lets no other than an int32 in.
	_, err := env.Client.CoreV1().Pods(c.ns).Patch(t.Context(), "middle", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"cheap"}}}`), metav1.PatchOptions{})
	if err == nil {
		t.Log("the API server accepts a cost that is no number: it counts as 0")
	}
	created := c.create(set)
	c.waitActive(created, 3)
	for n, want := range map[int][]string{2: {"dear", "middle"}} {
		c.scale("web", n)
		if got := c.waitActive(created, n); !slices.Equal(got, want) {
			t.Errorf("%v are left, want %v", got, want)
		}
	}
	c.scale("web", 1)
	if got := c.waitActive(created, 1); got[0] != "dear" {
		t.Errorf("%v is left, want the dear one", got)
	}
}

func testFullyLabeledReplicas(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := web(2)
	c.createPod("plain", set)
	set.Spec.Template.Labels = map[string]string{"app": "web", "extra": "yes"}
	c.create(set)
	c.waitSet("web", "2 replicas, 1 fully labelled", func(set *apps.ReplicaSet) bool {
		return set.Status.Replicas == 2 && set.Status.FullyLabeledReplicas == 1
	})
	c.patchPod("plain", `{"metadata":{"labels":{"extra":"yes"}}}`)
	c.waitSet("web", "2 fully labelled replicas", func(set *apps.ReplicaSet) bool { return set.Status.FullyLabeledReplicas == 2 })
}

func testReadyAndAvailable(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := c.create(web(3, func(set *apps.ReplicaSet) { set.Spec.MinReadySeconds = 3600 }))
	names := c.waitActive(set, 3)
	c.setStatus(names[1], readyStatus(time.Now()))
	c.setStatus(names[2], readyStatus(time.Now().Add(-2*time.Hour)))
	c.waitSet("web", "3 replicas, 2 ready, 1 available", func(set *apps.ReplicaSet) bool {
		return set.Status.Replicas == 3 && set.Status.ReadyReplicas == 2 && set.Status.AvailableReplicas == 1
	})

	// A pod becomes available by time alone.
	soon := c.create(web(1, named("soon"), func(set *apps.ReplicaSet) {
		set.Spec.MinReadySeconds = 3
		set.Spec.Selector.MatchLabels = map[string]string{"app": "soon"}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	}))
	name := c.waitActive(soon, 1)[0]
	ready := time.Now().Truncate(time.Second)
	c.setStatus(name, readyStatus(ready))
	c.waitSet("soon", "a ready replica that is not available", func(set *apps.ReplicaSet) bool {
		return set.Status.ReadyReplicas == 1 && set.Status.AvailableReplicas == 0
	})
	c.waitSet("soon", "an available replica", func(set *apps.ReplicaSet) bool { return set.Status.AvailableReplicas == 1 })
	if took := time.Since(ready); took < 3*time.Second || took > 6*time.Second {
		t.Errorf("it took %v to become available, want 3 s", took)
	}
}

func testTerminatingReplicas(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	nodes := kubelet(t, env)
	nodes.HoldDeletion(func(*corev1.Pod) bool { return true })
	c.create(web(3, func(set *apps.ReplicaSet) { set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(600)) }))
	c.waitReady("web", 3)
	c.scale("web", 1)
	c.waitSet("web", "1 replica, 2 terminating", func(set *apps.ReplicaSet) bool {
		return set.Status.Replicas == 1 && set.Status.TerminatingReplicas != nil && *set.Status.TerminatingReplicas == 2
	})
	c.scale("web", 3) // those that are terminating do not come back
	c.waitSet("web", "3 replicas, 2 terminating", func(set *apps.ReplicaSet) bool {
		return set.Status.ReadyReplicas == 3 && *set.Status.TerminatingReplicas == 2
	})
	nodes.HoldDeletion(nil)
	c.waitReady("web", 3)
}

func testTemplateChange(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	kubelet(t, env)
	set := c.create(web(2))
	before := c.waitActive(set, 2)
	c.patchSet("web", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/web:2"}]}}}}`)
	c.waitReady("web", 2)
	if got := c.waitActive(set, 2); !slices.Equal(got, before) {
		t.Errorf("pods %v were exchanged for %v: a template is for new ones", before, got)
	}
	c.deletePod(before[0])
	env.WaitFor(t, "a pod of the new template", timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.Containers[0].Image == "example.com/web:2" }), err
	})
}

func testQuota(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	// Nobody counts, as the quota controller does not run here: its status is set by hand.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": *quantity("2")}}}
	quota, err := env.Client.CoreV1().ResourceQuotas(c.ns).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": *quantity("0")}}
	if _, err := env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "the quota to be in force", timeout, func(ctx context.Context) (bool, error) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: web(1).Spec.Template.Spec}
		_, err := env.Client.CoreV1().Pods(c.ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil, err
	})
	set := c.create(web(5))
	c.waitActive(set, 2)
	failing := c.waitSet("web", "the condition ReplicaFailure", func(set *apps.ReplicaSet) bool {
		return set.Status.Replicas == 2 && replicaset.GetCondition(set.Status, apps.ReplicaSetReplicaFailure) != nil
	})
	condition := replicaset.GetCondition(failing.Status, apps.ReplicaSetReplicaFailure)
	if condition.Reason != "FailedCreate" || condition.Status != corev1.ConditionTrue || !strings.Contains(condition.Message, "exceeded quota") {
		t.Errorf("condition %+v", condition)
	}
	if err := env.Client.CoreV1().ResourceQuotas(c.ns).Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitActive(set, 5)
	c.waitSet("web", "no condition", func(set *apps.ReplicaSet) bool { return set.Status.Replicas == 5 && len(set.Status.Conditions) == 0 })
}

func testRecreated(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	for range 3 {
		first := c.create(web(2))
		c.waitActive(first, 2)
		// The garbage collector does not run here: the pods stay.
		if err := env.Client.AppsV1().ReplicaSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		second := c.create(web(2))
		c.waitActive(second, 2)
		c.neverOther(second, 2, 500*time.Millisecond)
		if err := env.Client.AppsV1().ReplicaSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func testDefaultDeletionPolicy(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := c.create(web(2))
	names := c.waitActive(set, 2)
	if err := env.Client.AppsV1().ReplicaSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Background: the set is gone at once, and its pods are left to the garbage collector,
	// which does not run here.
	if _, err := env.Client.AppsV1().ReplicaSets(c.ns).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the set is not gone: %v", err)
	}
	env.Never(t, "pods deleted by the controller", time.Second, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return err == nil && !slices.Equal(active(pods, set), names), err
	})
}

func testNamespaceInDeletion(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := c.create(web(2))
	names := c.waitActive(set, 2)
	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), c.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mark := env.AuditMark(t)
	for _, name := range names {
		c.deletePod(name)
	}
	c.waitActive(set, 0)
	c.waitSet("web", "no replicas", func(set *apps.ReplicaSet) bool { return set.Status.Replicas == 0 })
	env.Never(t, "a pod in a namespace in deletion", time.Second, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return len(active(pods, set)) > 0, err
	})
	refused := env.AuditSince(t, mark).Where(byController(c.ns), audit.Verb("create"), audit.Resource("pods"))
	if len(refused) > 1 {
		t.Errorf("%d creations were tried, want one and then none:\n%v", len(refused), refused)
	}
}

func testRejectedPods(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	nodes := kubelet(t, env)
	nodes.Set(fakekubelet.Failed, nil)
	c.create(web(1))
	c.waitSet("web", "the condition ReplicaFailure", func(set *apps.ReplicaSet) bool {
		condition := replicaset.GetCondition(set.Status, apps.ReplicaSetReplicaFailure)
		return condition != nil && condition.Reason == "PodsFailing" && strings.Contains(condition.Message, "growing delay")
	})
	c.env.Never(t, "more than 8 pods in 20 s", 20*time.Second, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return len(pods) > 8, err
	})
	if got := len(c.pods()); got < 4 {
		t.Errorf("only %d pods in 20 s: the delay is to grow from a second", got)
	}
	// The node is well again: the next pod runs, and all is as ever.
	nodes.Set(fakekubelet.Ready, nil)
	c.waitSet("web", "a ready replica and no condition", func(set *apps.ReplicaSet) bool {
		return set.Status.ReadyReplicas == 1 && len(set.Status.Conditions) == 0
	})
}
