// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package replicaset runs the replicaset-controller against a real API server.
package replicaset

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "replicaset-controller"
	timeout        = 60 * time.Second
	finalizer      = "example.com/hold"
)

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	framework.Main(m)
}

// start runs the replicaset-controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	sets := replicaset.NewReplicaSetController(c.Ctx, c.Informers.Apps().V1().ReplicaSets(), c.Informers.Core().V1().Pods(),
		c.Client(serviceAccount), replicaset.BurstReplicas)
	c.Run("replicaset-controller", func(ctx context.Context) { sets.Run(ctx, 5) })
	return c
}

// cluster is a namespace of a test's own.
type cluster struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

func newCluster(t *testing.T, env *framework.Env) *cluster {
	t.Helper()
	return &cluster{t: t, env: env, ns: env.Namespace(t, "replicaset")}
}

// kubelet plays two nodes for the Pods of the Env's namespaces.
func kubelet(t *testing.T, env *framework.Env) *fakekubelet.Kubelet {
	t.Helper()
	return env.Kubelet(t, 2, fakekubelet.Options{})
}

// web returns a ReplicaSet "web". Its Pods need no grace: without a kubelet they are
// gone as soon as they are deleted.
func web(replicas int32, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	labels := map[string]string{"app": "web"}
	set := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/web:1"}},
				},
			},
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

func named(name string) func(*apps.ReplicaSet) {
	return func(set *apps.ReplicaSet) { set.Name = name }
}

func (c *cluster) create(set *apps.ReplicaSet) *apps.ReplicaSet {
	c.t.Helper()
	created, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Create(c.t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) scale(name string, replicas int) {
	c.t.Helper()
	c.patchSet(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (c *cluster) patchSet(name, patch string) {
	c.t.Helper()
	_, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) patchPod(name, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		c.t.Fatal(err)
	}
}

// setStatus reports a Pod's status as its kubelet would.
func (c *cluster) setStatus(name string, status corev1.PodStatus) {
	c.t.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	c.patchPod(name, string(data), "status")
}

func readyStatus(since time.Time) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}}
}

// createPod creates a Pod as if from the set's template, with no owner.
func (c *cluster) createPod(name string, set *apps.ReplicaSet, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name = name
	for _, change := range changes {
		change(pod)
	}
	created, err := c.env.Client.CoreV1().Pods(c.ns).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	if err := c.env.Client.CoreV1().Pods(c.ns).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

func (c *cluster) listPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	pods, err := c.listPods(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return pods
}

func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// active returns the names of the set's active Pods.
func active(pods []corev1.Pod, set *apps.ReplicaSet) []string {
	var names []string
	for i := range pods {
		if isActive(&pods[i]) && metav1.IsControlledBy(&pods[i], set) {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// waitActive waits until the set has that many active Pods, and returns their names.
func (c *cluster) waitActive(set *apps.ReplicaSet, want int) []string {
	c.t.Helper()
	var names []string
	c.env.WaitFor(c.t, fmt.Sprintf("%d active pods of %s/%s", want, c.ns, set.Name), timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		if err != nil {
			return false, err
		}
		if names = active(pods, set); len(names) != want {
			return false, fmt.Errorf("there are %v", names)
		}
		return true, nil
	})
	return names
}

// neverOther fails the test when the set has another number of active Pods for a moment.
func (c *cluster) neverOther(set *apps.ReplicaSet, want int, within time.Duration) {
	c.t.Helper()
	c.env.Never(c.t, fmt.Sprintf("another number than %d active pods of %s/%s", want, c.ns, set.Name), within, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return err == nil && len(active(pods, set)) != want, err
	})
}

// waitSet waits until the condition holds for the set, and returns the set.
func (c *cluster) waitSet(name, what string, condition func(*apps.ReplicaSet) bool) *apps.ReplicaSet {
	c.t.Helper()
	var got *apps.ReplicaSet
	c.env.WaitFor(c.t, fmt.Sprintf("replica set %s/%s to have %s", c.ns, name, what), timeout, func(ctx context.Context) (bool, error) {
		set, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = set
		if !condition(set) {
			return false, fmt.Errorf("generation %d, status %+v", set.Generation, set.Status)
		}
		return true, nil
	})
	return got
}

// waitReady waits until that many replicas, and no other, are there and available.
func (c *cluster) waitReady(name string, want int32) *apps.ReplicaSet {
	c.t.Helper()
	return c.waitSet(name, fmt.Sprintf("%d available replicas", want), func(set *apps.ReplicaSet) bool {
		s := set.Status
		return s.Replicas == want && s.FullyLabeledReplicas == want && s.ReadyReplicas == want && s.AvailableReplicas == want &&
			s.ObservedGeneration == set.Generation && s.TerminatingReplicas != nil && *s.TerminatingReplicas == 0
	})
}

// waitEvents waits until the set's events, "type reason message" with the names of Pods
// left out, are there as often as wanted.
func (c *cluster) waitEvents(name string, want map[string]int) {
	c.t.Helper()
	c.env.WaitFor(c.t, "events of replica set "+name, timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ReplicaSet,involvedObject.name=" + name})
		if err != nil {
			return false, err
		}
		got := map[string]int{}
		for _, e := range list.Items {
			if e.Source.Component != "replicaset-controller" || e.InvolvedObject.APIVersion != "apps/v1" {
				return false, fmt.Errorf("event of %s on %s", e.Source.Component, e.InvolvedObject.APIVersion)
			}
			message, pod, ok := strings.Cut(e.Message, " pod: ")
			if ok && pod != "" {
				message += " pod"
			}
			got[fmt.Sprintf("%s %s %s", e.Type, e.Reason, message)] += int(e.Count)
		}
		for text, n := range want {
			if got[text] != n {
				return false, fmt.Errorf("they are %v", got)
			}
		}
		return len(got) == len(want), nil
	})
}

func hasReplicas(want int32) func(*apps.ReplicaSet) bool {
	return func(set *apps.ReplicaSet) bool {
		return set.Status.Replicas == want && set.Status.ObservedGeneration == set.Generation
	}
}
