// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package disruption runs the disruption-controller against a real API server, and its eviction API.
package disruption

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/utils/clock"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/disruption"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

const (
	serviceAccount = "disruption-controller"
	timeout        = 60 * time.Second
	// staleAfter is how long a DisruptionTarget condition lasts here.
	staleAfter = 3 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// cluster is a namespace of a test's own, with a controller.
type cluster struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

// start runs the controller as the manager does, but for a shorter time until a condition is stale.
func start(t *testing.T) *cluster {
	t.Helper()
	env := framework.New(t)
	c := env.Controllers(t, framework.ControllersOptions{})
	client := c.Client(serviceAccount)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	scales, err := scale.NewForConfig(c.Config(serviceAccount), mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		t.Fatal(err)
	}
	core, apps := c.Informers.Core().V1(), c.Informers.Apps().V1()
	dc := disruption.NewDisruptionControllerInternal(c.Ctx, core.Pods(), c.Informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, mapper, scales,
		client.Discovery(), clock.RealClock{}, staleAfter)
	c.Run("disruption-controller", func(ctx context.Context) { dc.Run(ctx, 2) })
	return &cluster{t: t, env: env, ns: env.Namespace(t, "disruption")}
}

// pod creates a ready Pod that is labelled app=web.
func (c *cluster) pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/pod:1"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	if _, err := c.env.Client.CoreV1().Pods(c.ns).Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return c.patchStatus(name, map[string]any{"phase": corev1.PodRunning, "conditions": []map[string]any{{"type": corev1.PodReady, "status": "True"}}})
}

func (c *cluster) patchStatus(name string, status map[string]any) *corev1.Pod {
	c.t.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	pod, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *cluster) budget(spec policy.PodDisruptionBudgetSpec) {
	c.t.Helper()
	pdb := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget"}, Spec: spec}
	if _, err := c.env.Client.PolicyV1().PodDisruptionBudgets(c.ns).Create(c.t.Context(), pdb, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// web is the spec of a budget for Pods labelled app=web.
func web(minAvailable, maxUnavailable string) policy.PodDisruptionBudgetSpec {
	spec := policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	if minAvailable != "" {
		spec.MinAvailable = new(intstr.Parse(minAvailable))
	}
	if maxUnavailable != "" {
		spec.MaxUnavailable = new(intstr.Parse(maxUnavailable))
	}
	return spec
}

// waitStatus waits until the budget's numbers are these.
func (c *cluster) waitStatus(allowed, healthy, desired, expected int32) {
	c.t.Helper()
	c.env.WaitFor(c.t, "the budget's status", timeout, func(ctx context.Context) (bool, error) {
		pdb, err := c.env.Client.PolicyV1().PodDisruptionBudgets(c.ns).Get(ctx, "budget", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := pdb.Status
		if s.ObservedGeneration != pdb.Generation || s.DisruptionsAllowed != allowed || s.CurrentHealthy != healthy || s.DesiredHealthy != desired || s.ExpectedPods != expected {
			return false, fmt.Errorf("it is %+v", s)
		}
		return true, nil
	})
}

func TestEmptySelectorSelectsAll(t *testing.T) {
	c := start(t)
	c.pod("a")
	c.pod("b", func(pod *corev1.Pod) { pod.Labels = nil })
	c.budget(policy.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{}})
	c.waitStatus(1, 2, 1, 2)
}

func TestSelectorThatPodsWithoutLabelsMatch(t *testing.T) {
	c := start(t)
	c.pod("plain", func(pod *corev1.Pod) { pod.Labels = nil })
	c.pod("web")
	c.budget(policy.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}},
	}})
	c.waitStatus(0, 1, 1, 1)
}

