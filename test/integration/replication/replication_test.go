// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package replication runs the replicationcontroller-controller against a real API server.
// What it shares with the ReplicaSet controller is tested there; here is how it behaves on
// ReplicationControllers.
package replication

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscaling "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/replication"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "replication-controller"
	timeout        = 60 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// TestReplicationControllers runs one controller, as the manager does, for tests that do
// not disturb each other.
func TestReplicationControllers(t *testing.T) {
	c := framework.New(t).Controllers(t, framework.ControllersOptions{})
	manager := replication.NewReplicationManager(c.Ctx, c.Informers.Core().V1().Pods(), c.Informers.Core().V1().ReplicationControllers(),
		c.Client(serviceAccount), replication.BurstReplicas)
	c.Run("replicationcontroller-controller", func(ctx context.Context) { manager.Run(ctx, 5) })
	for name, test := range map[string]func(*testing.T, *cluster){
		"life":                        testLife,
		"adoption and release":        testAdoptionAndRelease,
		"overlapping":                 testOverlapping,
		"scale subresource":           testScaleSubresource,
		"fully labelled":              testFullyLabeled,
		"ready and available":         testReadyAndAvailable,
		"logarithmic scale-down":      testLogarithmicScaleDown,
		"quota":                       testQuota,
		"terminating slowly (BC028)":  testTerminatingSlowly,
		"selector from the template":  testDefaultedSelector,
		"a ReplicaSet's pods are not": testForeignPods,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			test(t, &cluster{t: t, env: env, ns: env.Namespace(t, "replication")})
		})
	}
}

// cluster is a namespace of a test's own.
type cluster struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

// web returns a ReplicationController. Its Pods need no grace: without a kubelet they are
// gone as soon as they are deleted.
func web(replicas int32, changes ...func(*corev1.ReplicationController)) *corev1.ReplicationController {
	labels := map[string]string{"app": "web"}
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: &replicas,
			Selector: labels,
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/web:1"}},
				},
			},
		},
	}
	for _, change := range changes {
		change(rc)
	}
	return rc
}

func (c *cluster) create(rc *corev1.ReplicationController) *corev1.ReplicationController {
	c.t.Helper()
	created, err := c.env.Client.CoreV1().ReplicationControllers(c.ns).Create(c.t.Context(), rc, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) scale(name string, replicas int) {
	c.t.Helper()
	_, err := c.env.Client.CoreV1().ReplicationControllers(c.ns).Patch(c.t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) createPod(name string, labels map[string]string, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: web(1).Spec.Template.Spec}
	for _, change := range changes {
		change(pod)
	}
	pod, err := c.env.Client.CoreV1().Pods(c.ns).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *cluster) patchPod(name, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		c.t.Fatal(err)
	}
}

