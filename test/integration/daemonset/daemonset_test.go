// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package daemonset runs the daemonset-controller against a real API server.
package daemonset

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/flowcontrol"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/daemon"
	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "daemon-set-controller"
	timeout        = 90 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// cluster is a namespace and nodes of a test's own, with a controller.
type cluster struct {
	t       *testing.T
	env     *framework.Env
	ns      string
	kubelet *fakekubelet.Kubelet
}

// start runs the controller as the manager does, over so many nodes that are labelled test=<namespace>.
// The DaemonSet of a test selects those, since tests share the cluster.
func start(t *testing.T, nodes int) *cluster {
	t.Helper()
	env := framework.New(t)
	c := env.Controllers(t, framework.ControllersOptions{})
	core, apps := c.Informers.Core().V1(), c.Informers.Apps().V1()
	dsc, err := daemon.NewDaemonSetsController(c.Ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		c.Client(serviceAccount), flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	c.Run("daemonset-controller", func(ctx context.Context) { dsc.Run(ctx, 2) })
	cl := &cluster{t: t, env: env, ns: env.Namespace(t, "daemonset")}
	// The kubelet plays the scheduler, too: each Pod says by its affinity where it belongs.
	cl.kubelet = env.Kubelet(t, nodes, fakekubelet.Options{
		Binds: func(pod *corev1.Pod) bool { return pod.Namespace == cl.ns },
		Place: func(pod *corev1.Pod) string {
			node, err := util.GetTargetNodeName(pod)
			if err != nil {
				return ""
			}
			return node
		},
	})
	for _, node := range cl.nodes() {
		cl.patchNode(node, fmt.Sprintf(`{"metadata":{"labels":{"test":%q}}}`, cl.ns))
	}
	return cl
}

// nodes returns the names of the kubelet's nodes: those there are.
func (c *cluster) nodes() []string {
	c.t.Helper()
	list, err := c.env.Client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names
}

func (c *cluster) patchNode(name, patch string) {
	c.t.Helper()
	if _, err := c.env.Client.CoreV1().Nodes().Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) create(changes ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	c.t.Helper()
	labels := map[string]string{"app": "agent"}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"test": c.ns},
					Containers:   []corev1.Container{{Name: "main", Image: "example.com/agent:1"}},
				},
			},
		},
	}
	for _, change := range changes {
		change(ds)
	}
	ds, err := c.env.Client.AppsV1().DaemonSets(c.ns).Create(c.t.Context(), ds, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return ds
}

