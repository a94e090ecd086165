// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// most is how many requests a row may have where upstream sent n. A few more
// are chance in either binary: whether two changes fall into one sync or into two.
func most(n int) int { return n + max(3, n/5) }

// TestNoMoreRequestsThanUpstream takes the same objects through the same life
// under upstream's binary and under ours, and compares, from the audit log, what
// each controller's service account asked of the API server.
func TestNoMoreRequestsThanUpstream(t *testing.T) {
	env := framework.New(t)
	upstream := requestsOf(t, env, "kcm-upstream", env.UpstreamManager(t))
	ours := requestsOf(t, env, "kcm-ours", "")

	rows := maps.Clone(upstream)
	maps.Copy(rows, ours)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	totals := map[string][2]int{}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		account, _, _ := strings.Cut(row, "\t")
		total := totals[account]
		totals[account] = [2]int{total[0] + upstream[row], total[1] + ours[row]}
		note := ""
		if ours[row] > most(upstream[row]) {
			note = "← more"
			t.Errorf("%s: upstream sent %d, ours %d", strings.ReplaceAll(row, "\t", " "), upstream[row], ours[row])
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", row, upstream[row], ours[row], note)
	}
	for account, total := range totals {
		if total[1] > most(total[0]) {
			t.Errorf("%s: upstream sent %d requests in all, ours %d", account, total[0], total[1])
		}
	}
	_ = w.Flush() // into memory
	t.Logf("requests per controller: upstream, ours\n%s", table.String())
}

// requestsOf runs the scenario under one manager and counts its controllers' requests.
func requestsOf(t *testing.T, env *framework.Env, name, binary string) map[string]int {
	t.Helper()
	var counts map[string]int
	ok := t.Run(name, func(t *testing.T) {
		env := framework.New(t)
		env.ReleaseLease(t)
		args := slices.DeleteFunc(env.ControlPlane.ManagerArgs(), func(arg string) bool {
			return strings.HasPrefix(arg, "--controllers=") // a second --controllers would add to it
		})
		// Both at full speed: what a client-side limit holds up is merged into fewer requests.
		args = append(args, "--controllers="+strings.Join(builtControllers(), ","), "--kube-api-qps=1000", "--kube-api-burst=1000")
		began := time.Now()
		m := env.StartManager(t, framework.ManagerOptions{Name: name, Binary: binary, BareArgs: true, Args: args})
		waitForControllers(t, env, m)
		t.Logf("%s was up after %v", name, time.Since(began).Round(time.Millisecond))
		mark := env.AuditMark(t)
		began = time.Now()
		liveOfOneNamespace(t, env)
		t.Logf("%s took the scenario through in %v", name, time.Since(began).Round(time.Millisecond))
		counts = env.AuditSince(t, mark).
			Where(audit.Agent("^"+name+"/"), audit.Not(audit.Verb("watch")), isControllersRequest).
			Count(func(e audit.Event) string {
				return strings.TrimPrefix(e.User.Username, "system:serviceaccount:kube-system:") + "\t" + e.Verb + "\t" + e.Resource()
			})
	})
	if !ok {
		t.FailNow()
	}
	return counts
}

// isControllersRequest selects what controllers do, and leaves out elections and reviews.
func isControllersRequest(e audit.Event) bool {
	if e.User.Username == controlplane.ManagerUser {
		return e.Resource() == "secrets" // the token controller
	}
	return strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:")
}

// liveOfOneNamespace gives each of the six controllers its usual work.
func liveOfOneNamespace(t *testing.T, env *framework.Env) {
	t.Helper()
	ns := env.BareNamespace(t, "traffic")
	env.Kubelet(t, 3, fakekubelet.Options{})
	core, apps := env.Client.CoreV1(), env.Client.AppsV1()
	env.WaitFor(t, "default service account", timeout, exists(func() error {
		_, err := core.ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}))
	env.WaitFor(t, "root CA", timeout, exists(func() error {
		_, err := core.ConfigMaps(ns).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err
	}))

	if _, err := core.Secrets(ns).Create(t.Context(), tokenSecret("token", "default"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "token in the secret", timeout, hasToken(env, ns, "token"))

	if _, err := apps.Deployments(ns).Create(t.Context(), newDeployment("web", 3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForReady(t, env, ns, 3)
	patchDeployment(t, env, ns, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"main:2"}]}}}}`)
	waitForReady(t, env, ns, 3)
	patchDeployment(t, env, ns, `{"spec":{"replicas":6}}`)
	waitForReady(t, env, ns, 6)
	patchDeployment(t, env, ns, `{"spec":{"replicas":2}}`)
	waitForReady(t, env, ns, 2)
	patchDeployment(t, env, ns, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"main:1"}]}}}}`)
	waitForReady(t, env, ns, 2)

	// A ReplicaSet that finds one of its pods there already.
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: map[string]string{"app": "adopt"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
	}
	if _, err := core.Pods(ns).Create(t.Context(), orphan, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "adopt"}}
	set.Spec.Template = newDeployment("adopt", 0).Spec.Template
	set.Spec.Selector = newDeployment("adopt", 0).Spec.Selector
	set.Spec.Replicas = new(int32)
	*set.Spec.Replicas = 2
	if _, err := apps.ReplicaSets(ns).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "replica set to be ready", timeout, func(ctx context.Context) (bool, error) {
		set, err := apps.ReplicaSets(ns).Get(ctx, "adopt", metav1.GetOptions{})
		return err == nil && set.Status.ReadyReplicas == 2 && set.Status.AvailableReplicas == 2, err
	})

	if err := core.Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "namespace to be gone", timeout, gone(func() error {
		_, err := core.Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err
	}))
}

func patchDeployment(t *testing.T, env *framework.Env, ns, patch string) {
	t.Helper()
	_, err := env.Client.AppsV1().Deployments(ns).Patch(t.Context(), "web", "application/strategic-merge-patch+json", []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitForReady waits until the Deployment's rollout is complete and its status says so.
func waitForReady(t *testing.T, env *framework.Env, ns string, replicas int32) {
	t.Helper()
	env.WaitFor(t, fmt.Sprintf("deployment to have %d ready pods", replicas), timeout, func(ctx context.Context) (bool, error) {
		d, err := env.Client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := d.Status
		for _, c := range s.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason != "NewReplicaSetAvailable" {
				return false, nil
			}
		}
		return s.ObservedGeneration == d.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas &&
			s.ReadyReplicas == replicas && s.AvailableReplicas == replicas, nil
	})
}
