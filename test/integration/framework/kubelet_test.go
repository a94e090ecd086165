// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package framework_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

func TestKubeletRunsAPodAndEndsItGracefully(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "kubelet")
	env.Kubelet(t, 2, fakekubelet.Options{Termination: time.Hour})
	pods := env.Client.CoreV1().Pods(ns)
	if _, err := pods.Create(t.Context(), newPod("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	env.WaitFor(t, "pod to be ready", timeout, func(ctx context.Context) (ok bool, err error) {
		pod, err = pods.Get(ctx, "a", metav1.GetOptions{})
		return err == nil && condition(pod, corev1.PodReady) == corev1.ConditionTrue, err
	})
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || pod.Status.StartTime == nil || len(pod.Status.PodIPs) != 1 {
		t.Errorf("ready pod's status is %+v", pod.Status)
	}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReadyToStartContainers} {
		if condition(pod, c) != corev1.ConditionTrue {
			t.Errorf("condition %s of a ready pod is %q", c, condition(pod, c))
		}
	}
	if s := pod.Status.ContainerStatuses; len(s) != 1 || !s[0].Ready || s[0].State.Running == nil || s[0].Image != "main:1" {
		t.Errorf("container statuses %+v", s)
	}
	if s := pod.Status.InitContainerStatuses; len(s) != 1 || s[0].State.Terminated == nil || s[0].State.Terminated.ExitCode != 0 {
		t.Errorf("init container statuses %+v", s)
	}

	// Containers that never end by themselves have their grace period.
	mark := env.AuditMark(t)
	isGone := func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}
	began := time.Now()
	if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](2)}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "pod to be gone", timeout, isGone)
	if took := time.Since(began); took < time.Second { // deletionTimestamp has whole seconds only
		t.Errorf("pod with a grace period of 2s was gone after %v", took)
	}
	deletes := env.AuditSince(t, mark).Where(audit.Agent("^"+fakekubelet.UserAgent), audit.Verb("delete"), audit.Namespace(ns))
	if len(deletes) != 1 || !strings.Contains(string(deletes[0].RequestObject.Raw), `"gracePeriodSeconds":0`) {
		t.Errorf("the kubelet's deletes were\n%s", deletes)
	}
}

func TestKubeletHoldsDeletions(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "hold")
	kubelet := env.Kubelet(t, 1, fakekubelet.Options{})
	pods := env.Client.CoreV1().Pods(ns)
	for _, name := range []string{"held", "free"} {
		if _, err := pods.Create(t.Context(), newPod(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	env.WaitFor(t, "pods to run", timeout, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(list.Items) == 2, err
	})
	isGone := func(name string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			_, err := pods.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}
	}
	kubelet.HoldDeletion(func(p *corev1.Pod) bool { return p.Name == "held" })
	for _, name := range []string{"held", "free"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
			t.Fatal(err)
		}
	}
	env.WaitFor(t, "the free pod to be gone", timeout, isGone("free"))
	env.Never(t, "a pod whose deletion is held is gone", 1500*time.Millisecond, isGone("held"))
	kubelet.HoldDeletion(nil)
	env.WaitFor(t, "the held pod to be gone", timeout, isGone("held"))
}

func TestKubeletOutcomes(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "outcomes")
	kubelet := env.Kubelet(t, 1, fakekubelet.Options{})
	pods := env.Client.CoreV1().Pods(ns)
	named := func(name string) func(*corev1.Pod) bool { return func(p *corev1.Pod) bool { return p.Name == name } }
	kubelet.Set(fakekubelet.NotReady, named("notready"))
	kubelet.Set(fakekubelet.Waiting, named("waiting"))
	kubelet.Set(fakekubelet.Succeeded, named("succeeded"))
	kubelet.Set(fakekubelet.Failed, named("failed"))
	gated := newPod("gated")
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	for _, pod := range []*corev1.Pod{newPod("notready"), newPod("waiting"), newPod("succeeded"), newPod("failed"), gated} {
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name string, phase corev1.PodPhase, ready, containersReady corev1.ConditionStatus) {
		t.Helper()
		env.WaitFor(t, fmt.Sprintf("pod %s to be %s, ready %s, containers ready %s", name, phase, ready, containersReady), timeout, func(ctx context.Context) (bool, error) {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Status.Phase == phase && condition(pod, corev1.PodReady) == ready &&
				condition(pod, corev1.ContainersReady) == containersReady, err
		})
	}
	expect("notready", corev1.PodRunning, corev1.ConditionFalse, corev1.ConditionFalse)
	expect("waiting", corev1.PodPending, corev1.ConditionFalse, corev1.ConditionFalse)
	expect("succeeded", corev1.PodSucceeded, corev1.ConditionFalse, corev1.ConditionFalse)
	expect("failed", corev1.PodFailed, corev1.ConditionFalse, corev1.ConditionFalse)
	expect("gated", corev1.PodRunning, corev1.ConditionFalse, corev1.ConditionTrue)

	kubelet.Set(fakekubelet.Ready, nil) // the last word counts, but an end is an end
	expect("notready", corev1.PodRunning, corev1.ConditionTrue, corev1.ConditionTrue)
	expect("waiting", corev1.PodRunning, corev1.ConditionTrue, corev1.ConditionTrue)
	expect("failed", corev1.PodFailed, corev1.ConditionFalse, corev1.ConditionFalse)

	patch := []byte(`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`)
	if _, err := pods.Patch(t.Context(), "gated", "application/strategic-merge-patch+json", patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	expect("gated", corev1.PodRunning, corev1.ConditionTrue, corev1.ConditionTrue)
}

