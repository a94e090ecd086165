// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package podgc runs the pod-garbage-collector-controller against a real API server.
package podgc

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/podgc"
	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

const (
	serviceAccount = "pod-garbage-collector"
	finalizer      = "example.com/hold"
	timeout        = 60 * time.Second
	period         = 500 * time.Millisecond
	quarantine     = time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// cluster is a namespace of a test's own, with a controller.
type cluster struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

// start runs the controller as the manager does, but quicker.
func start(t *testing.T, threshold int) *cluster {
	t.Helper()
	env := framework.New(t)
	c := env.Controllers(t, framework.ControllersOptions{})
	gc := podgc.NewPodGCInternal(c.Ctx, c.Client(serviceAccount), c.Informers.Core().V1().Pods(), c.Informers.Core().V1().Nodes(),
		threshold, period, quarantine)
	c.Run("pod-garbage-collector-controller", gc.Run)
	return &cluster{t: t, env: env, ns: env.Namespace(t, "podgc")}
}

// node creates a node that no kubelet cares for.
func (c *cluster) node(name string, ready corev1.ConditionStatus) {
	c.t.Helper()
	nodes := c.env.Client.CoreV1().Nodes()
	node, err := nodes.Create(c.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.deleteNode(context.WithoutCancel(c.t.Context()), name) })
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if _, err := nodes.UpdateStatus(c.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) deleteNode(ctx context.Context, name string) {
	c.t.Helper()
	if err := c.env.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

func (c *cluster) taint(name string) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"value":"nodeshutdown","effect":"NoExecute"}]}}`, corev1.TaintNodeOutOfService)
	if _, err := c.env.Client.CoreV1().Nodes().Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// pod creates a Pod on a node ("": none) with a phase.
func (c *cluster) pod(name, node string, phase corev1.PodPhase, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/pod:1"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	pod, err := c.env.Client.CoreV1().Pods(c.ns).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"status": map[string]any{"phase": phase}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func held(pod *corev1.Pod) { pod.Finalizers = []string{finalizer} }

func (c *cluster) delete(name string) {
	c.t.Helper()
	if err := c.env.Client.CoreV1().Pods(c.ns).Delete(c.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(300))}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) release(name string) {
	c.t.Helper()
	_, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) waitGone(name string) {
	c.t.Helper()
	c.env.WaitFor(c.t, "pod "+name+" to be gone", timeout, func(ctx context.Context) (bool, error) {
		_, err := c.env.Client.CoreV1().Pods(c.ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// waitForced waits until a Pod that a finalizer holds was force-deleted.
func (c *cluster) waitForced(name string) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	c.env.WaitFor(c.t, "pod "+name+" to be force-deleted", timeout, func(ctx context.Context) (ok bool, err error) {
		pod, err = c.env.Client.CoreV1().Pods(c.ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds == 0, err
	})
	return pod
}

// stays fails the test when one of the Pods is touched within a few passes.
func (c *cluster) stays(names ...string) {
	c.t.Helper()
	c.env.Never(c.t, fmt.Sprintf("a pod of %v was deleted", names), 5*period, func(ctx context.Context) (bool, error) {
		for _, name := range names {
			pod, err := c.env.Client.CoreV1().Pods(c.ns).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && (pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds == 0) {
				return true, nil
			}
		}
		return false, nil
	})
}

func (c *cluster) counted(reason string) float64 {
	c.t.Helper()
	value, err := testutil.GetCounterMetricValue(metrics.DeletingPodsTotal.WithLabelValues(c.ns, reason))
	if err != nil {
		c.t.Fatal(err)
	}
	return value
}

// The Pods of a node that is gone fail with a condition and go; finalizers hold them.
func TestPodGcOrphanedPodsWithFinalizer(t *testing.T) {
	for _, tc := range []struct {
		phase, want corev1.PodPhase
		condition   bool
	}{
		{corev1.PodPending, corev1.PodFailed, true},
		{corev1.PodRunning, corev1.PodFailed, true},
		{corev1.PodSucceeded, corev1.PodSucceeded, false},
		{corev1.PodFailed, corev1.PodFailed, false},
	} {
		t.Run(string(tc.phase), func(t *testing.T) {
			c := start(t, 0)
			c.node(c.ns, corev1.ConditionTrue)
			c.pod("pod", c.ns, tc.phase, held)
			c.deleteNode(t.Context(), c.ns)
			pod := c.waitForced("pod")
			if pod.Status.Phase != tc.want {
				t.Errorf("phase %s, want %s", pod.Status.Phase, tc.want)
			}
			_, condition := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)
			if (condition != nil) != tc.condition {
				t.Fatalf("condition %+v, want one = %t", condition, tc.condition)
			}
			if tc.condition && (condition.Status != corev1.ConditionTrue || condition.Reason != "DeletionByPodGC" || condition.Message != "PodGC: node no longer exists" ||
				condition.ObservedGeneration == 0 || pod.Status.ObservedGeneration == 0) {
				t.Errorf("condition %+v of a status of generation %d", condition, pod.Status.ObservedGeneration)
			}
			// What is done is not done again.
			mark := c.env.AuditMark(t)
			c.env.Never(t, "a request", 4*period, func(context.Context) (bool, error) { return false, nil })
			if again := c.env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount)); len(again) > 0 {
				t.Errorf("requests for a pod that only its finalizer holds:\n%v", again)
			}
			if got := c.counted(metrics.PodGCReasonOrphaned); got != 1 {
				t.Errorf("%v pods counted, want 1", got)
			}
			c.release("pod")
			c.waitGone("pod")
		})
	}
}

// A node that comes back in the quarantine keeps its Pods, and so does one that never left.
func TestQuarantine(t *testing.T) {
	c := start(t, 0)
	c.node(c.ns, corev1.ConditionTrue)
	c.pod("pod", c.ns, corev1.PodRunning)
	c.deleteNode(t.Context(), c.ns)
	c.node(c.ns, corev1.ConditionTrue)
	c.stays("pod")
}

// Pods in deletion go when their node is out of service (KEP-2268), and not before.
func TestTerminatingOnOutOfServiceNode(t *testing.T) {
	c := start(t, 0)
	down, up := c.ns+"-down", c.ns+"-up"
	c.node(down, corev1.ConditionFalse)
	c.node(up, corev1.ConditionTrue)
	c.taint(up)
	c.pod("deleted", down, corev1.PodRunning)
	c.pod("held", down, corev1.PodRunning, held)
	c.pod("running", down, corev1.PodRunning)
	c.pod("on-ready-node", up, corev1.PodRunning)
	for _, name := range []string{"deleted", "held", "on-ready-node"} {
		c.delete(name)
	}
	c.stays("deleted", "held", "running", "on-ready-node")
	c.taint(down)
	c.waitGone("deleted")
	if pod := c.waitForced("held"); pod.Status.Phase != corev1.PodFailed {
		t.Errorf("phase %s, want Failed", pod.Status.Phase)
	}
	c.stays("running", "on-ready-node")
	if got := c.counted(metrics.PodGCReasonTerminatingOutOfService); got != 2 {
		t.Errorf("%v pods counted, want 2", got)
	}
	c.release("held")
}

// A Pod with an environment variable, or a port, twice is no obstacle (kubernetes/kubernetes#118261).
func TestPodGcForPodsWithDuplicatedFieldKeys(t *testing.T) {
	for name, duplicate := range map[string]func(*corev1.Container){
		"env": func(container *corev1.Container) {
			container.Env = []corev1.EnvVar{{Name: "X", Value: "1"}, {Name: "X", Value: "2"}}
		},
		"ports": func(container *corev1.Container) {
			container.Ports = []corev1.ContainerPort{{ContainerPort: 93, HostPort: 9376}, {ContainerPort: 93, HostPort: 9377}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 0)
			c.pod("pod", c.ns+"-gone", corev1.PodRunning, held, func(pod *corev1.Pod) { duplicate(&pod.Spec.Containers[0]) })
			pod := c.waitForced("pod")
			if _, condition := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget); condition == nil || pod.Status.Phase != corev1.PodFailed {
				t.Errorf("status %+v", pod.Status)
			}
			c.release("pod")
		})
	}
}

func TestUnscheduledTerminating(t *testing.T) {
	c := start(t, 0)
	c.pod("waiting", "", corev1.PodPending)
	c.pod("deleted", "", corev1.PodPending, held)
	c.delete("deleted")
	// The API server gives a Pod without a node no grace, so that alone tells nothing.
	c.env.WaitFor(t, "the pod in deletion to fail", timeout, func(ctx context.Context) (bool, error) {
		pod, err := c.env.Client.CoreV1().Pods(c.ns).Get(ctx, "deleted", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodFailed, err
	})
	c.stays("waiting")
	c.release("deleted")
	c.waitGone("deleted")
	if got := c.counted(metrics.PodGCReasonTerminatingUnscheduled); got != 1 {
		t.Errorf("%v pods counted, want 1", got)
	}
}

func TestTerminatedBeyondTheThreshold(t *testing.T) {
	c := start(t, 3)
	c.node(c.ns, corev1.ConditionTrue)
	for i := range 6 {
		c.pod(fmt.Sprintf("done-%d", i), c.ns, corev1.PodSucceeded)
	}
	c.pod("running", c.ns, corev1.PodRunning)
	c.env.WaitFor(t, "three finished pods", timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 4, err
	})
	c.env.Never(t, "less than three finished pods", 4*period, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) < 4, err
	})
	c.stays("running")
}
