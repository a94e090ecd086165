// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// startBehindProxy starts a manager that reaches the API server through a fault proxy.
func startBehindProxy(t *testing.T, env *framework.Env) (*framework.Manager, *faultproxy.Proxy) {
	t.Helper()
	env.ReleaseLease(t)
	proxy := env.Proxy(t, "")
	m := env.StartManager(t, framework.ManagerOptions{Args: []string{"--kubeconfig=" + proxyKubeconfig(t, env, proxy)}})
	waitForControllers(t, env, m)
	return m, proxy
}

// TestEveryFaultEndsInTheSameState has a Deployment rolled out while the
// requests of the controllers meet one kind of fault. The outcome is always
// the same: as many ready pods as asked for, two ReplicaSets, and nothing else.
func TestEveryFaultEndsInTheSameState(t *testing.T) {
	env := framework.New(t)
	_, proxy := startBehindProxy(t, env)
	notElection := regexp.MustCompile(`^/(api|apis)/(core|apps|v1)`)
	writes := faultproxy.Match{Verbs: faultproxy.WriteVerbs(), Path: notElection}
	creates := faultproxy.Match{Verbs: []string{"create"}, Path: notElection}
	tests := []struct {
		name  string
		rules []faultproxy.Rule
		// lost: nobody can know whether a create whose answer is lost has been carried
		// out, so a pod too many may be made, and is deleted again.
		lost bool
	}{
		{name: "none"},
		{name: "writes are carried out but the answer is lost", rules: []faultproxy.Rule{{Match: writes, Drop: faultproxy.DropAfter, Times: 10}}, lost: true},
		{name: "creates are carried out but the connection is cut", rules: []faultproxy.Rule{{Match: creates, Drop: faultproxy.DropAfter, CutConnection: true, Times: 3}}, lost: true},
		{name: "writes are lost", rules: []faultproxy.Rule{{Match: writes, Drop: faultproxy.DropBefore, Times: 10}}},
		{name: "conflicts", rules: []faultproxy.Rule{{Match: faultproxy.Match{Verbs: []string{"update", "patch"}, Path: notElection}, Status: 409, Times: 10}}},
		{name: "server errors", rules: []faultproxy.Rule{{Match: writes, Status: 500, Times: 10}}},
		{name: "overload", rules: []faultproxy.Rule{{Match: writes, Status: 429, RetryAfter: time.Second, Times: 5}}},
		{name: "unavailable", rules: []faultproxy.Rule{{Match: writes, Status: 503, Times: 10}}},
		{name: "slow server", rules: []faultproxy.Rule{{Match: writes, Delay: 200 * time.Millisecond, Times: 20}}},
		{name: "late events", rules: []faultproxy.Rule{{Match: faultproxy.Match{Path: regexp.MustCompile("/(pods|replicasets|deployments)$")}, EventDelay: 100 * time.Millisecond}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := framework.New(t)
			ns := env.Namespace(t, "faults")
			env.Kubelet(t, 2, fakekubelet.Options{})
			for _, rule := range tt.rules {
				active := proxy.Add(rule)
				t.Cleanup(func() {
					active.Remove()
					if active.Hits()+active.Events() == 0 {
						t.Error("the fault met no request")
					}
				})
			}
			created := countPods(t, env, ns)
			if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web", 5), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			waitForReady(t, env, ns, 5)
			patchDeployment(t, env, ns, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"main:2"}]}}}}`)
			waitForReady(t, env, ns, 5)
			checkWeb(t, env, ns, 5)
			if n := created(); n != 10 && !tt.lost {
				t.Errorf("%d pods were created, want 5 and again 5 for the new template", n)
			}
		})
	}
}

// checkWeb fails unless the namespace holds the Deployment's pods, two ReplicaSets and no pod too many.
func checkWeb(t *testing.T, env *framework.Env, ns string, replicas int) {
	t.Helper()
	env.WaitFor(t, "old pods to be gone", timeout, func(ctx context.Context) (bool, error) {
		pods, err := env.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		if len(pods.Items) != replicas {
			return false, fmt.Errorf("%d pods", len(pods.Items))
		}
		for _, pod := range pods.Items {
			if pod.Spec.Containers[0].Image != "main:2" || pod.Status.Phase != corev1.PodRunning {
				return false, fmt.Errorf("pod %s runs %s, is %s", pod.Name, pod.Spec.Containers[0].Image, pod.Status.Phase)
			}
		}
		return true, nil
	})
	sets, err := env.Client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sets.Items) != 2 {
		t.Errorf("%d replica sets, want 2", len(sets.Items))
	}
}

// countPods counts the pods that are created in a namespace from now on, until
// the end of the test.
func countPods(t *testing.T, env *framework.Env, ns string) func() int {
	t.Helper()
	pods, err := env.Client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range pods.ResultChan() {
			if event.Type == watch.Added {
				count.Add(1)
			}
		}
	}()
	t.Cleanup(func() { pods.Stop(); <-done })
	return func() int { return int(count.Load()) }
}

// TestManagerOutlivesTheAPIServer takes the API server away for a while.
func TestManagerOutlivesTheAPIServer(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env, "--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s")
	ns := env.Namespace(t, "outage")
	if err := env.ControlPlane.StopComponent(controlplane.ComponentAPIServer); err != nil {
		t.Fatal(err)
	}
	if err := env.ControlPlane.StartComponent(t.Context(), controlplane.ComponentAPIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("after", 3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "after", 3)
	if !m.Running() {
		t.Error("the manager ended")
	}
}

// TestStaleCachesDoNotMakeTooManyPods keeps the events of new pods from the
// manager: what it does not see it must not create again.
func TestStaleCachesDoNotMakeTooManyPods(t *testing.T) {
	env := framework.New(t)
	_, proxy := startBehindProxy(t, env)
	ns := env.Namespace(t, "stale")
	rule := proxy.Add(faultproxy.Rule{
		WithholdEvents: true,
		Match:          faultproxy.Match{Verbs: []string{"watch"}, Path: regexp.MustCompile("^/api/v1/pods$")},
	})
	created := countPods(t, env, ns)
	if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web", 5), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "five pods to be created", timeout, func(context.Context) (bool, error) { return created() == 5, nil })
	// Each change of the Deployment has both controllers look again.
	for i := range 20 {
		patchDeployment(t, env, ns, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/turn":"%d"}}}`, i))
	}
	env.Never(t, "pods were created twice", 2*time.Second, func(context.Context) (bool, error) { return created() > 5, nil })
	if rule.Events() == 0 {
		t.Error("no event was withheld")
	}
	rule.Remove()
	waitForRollout(t, env, env.Client, ns, "web", 5)
	if n := created(); n != 5 {
		t.Errorf("%d pods were created, want 5", n)
	}
}