func TestKubeletKeepsItsNodesAlive(t *testing.T) {
	env := framework.New(t)
	kubelet := env.Kubelet(t, 0, fakekubelet.Options{Nodes: []string{"alive"}, LeaseDuration: 400 * time.Millisecond})
	renewed := func(ctx context.Context) (time.Time, error) {
		lease, err := env.Client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "alive", metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		return lease.Spec.RenewTime.Time, nil
	}
	renewedAfter := func(before *time.Time) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			at, err := renewed(ctx)
			return err == nil && at.After(*before), err
		}
	}
	first, err := renewed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "lease to be renewed", timeout, renewedAfter(&first))
	node, err := env.Client.CoreV1().Nodes().Get(t.Context(), "alive", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("node is tainted: %v", node.Spec.Taints)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			t.Errorf("node is not ready: %+v", c)
		}
	}
	kubelet.Silence("alive", true)
	var silent time.Time
	env.WaitFor(t, "a beat in flight to end", timeout, func(ctx context.Context) (bool, error) {
		before := silent
		silent, err = renewed(ctx)
		return err == nil && silent.Equal(before), err
	})
	env.Never(t, "a silent node renewed its lease", time.Second, renewedAfter(&silent))
	kubelet.Silence("alive", false)
	env.WaitFor(t, "lease to be renewed again", timeout, renewedAfter(&silent))
}

func TestKubeletCopesWithManyPods(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "many")
	env.Kubelet(t, 5, fakekubelet.Options{})
	pods := env.Client.CoreV1().Pods(ns)
	const n = 500
	for i := range n {
		if _, err := pods.Create(t.Context(), newPod(fmt.Sprintf("p-%d", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(ctx context.Context, selects func(*corev1.Pod) bool) (int, error) {
		list, err := pods.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		found := 0
		for i := range list.Items {
			if selects(&list.Items[i]) {
				found++
			}
		}
		return found, nil
	}
	env.WaitFor(t, "500 pods to be ready", time.Minute, func(ctx context.Context) (bool, error) {
		ready, err := count(ctx, func(p *corev1.Pod) bool { return condition(p, corev1.PodReady) == corev1.ConditionTrue })
		return ready == n, err
	})
	perNode := map[string]int{}
	if _, err := count(t.Context(), func(p *corev1.Pod) bool { perNode[p.Spec.NodeName]++; return true }); err != nil {
		t.Fatal(err)
	}
	for node, got := range perNode {
		if got < n/5-10 || got > n/5+10 { // a binding that is tried again takes another turn
			t.Errorf("node %s has %d pods of %d on 5 nodes", node, got, n)
		}
	}
	mark := env.AuditMark(t)
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "all pods to be gone", time.Minute, func(ctx context.Context) (bool, error) {
		left, err := count(ctx, func(*corev1.Pod) bool { return true })
		return left == 0, err
	})
	deletes := env.AuditSince(t, mark).Where(audit.Agent("^"+fakekubelet.UserAgent), audit.Verb("delete"), audit.Namespace(ns))
	if len(deletes) != n || len(deletes.Where(audit.Code(200))) != n {
		t.Errorf("the kubelet's deletes of %d pods were\n%s", n, deletes)
	}
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}