// active returns the names of the active Pods that rc controls.
func (c *cluster) active(ctx context.Context, rc *corev1.ReplicationController) ([]string, error) {
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
	var names []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && metav1.IsControlledBy(&pod, rc) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// waitActive waits until rc has that many active Pods, and returns their names.
func (c *cluster) waitActive(rc *corev1.ReplicationController, want int) (names []string) {
	c.t.Helper()
	c.env.WaitFor(c.t, fmt.Sprintf("%d active pods of %s", want, rc.Name), timeout, func(ctx context.Context) (ok bool, err error) {
		names, err = c.active(ctx, rc)
		return err == nil && len(names) == want, err
	})
	return names
}

// waitStatus waits until the condition holds for the status of an observed generation.
func (c *cluster) waitStatus(name, what string, condition func(corev1.ReplicationControllerStatus) bool) {
	c.t.Helper()
	c.env.WaitFor(c.t, name+" to have "+what, timeout, func(ctx context.Context) (bool, error) {
		rc, err := c.env.Client.CoreV1().ReplicationControllers(c.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if rc.Status.ObservedGeneration != rc.Generation || !condition(rc.Status) {
			return false, fmt.Errorf("generation %d, status %+v", rc.Generation, rc.Status)
		}
		return true, nil
	})
}

func available(want int32) func(corev1.ReplicationControllerStatus) bool {
	return func(s corev1.ReplicationControllerStatus) bool {
		return s.Replicas == want && s.FullyLabeledReplicas == want && s.ReadyReplicas == want && s.AvailableReplicas == want
	}
}

func testLife(t *testing.T, c *cluster) {
	c.env.Kubelet(t, 2, fakekubelet.Options{})
	rc := c.create(web(3))
	c.waitStatus("web", "3 available replicas", available(3))
	for _, name := range c.waitActive(rc, 3) {
		pod, err := c.env.Client.CoreV1().Pods(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owner := metav1.GetControllerOf(pod)
		if owner.APIVersion != "v1" || owner.Kind != "ReplicationController" || owner.Name != "web" || !*owner.BlockOwnerDeletion || !strings.HasPrefix(name, "web-") {
			t.Errorf("pod %s owned by %+v", name, owner)
		}
	}
	c.scale("web", 1)
	c.waitStatus("web", "1 available replica", available(1))
	c.scale("web", 0)
	c.waitStatus("web", "no replicas", available(0))
	c.env.WaitFor(t, "events on web", timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ReplicationController,involvedObject.name=web"})
		if err != nil {
			return false, err
		}
		got := map[string]int{}
		for _, e := range list.Items {
			got[fmt.Sprintf("%s %s %s %s %s", e.InvolvedObject.APIVersion, e.Source.Component, e.Type, e.Reason, strings.SplitAfter(e.Message, "pod: ")[0])] += int(e.Count)
		}
		want := map[string]int{
			"v1 replication-controller Normal SuccessfulCreate Created pod: ": 3,
			"v1 replication-controller Normal SuccessfulDelete Deleted pod: ": 3,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return false, fmt.Errorf("events %v", got)
		}
		return true, nil
	})
}

func testAdoptionAndRelease(t *testing.T, c *cluster) {
	for i := range 3 {
		c.createPod(fmt.Sprintf("own-%d", i), map[string]string{"app": "web"})
	}
	rc := c.create(web(2))
	var names []string
	// Two are active for a moment before the third is adopted and deleted, too.
	c.env.WaitFor(t, "the surplus pod to go and the others to be adopted", timeout, func(ctx context.Context) (bool, error) {
		all, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		names, err = c.active(ctx, rc)
		return len(all.Items) == 2 && len(names) == 2, err
	})
	for _, name := range names {
		if !strings.HasPrefix(name, "own-") {
			t.Errorf("pod %s was created although there were enough", name)
		}
	}
	c.patchPod(names[0], `{"metadata":{"labels":{"app":"other"}}}`)
	c.env.WaitFor(t, "the relabelled pod to be released", timeout, func(ctx context.Context) (bool, error) {
		pod, err := c.env.Client.CoreV1().Pods(c.ns).Get(ctx, names[0], metav1.GetOptions{})
		return err == nil && len(pod.OwnerReferences) == 0, err
	})
	c.waitActive(rc, 2)
}

func testOverlapping(t *testing.T, c *cluster) {
	first := c.create(web(1))
	second := c.create(web(2, func(rc *corev1.ReplicationController) { rc.Name = "web-2" }))
	c.waitActive(first, 1)
	c.waitActive(second, 2)
	c.scale("web-2", 1)
	c.waitActive(second, 1)
	c.waitActive(first, 1)
}

func testForeignPods(t *testing.T, c *cluster) {
	foreign := c.createPod("foreign", map[string]string{"app": "web"}, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "other", Controller: new(true)}}
	})
	rc := c.create(web(1))
	if names := c.waitActive(rc, 1); names[0] == foreign.Name {
		t.Error("the pod of a ReplicaSet was taken")
	}
}

func testScaleSubresource(t *testing.T, c *cluster) {
	rc := c.create(web(1))
	c.waitActive(rc, 1)
	scale, err := c.env.Client.CoreV1().ReplicationControllers(c.ns).GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	_, err = c.env.Client.CoreV1().ReplicationControllers(c.ns).UpdateScale(t.Context(), "web", &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.ns}, Spec: autoscaling.ScaleSpec{Replicas: 2}}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitActive(rc, 2)
}

