// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package manager tests the kube-controller-manager binary as a whole: what it
// takes on its command line, what it serves, whose credentials it uses and how
// managers hand over to each other.
//
// Managers share one lease, so the tests that start one must not run at the same time.
package manager

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/test/integration/framework"
)

const timeout = 60 * time.Second

func TestMain(m *testing.M) { framework.Main(m) }

// newDeployment is a Deployment whose pods need no node: nothing binds them.
func newDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: "main:1"}},
					TerminationGracePeriodSeconds: ptr.To[int64](0),
				},
			},
		},
	}
}

// churn keeps the controllers writing until the end of the test or until the
// returned function is called: a Deployment grows and shrinks all the time.
func churn(t *testing.T, env *framework.Env) (stop func()) {
	t.Helper()
	ns := env.Namespace(t, "churn")
	deployments := env.Client.AppsV1().Deployments(ns)
	if _, err := deployments.Create(t.Context(), newDeployment("churn", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 1+i%4)
			_, err := deployments.Patch(ctx, "churn", "application/merge-patch+json", patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				t.Errorf("scaling: %v", err)
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// leads tells whether a manager says that it holds the lease.
func leads(ctx context.Context, env *framework.Env, m *framework.Manager) (bool, error) {
	code, body, err := m.Get(ctx, env.Config(), "/metrics")
	if err != nil {
		return false, err
	}
	if code != http.StatusOK {
		return false, fmt.Errorf("/metrics of %s: %d %s", m.Name(), code, body)
	}
	return strings.Contains(body, "\n"+`leader_election_master_status{name="kube-controller-manager"} 1`+"\n"), nil
}

// startPair starts two managers and returns the one that leads and the one that stands by.
func startPair(t *testing.T, env *framework.Env, args ...string) (leader, standby *framework.Manager) {
	t.Helper()
	env.ReleaseLease(t)
	a := env.StartManager(t, framework.ManagerOptions{Name: "kcm-a", Args: args})
	b := env.StartManager(t, framework.ManagerOptions{Name: "kcm-b", Args: args})
	env.WaitFor(t, "one of two managers to lead", timeout, func(ctx context.Context) (bool, error) {
		for _, m := range []*framework.Manager{a, b} {
			if ok, err := leads(ctx, env, m); ok || err != nil {
				leader, standby = m, a
				if m == a {
					standby = b
				}
				return ok, err
			}
		}
		return false, nil
	})
	return leader, standby
}

// waitForRollout waits until some manager has brought a new Deployment to its replicas.
func waitForRollout(t *testing.T, env *framework.Env, client kubernetes.Interface, ns, name string, replicas int32) {
	t.Helper()
	env.WaitFor(t, fmt.Sprintf("deployment %s/%s to have %d pods", ns, name, replicas), timeout, func(ctx context.Context) (bool, error) {
		d, err := client.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == replicas && d.Status.UpdatedReplicas == replicas, err
	})
}

// exists is a condition: get finds its object.
func exists(get func() error) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		err := get()
		return err == nil, err
	}
}

// gone is a condition: get does not find its object.
func gone(get func() error) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		err := get()
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
}

// tokenSecret asks the token controller for a token of an account.
func tokenSecret(name, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// hasToken is a condition: the token controller has filled in the Secret.
func hasToken(env *framework.Env, ns, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		secret, err := env.Client.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	}
}
