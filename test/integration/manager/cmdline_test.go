// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

// managerKubeconfig is the kubeconfig of user system:kube-controller-manager.
func managerKubeconfig(t *testing.T, env *framework.Env) string {
	t.Helper()
	path, err := env.ControlPlane.KubeconfigFor(controlplane.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// filesOf are the values of the control plane's own flags for a manager, by name: paths of keys and certificates.
func filesOf(env *framework.Env) map[string]string {
	values := map[string]string{}
	for _, arg := range env.ControlPlane.ManagerArgs() {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		values[name] = value
	}
	return values
}

// TestKubeadmsCommandLineStartsOurBinary runs the manifest that kubeadm writes for
// 1.37, every flag of it, on a control plane with files like kubeadm's.
func TestKubeadmsCommandLineStartsOurBinary(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	files := filesOf(env)
	m := env.StartManager(t, framework.ManagerOptions{BareArgs: true, Args: []string{
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=" + files["kubeconfig"],
		"--authorization-kubeconfig=" + files["kubeconfig"],
		"--bind-address=127.0.0.1",
		"--client-ca-file=" + files["client-ca-file"],
		"--cluster-cidr=10.244.0.0/16",
		"--cluster-name=kubernetes",
		"--cluster-signing-cert-file=" + files["cluster-signing-cert-file"],
		"--cluster-signing-key-file=" + files["cluster-signing-key-file"],
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kubeconfig=" + files["kubeconfig"],
		"--leader-elect=true",
		"--requestheader-client-ca-file=" + files["requestheader-client-ca-file"],
		"--root-ca-file=" + files["root-ca-file"],
		"--service-account-private-key-file=" + files["service-account-private-key-file"],
		"--service-cluster-ip-range=10.96.0.0/16",
		"--use-service-account-credentials=true",
	}})
	waitForControllers(t, env, m)
	ns := env.Namespace(t, "kubeadm")
	if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web", 3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "web", 3)
	// kubeadm's probes of the pod, without credentials.
	if code, body, err := m.Get(t.Context(), nil, "/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d %s %v", code, body, err)
	}
}

// TestKwokctlsCommandLineStartsOurBinary runs the flags that kwokctl gives the
// manager: an administrator's kubeconfig, no delegated authentication, a
// certificate made in --cert-dir, one controller off, high client limits.
func TestKwokctlsCommandLineStartsOurBinary(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	files := filesOf(env)
	certs := t.TempDir()
	admin := writeKubeconfig(t, env.Config())
	mark := env.AuditMark(t)
	m := env.StartManager(t, framework.ManagerOptions{Name: "kcm-kwok", BareArgs: true, Args: []string{
		"--kubeconfig=" + admin,
		"--authentication-kubeconfig=" + admin,
		"--authorization-kubeconfig=" + admin,
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		"--bind-address=127.0.0.1",
		"--cert-dir=" + certs,
		"--cluster-signing-cert-file=" + files["cluster-signing-cert-file"],
		"--cluster-signing-key-file=" + files["cluster-signing-key-file"],
		"--controllers=*,-node-lifecycle-controller",
		"--feature-gates=AllAlpha=false",
		"--kube-api-burst=10000",
		"--kube-api-qps=5000",
		"--leader-elect=false",
		"--node-monitor-grace-period=3600s",
		"--node-monitor-period=3600s",
		"--root-ca-file=" + files["root-ca-file"],
		"--service-account-private-key-file=" + files["service-account-private-key-file"],
		"--v=2",
	}})
	ns := env.Namespace(t, "kwokctl")
	if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "web", 2)
	if code, body, err := m.Get(t.Context(), nil, "/metrics"); err != nil || code != http.StatusOK {
		t.Errorf("/metrics without credentials, always allowed: %d %.200s %v", code, body, err)
	}
	if _, err := os.Stat(filepath.Join(certs, "kube-controller-manager.crt")); err != nil {
		t.Errorf("no certificate in --cert-dir: %v", err)
	}
	if holder, err := env.Leader(t.Context()); err != nil || holder != "" {
		t.Errorf("without leader election the lease is held by %q, %v", holder, err)
	}
	// Without --use-service-account-credentials everything is the kubeconfig's user.
	users := env.AuditSince(t, mark).Where(audit.Agent("^kcm-kwok/")).Count(func(e audit.Event) string { return e.User.Username })
	delete(users, controlplane.AdminUser)
	if len(users) > 0 {
		t.Errorf("requests of other users: %v", users)
	}
}

// TestEveryControllerUsesItsOwnCredentials shows, from the audit log, that each
// controller acts as its service account, that RBAC allows all that it asks
// for, and that the tokens come from the TokenRequest API.
func TestEveryControllerUsesItsOwnCredentials(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	env.ReleaseLease(t)
	m := env.StartManager(t, framework.ManagerOptions{Name: "kcm-rbac"})
	waitForControllers(t, env, m)

	// Something for each controller to do.
	ns := env.BareNamespace(t, "rbac")
	env.WaitFor(t, "default service account", timeout, exists(func() error {
		_, err := env.Client.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}))
	env.WaitFor(t, "root CA", timeout, exists(func() error {
		_, err := env.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err
	}))
	if _, err := env.Client.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRollout(t, env, env.Client, ns, "web", 2)
	secret := tokenSecret("token", "default")
	if _, err := env.Client.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "token in the secret", timeout, hasToken(env, ns, "token"))
	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "namespace to be gone", timeout, gone(func() error {
		_, err := env.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err
	}))

	events := env.AuditSince(t, mark).Where(audit.Agent("^kcm-rbac/"))
	if refused := events.Where(audit.Code(401, 403)); len(refused) > 0 {
		// Pods and the like cannot be created in a namespace that is being deleted.
		if refused = refused.Where(audit.Not(audit.Verb("create"))); len(refused) > 0 {
			t.Errorf("requests that were refused:\n%s", refused)
		}
	}
	tokens := events.Where(audit.Resource("serviceaccounts/token"), audit.Code(201))
	for account, resource := range map[string]string{
		"deployment-controller":      "replicasets.apps",
		"replicaset-controller":      "pods",
		"service-account-controller": "serviceaccounts",
		"root-ca-cert-publisher":     "configmaps",
		"namespace-controller":       "namespaces/finalize",
	} {
		if writes := events.Where(audit.Writes(), audit.ServiceAccount(account), audit.Resource(resource)); len(writes) == 0 {
			t.Errorf("%s wrote no %s as itself; all requests:\n%s", account, resource, events)
		}
		got := tokens.Where(func(e audit.Event) bool { return e.Object() == "kube-system/"+account })
		if len(got) != 1 {
			t.Errorf("%d tokens were asked for %s, want 1", len(got), account)
		}
	}
	// It makes the tokens that the others may need, and so has none of its own: upstream
	// runs it with the manager's credentials. (When the namespace goes, it and the namespace
	// controller race for the secret of the deleted account.)
	if writes := events.Where(audit.Verb("update"), audit.User(controlplane.ManagerUser), audit.Resource("secrets")); len(writes) != 1 {
		t.Errorf("the token controller wrote the secret in\n%s", writes)
	}
	own := maps.Collect(maps.All(events.Where(audit.Writes(), audit.User(controlplane.ManagerUser)).Count(audit.Event.Resource)))
	for _, allowed := range []string{"secrets", "serviceaccounts", "serviceaccounts/token", "leases.coordination.k8s.io", "events",
		"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"} {
		delete(own, allowed)
	}
	if len(own) > 0 {
		t.Errorf("the manager's own user also wrote %v", own)
	}
}