// A custom resource says by its scale how many Pods there should be.
// A budget whose selector is patched, in any of the four ways, is counted by the selector that the API server makes of it.
func TestPatchCompatibility(t *testing.T) {
	c := start(t)
	labelled := func(labels map[string]string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = labels }
	}
	c.pod("a")
	c.pod("b", labelled(map[string]string{"app": "web", "tier": "front"}))
	c.pod("c", labelled(map[string]string{"tier": "front"}))
	c.pod("d", labelled(map[string]string{"tier": "front"}))
	front := map[string]string{"tier": "front"}
	for _, tc := range []struct {
		name    string
		patch   types.PatchType
		data    string
		options metav1.PatchOptions
		want    map[string]string
		healthy int32
	}{
		{name: "a merge patch adds a label", patch: types.MergePatchType, data: `{"spec":{"selector":{"matchLabels":{"tier":"front"}}}}`,
			want: map[string]string{"app": "web", "tier": "front"}, healthy: 1},
		{name: "a strategic merge patch replaces the selector", patch: types.StrategicMergePatchType, data: `{"spec":{"selector":{"matchLabels":{"tier":"front"}}}}`,
			want: front, healthy: 3},
		{name: "a JSON patch replaces what it names", patch: types.JSONPatchType, data: `[{"op":"replace","path":"/spec/selector/matchLabels","value":{"tier":"front"}}]`,
			want: front, healthy: 3},
		{name: "applying replaces the selector", patch: types.ApplyPatchType,
			data:    `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"budget"},"spec":{"selector":{"matchLabels":{"tier":"front"}}}}`,
			options: metav1.PatchOptions{FieldManager: "test", Force: new(true)}, want: front, healthy: 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			budgets := c.env.Client.PolicyV1().PodDisruptionBudgets(c.ns)
			c.budget(web("1", ""))
			c.waitStatus(1, 2, 1, 2)
			patched, err := budgets.Patch(t.Context(), "budget", tc.patch, []byte(tc.data), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, patched.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
			c.waitStatus(tc.healthy-1, tc.healthy, 1, tc.healthy)
			if err := budgets.Delete(t.Context(), "budget", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	c := start(t)
	kind := framework.CustomKind{Group: "scale.kcm.example.com", Plural: "herds", Kind: "Herd", Scalable: true}
	herds := c.env.CustomResource(t, kind).Namespace(c.ns)
	herd, err := herds.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scale.kcm.example.com/v1", "kind": "Herd", "metadata": map[string]any{"name": "herd"},
		"spec": map[string]any{"replicas": int64(4)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "scale.kcm.example.com/v1", Kind: "Herd", Name: "herd", UID: herd.GetUID(), Controller: new(true),
		}}
	}
	for i := range 3 {
		c.pod(fmt.Sprint("pod-", i), owned)
	}
	c.budget(web("", "2"))
	c.waitStatus(1, 3, 2, 4)
}

// A kind that cannot be scaled leaves the numbers unknown: nothing may be disrupted.
func TestOwnerThatCannotBeScaled(t *testing.T) {
	c := start(t)
	kind := framework.CustomKind{Group: "noscale.kcm.example.com", Plural: "rocks", Kind: "Rock"}
	rock, err := c.env.CustomResource(t, kind).Namespace(c.ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "noscale.kcm.example.com/v1", "kind": "Rock", "metadata": map[string]any{"name": "rock"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.pod("pod", func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "noscale.kcm.example.com/v1", Kind: "Rock", Name: "rock", UID: rock.GetUID(), Controller: new(true),
		}}
	})
	c.budget(web("", "1"))
	c.env.WaitFor(t, "the failure in the status", timeout, func(ctx context.Context) (bool, error) {
		pdb, err := c.env.Client.PolicyV1().PodDisruptionBudgets(c.ns).Get(ctx, "budget", metav1.GetOptions{})
		if err != nil || len(pdb.Status.Conditions) == 0 {
			return false, err
		}
		cond := pdb.Status.Conditions[0]
		if cond.Reason != policy.SyncFailedReason || cond.Message != "rocks.noscale.kcm.example.com does not implement the scale subresource" {
			return false, fmt.Errorf("it is %+v", cond)
		}
		return true, nil
	})
	c.env.WaitFor(t, "the event", timeout, func(ctx context.Context) (bool, error) {
		events, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=CalculateExpectedPodCountFailed"})
		return err == nil && len(events.Items) == 1, err
	})
}

// Many evict at once, and the controller writes between them: never more go than the budget allows.
func TestBudgetHoldsAgainstConcurrentEvictions(t *testing.T) {
	const pods, stay = 20, 12
	c := start(t)
	for i := range pods {
		c.pod(fmt.Sprint("pod-", i))
	}
	c.budget(web(fmt.Sprint(stay), ""))
	c.waitStatus(pods-stay, pods, stay, pods)

	var evicted atomic.Int32
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i), Namespace: c.ns}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}}
			err := c.env.Client.CoreV1().Pods(c.ns).EvictV1(t.Context(), eviction)
			switch {
			case err == nil:
				evicted.Add(1)
			case !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err) && !apierrors.IsInternalError(err):
				t.Errorf("evicting: %v", err)
			}
		})
	}
	wg.Wait()
	left, err := c.env.Client.CoreV1().Pods(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) < stay || pods-len(left.Items) != int(evicted.Load()) || evicted.Load() == 0 {
		t.Errorf("%d pods are left, %d were evicted; %d must stay", len(left.Items), evicted.Load(), stay)
	}
	n := int32(len(left.Items))
	c.waitStatus(n-stay, n, stay, n)
}

// Nothing is sent while nothing changes, and what changes costs one write.
func TestRequests(t *testing.T) {
	c := start(t)
	c.pod("a")
	c.pod("b")
	c.budget(web("1", ""))
	c.waitStatus(1, 2, 1, 2)
	mark := c.env.AuditMark(t)
	c.patchStatus("b", map[string]any{"conditions": []map[string]any{{"type": corev1.PodReady, "status": "False"}}})
	c.waitStatus(0, 1, 1, 2)
	for i := range 5 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i)
		if _, err := c.env.Client.CoreV1().Pods(c.ns).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.env.Never(t, "a request", 2*time.Second, func(context.Context) (bool, error) { return false, nil })
	sent := c.env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount))
	if len(sent) != 1 {
		t.Errorf("%d requests, want 1 status update:\n%v", len(sent), sent)
	}
}

// BC082, kubernetes/kubernetes#113578: what else is in the Pod must not keep the condition.
func TestStaleDisruptionTargetOfAPodWithDuplicateEnv(t *testing.T) {
	c := start(t)
	pod := c.pod("pod", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TWICE", Value: "1"}, {Name: "TWICE", Value: "2"}}
	})
	c.patchStatus("pod", map[string]any{"conditions": []map[string]any{{
		"type": corev1.DisruptionTarget, "status": "True", "reason": "PreemptionByScheduler", "message": "preempted", "lastTransitionTime": metav1.Now(),
	}}})
	c.env.WaitFor(t, "the condition to be taken back", timeout, func(ctx context.Context) (ok bool, err error) {
		pod, err = c.env.Client.CoreV1().Pods(c.ns).Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, cond := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)
		return cond != nil && cond.Status == corev1.ConditionFalse, nil
	})
	_, cond := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)
	if cond.Reason != "" || cond.Message != "" || cond.ObservedGeneration == 0 {
		t.Errorf("condition %+v, want False without a reason", cond)
	}
	if !podutil.IsPodReady(pod) || len(pod.Spec.Containers[0].Env) != 2 {
		t.Errorf("the pod has lost something: %+v", pod)
	}
}