func (c *cluster) patch(patch string) {
	c.t.Helper()
	_, err := c.env.Client.AppsV1().DaemonSets(c.ns).Patch(c.t.Context(), "agent", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) setImage(image string) {
	c.t.Helper()
	c.patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

func (c *cluster) waitStatus(what string, ok func(appsv1.DaemonSetStatus) bool) {
	c.t.Helper()
	c.env.WaitFor(c.t, what, timeout, func(ctx context.Context) (bool, error) {
		ds, err := c.env.Client.AppsV1().DaemonSets(c.ns).Get(ctx, "agent", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if ds.Status.ObservedGeneration != ds.Generation || !ok(ds.Status) {
			return false, fmt.Errorf("it is %+v", ds.Status)
		}
		return true, nil
	})
}

// waitComplete waits until n nodes have an available Pod of the current template.
func (c *cluster) waitComplete(n int32) {
	c.t.Helper()
	c.waitStatus(fmt.Sprintf("%d updated and available pods", n), func(s appsv1.DaemonSetStatus) bool {
		return s.DesiredNumberScheduled == n && s.UpdatedNumberScheduled == n && s.NumberAvailable == n && s.NumberUnavailable == 0
	})
}

// pods returns the DaemonSet's Pods by node.
func (c *cluster) pods(ctx context.Context) map[string]*corev1.Pod {
	c.t.Helper()
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=agent"})
	if err != nil {
		c.t.Fatal(err)
	}
	byNode := map[string]*corev1.Pod{}
	for i := range list.Items {
		byNode[list.Items[i].Spec.NodeName] = &list.Items[i]
	}
	return byNode
}

func (c *cluster) sent(mark audit.Mark, verb, res string) int {
	c.t.Helper()
	n := 0
	for _, e := range c.env.AuditSince(c.t, mark).Where(audit.ServiceAccount(serviceAccount)) {
		if e.Verb == verb && e.ObjectRef != nil && e.ObjectRef.Resource == res {
			n++
		}
	}
	return n
}

// A roll-out sends the requests that it needs: a deletion and a creation for each Pod.
func TestLife(t *testing.T) {
	const nodes = 3
	c := start(t, nodes)
	mark := c.env.AuditMark(t)
	c.create()
	c.waitComplete(nodes)
	if n := c.sent(mark, "create", "pods"); n != nodes {
		t.Errorf("%d pods created", n)
	}

	mark = c.env.AuditMark(t)
	c.setImage("example.com/agent:2")
	c.waitComplete(nodes)
	for _, pod := range c.pods(t.Context()) {
		if pod.Spec.Containers[0].Image != "example.com/agent:2" {
			t.Errorf("pod %s has image %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	if created, deleted := c.sent(mark, "create", "pods"), c.sent(mark, "delete", "pods"); created != nodes || deleted != nodes {
		t.Errorf("%d creations and %d deletions, want %d of each", created, deleted, nodes)
	}

	// Nodes come and go by label, taint and deletion.
	node := c.nodes()[0]
	c.patchNode(node, `{"metadata":{"labels":{"test":"none"}}}`)
	c.waitComplete(nodes - 1)
	c.patchNode(node, fmt.Sprintf(`{"metadata":{"labels":{"test":%q}}}`, c.ns))
	c.waitComplete(nodes)
	c.patchNode(node, `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`)
	c.waitComplete(nodes - 1)
	c.patchNode(node, `{"spec":{"taints":null}}`)
	c.waitComplete(nodes)

	revisions, err := c.env.Client.AppsV1().ControllerRevisions(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(revisions.Items) != 2 {
		t.Fatalf("%d revisions, %v", len(revisions.Items), err)
	}
	mark = c.env.AuditMark(t)
	c.env.Never(t, "a request at rest", 2*time.Second, func(context.Context) (bool, error) { return false, nil })
	if sent := c.env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount)); len(sent) > 0 {
		t.Errorf("requests at rest:\n%v", sent)
	}
}

func TestOnDelete(t *testing.T) {
	c := start(t, 2)
	c.create(func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
	c.waitComplete(2)
	c.setImage("example.com/agent:2")
	c.waitStatus("no updated pod", func(s appsv1.DaemonSetStatus) bool { return s.UpdatedNumberScheduled == 0 && s.NumberAvailable == 2 })
	for _, pod := range c.pods(t.Context()) {
		if err := c.env.Client.CoreV1().Pods(c.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.waitComplete(2)
}

// With a surge every node has an available Pod all the time.
func TestSurge(t *testing.T) {
	const nodes = 3
	c := start(t, nodes)
	c.create(func(ds *appsv1.DaemonSet) {
		zero, one := intstr.Parse("0"), intstr.Parse("1")
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &zero, MaxSurge: &one}
	})
	c.waitComplete(nodes)
	fewest := c.watchReady(nodes)
	c.setImage("example.com/agent:2")
	c.waitComplete(nodes)
	if got := fewest(); got < nodes {
		t.Errorf("at one time only %d nodes had a ready pod", got)
	}
}

// BC010, kubernetes/kubernetes#112127: a quota that refuses Pods hides no status.
func TestQuota(t *testing.T) {
	c := start(t, 3)
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quota, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	if _, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	mark := c.env.AuditMark(t)
	c.create()
	c.waitStatus("the status", func(s appsv1.DaemonSetStatus) bool {
		return s.DesiredNumberScheduled == 3 && s.CurrentNumberScheduled == 0
	})
	c.env.WaitFor(t, "the event", timeout, func(ctx context.Context) (bool, error) {
		events, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
		return err == nil && len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "exceeded quota"), err
	})
	if n := c.sent(mark, "create", "pods"); n > 15 {
		t.Errorf("%d attempts, want a slow start and back-off", n)
	}
	if err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitComplete(3)
}

// BC012, kubernetes/kubernetes#123233: Pods that are unavailable anyway use the budget up, and go first.
func TestUnavailablePodsUseTheBudgetUp(t *testing.T) {
	const nodes = 4
	c := start(t, nodes)
	c.create()
	c.waitComplete(nodes)
	sick := c.nodes()[2]
	c.kubelet.Set(fakekubelet.NotReady, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == sick })
	c.waitStatus("an unavailable pod", func(s appsv1.DaemonSetStatus) bool { return s.NumberUnavailable == 1 })
	before := c.pods(t.Context())
	fewest := c.watchReady(nodes - 1)
	c.setImage("example.com/agent:2")
	c.env.WaitFor(t, "the unavailable pod to be replaced", timeout, func(context.Context) (bool, error) {
		pod := c.pods(t.Context())[sick]
		return pod != nil && pod.UID != before[sick].UID, nil
	})
	c.env.Never(t, "a ready pod is deleted while one is unavailable", 2*time.Second, func(context.Context) (bool, error) {
		now := c.pods(t.Context())
		for node, pod := range before {
			if node != sick && (now[node] == nil || now[node].UID != pod.UID) {
				return true, nil
			}
		}
		return false, nil
	})
	c.kubelet.Set(fakekubelet.Ready, nil)
	c.waitComplete(nodes)
	if got := fewest(); got < nodes-1 {
		t.Errorf("at one time only %d nodes had a ready pod", got)
	}
}

// BC013, kubernetes/kubernetes#63465: a Pod that cannot go takes its part of the budget and no more.
func TestStuckPodDoesNotBlockOthers(t *testing.T) {
	c := start(t, 3)
	c.create(func(ds *appsv1.DaemonSet) {
		two := intstr.Parse("2")
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &two}
	})
	c.waitComplete(3)
	stuck := c.pods(t.Context())[c.nodes()[0]]
	// Its node is gone, so nobody ends it. (A Pod that has ended and that a finalizer holds is replaced.)
	c.kubelet.HoldDeletion(func(pod *corev1.Pod) bool { return pod.UID == stuck.UID })
	c.setImage("example.com/agent:2")
	c.waitStatus("the two others", func(s appsv1.DaemonSetStatus) bool { return s.UpdatedNumberScheduled >= 2 && s.NumberAvailable >= 2 })
	if pod := c.pods(t.Context())[stuck.Spec.NodeName]; pod == nil || pod.UID != stuck.UID || pod.DeletionTimestamp == nil {
		t.Errorf("the stuck pod is %+v", pod)
	}
	c.kubelet.HoldDeletion(nil)
	c.waitComplete(3)
}

// watchReady returns a func that ends the watch and returns the smallest number of nodes with a ready Pod
// that is not being deleted.
func (c *cluster) watchReady(now int) func() int {
	c.t.Helper()
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	w, err := c.env.Client.CoreV1().Pods(c.ns).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	ready := map[types.UID]string{}
	note := func(pod *corev1.Pod, gone bool) {
		delete(ready, pod.UID)
		if !gone && pod.DeletionTimestamp == nil && podutil.IsPodReady(pod) {
			ready[pod.UID] = pod.Spec.NodeName
		}
	}
	for i := range list.Items {
		note(&list.Items[i], false)
	}
	done := make(chan int, 1)
	go func() {
		fewest := now
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue // the watch's end
			}
			note(pod, event.Type == "DELETED")
			nodes := map[string]bool{}
			for _, node := range ready {
				nodes[node] = true
			}
			fewest = min(fewest, len(nodes))
		}
		done <- fewest
	}()
	c.t.Cleanup(cancel)
	return func() int {
		w.Stop()
		return <-done
	}
}