func testFullyLabeled(t *testing.T, c *cluster) {
	rc := c.create(web(2, func(rc *corev1.ReplicationController) {
		rc.Spec.Template.Labels = map[string]string{"app": "web", "extra": "x"}
	}))
	names := c.waitActive(rc, 2)
	c.patchPod(names[0], `{"metadata":{"labels":{"extra":null}}}`)
	c.waitStatus("web", "one of two fully labelled", func(s corev1.ReplicationControllerStatus) bool {
		return s.Replicas == 2 && s.FullyLabeledReplicas == 1
	})
}

func testReadyAndAvailable(t *testing.T, c *cluster) {
	rc := c.create(web(3, func(rc *corev1.ReplicationController) { rc.Spec.MinReadySeconds = 3600 }))
	names := c.waitActive(rc, 3)
	ready := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`
	c.patchPod(names[0], fmt.Sprintf(ready, time.Now().UTC().Format(time.RFC3339)), "status")
	c.patchPod(names[1], fmt.Sprintf(ready, time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)), "status")
	c.waitStatus("web", "3, 2 ready, 1 available", func(s corev1.ReplicationControllerStatus) bool {
		return s.Replicas == 3 && s.ReadyReplicas == 2 && s.AvailableReplicas == 1
	})
}

// Of Pods that were ready for about as long, any may go: not always the youngest.
func testLogarithmicScaleDown(t *testing.T, c *cluster) {
	rc := c.create(web(4))
	names := c.waitActive(rc, 4)
	ready := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`
	for i, name := range names {
		age := 10 * time.Second
		if i < 2 {
			age = 48 * time.Hour
		}
		c.patchPod(name, fmt.Sprintf(ready, time.Now().Add(-age).UTC().Format(time.RFC3339)), "status")
	}
	c.waitStatus("web", "4 ready replicas", func(s corev1.ReplicationControllerStatus) bool { return s.ReadyReplicas == 4 })
	c.scale("web", 2)
	if left := c.waitActive(rc, 2); !slices.Equal(left, names[:2]) {
		t.Errorf("%v are left, want those that are ready for two days: %v", left, names[:2])
	}
}

func testQuota(t *testing.T, c *cluster) {
	hard := corev1.ResourceList{"pods": resource.MustParse("1")}
	quota, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"pods": resource.MustParse("1")}}
	if _, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	rc := c.create(web(1))
	c.waitStatus("web", "the condition ReplicaFailure", func(s corev1.ReplicationControllerStatus) bool {
		return len(s.Conditions) == 1 && s.Conditions[0].Type == corev1.ReplicationControllerReplicaFailure &&
			s.Conditions[0].Status == corev1.ConditionTrue && s.Conditions[0].Reason == "FailedCreate"
	})
	if err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitActive(rc, 1)
	c.waitStatus("web", "no condition", func(s corev1.ReplicationControllerStatus) bool { return s.Replicas == 1 && len(s.Conditions) == 0 })
}

// BC028: with terminatingReplicas tracked for ReplicaSets, a ReplicationController whose Pods
// end slowly still goes on.
func testTerminatingSlowly(t *testing.T, c *cluster) {
	rc := c.create(web(3, func(rc *corev1.ReplicationController) { rc.Spec.Template.Finalizers = []string{"example.com/hold"} }))
	all := c.waitActive(rc, 3)
	mark := c.env.AuditMark(t)
	c.scale("web", 1)
	c.waitActive(rc, 1)
	c.waitStatus("web", "1 replica", func(s corev1.ReplicationControllerStatus) bool { return s.Replicas == 1 })
	c.scale("web", 3)
	all = append(all, c.waitActive(rc, 3)...)
	c.waitStatus("web", "3 replicas", func(s corev1.ReplicationControllerStatus) bool { return s.Replicas == 3 })
	refused := c.env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Code(400, 422))
	if len(refused) > 0 {
		t.Errorf("refused as invalid:\n%v", refused)
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		c.patchPod(name, `{"metadata":{"finalizers":null}}`)
	}
}

// The API server takes the template's labels where there is no selector.
func testDefaultedSelector(t *testing.T, c *cluster) {
	rc := c.create(web(2, func(rc *corev1.ReplicationController) { rc.Spec.Selector = nil }))
	c.waitActive(rc, 2)
	c.waitStatus("web", "2 replicas", func(s corev1.ReplicationControllerStatus) bool { return s.Replicas == 2 && s.FullyLabeledReplicas == 2 })
}
