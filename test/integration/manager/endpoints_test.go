// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

// builtControllers are the controllers that this release has and runs by default, by canonical name.
func builtControllers() []string {
	missing := append(app.ControllersNotAvailable(), app.ControllersDisabledByDefault()...)
	return slices.DeleteFunc(app.KnownControllers(), func(name string) bool { return slices.Contains(missing, name) })
}

// startLeader starts one manager and waits until it leads and its controllers run.
func startLeader(t *testing.T, env *framework.Env, args ...string) *framework.Manager {
	t.Helper()
	env.ReleaseLease(t)
	m := env.StartManager(t, framework.ManagerOptions{Args: args})
	waitForControllers(t, env, m)
	return m
}

// waitForControllers waits until every built controller has its check in /healthz.
func waitForControllers(t *testing.T, env *framework.Env, m *framework.Manager) {
	t.Helper()
	env.WaitFor(t, "all controllers in /healthz", timeout, func(ctx context.Context) (bool, error) {
		code, body, err := m.Get(ctx, nil, "/healthz?verbose")
		if err != nil || code != http.StatusOK {
			return false, fmt.Errorf("%d %w: %s", code, err, body)
		}
		for _, name := range builtControllers() {
			if !strings.Contains(body, "[+]"+name+" ok\n") {
				return false, fmt.Errorf("%s is missing in %s", name, body)
			}
		}
		return true, nil
	})
}

func TestEndpointsAnswer(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env)
	nobody := env.ConfigFor("nobody")
	admin := env.Config()
	// shared/spec/endpoints-metrics.md says what upstream answers. Ours differs on
	// purpose: /livez and /readyz are served, and so are single checks below the three.
	tests := []struct {
		path                 string
		anonymous, user, all int // without credentials; a user without rights; system:masters
	}{
		{"/healthz", 200, 200, 200},
		{"/livez", 200, 200, 200},
		{"/readyz", 200, 200, 200},
		{"/healthz/leaderElection", 403, 403, 200},
		{"/healthz/deployment-controller", 403, 403, 200},
		{"/healthz/nonsense", 403, 403, 404},
		{"/healthz?exclude=leaderElection", 200, 200, 200},
		{"/metrics", 403, 403, 200},
		{"/metrics/slis", 403, 403, 200},
		{"/configz", 403, 403, 200},
		{"/flagz", 403, 403, 200},
		{"/statusz", 403, 403, 200},
		{"/debug/pprof/", 403, 403, 200},
		{"/debug/pprof/heap", 403, 403, 200},
		{"/debug/controllers", 403, 403, 200},
		{"/", 403, 403, 404},
		{"/version", 404, 404, 404}, // the API server's role system:public-info-viewer lets everyone ask
		{"/nonsense", 403, 403, 404},
	}
	for _, tt := range tests {
		for _, as := range []struct {
			who  string
			cfg  *rest.Config
			want int
		}{{"anonymous", nil, tt.anonymous}, {"a user without rights", nobody, tt.user}, {"system:masters", admin, tt.all}} {
			code, body, err := m.Get(t.Context(), as.cfg, tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if code != as.want {
				t.Errorf("%s as %s: %d, want %d: %.200s", tt.path, as.who, code, as.want, body)
			}
		}
	}
}

func TestEndpointsContents(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env)
	page := func(path string, header http.Header) string {
		t.Helper()
		code, body, err := m.Do(t.Context(), env.Config(), http.MethodGet, path, "", header)
		if err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %v %s", path, code, err, body)
		}
		return body
	}
	contains := func(path, body string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !regexp.MustCompile("(?m)" + w).MatchString(body) {
				t.Errorf("%s has no line %s:\n%.3000s", path, w, body)
			}
		}
	}

	contains("/healthz", page("/healthz?verbose", nil), `^\[\+\]leaderElection ok$`, `^\[\+\]namespace-controller ok$`, `^healthz check passed$`)
	contains("/readyz", page("/readyz?verbose", nil), `^\[\+\]ping ok$`, `^readyz check passed$`)
	contains("/metrics", page("/metrics", nil),
		`^leader_election_master_status\{name="kube-controller-manager"\} 1$`,
		`^workqueue_depth\{name="deployment"\} `,
		`^workqueue_depth\{name="replicaset"\} `,
		`^workqueue_depth\{name="namespace"\} `,
		`^workqueue_depth\{name="serviceaccount"\} `,
		`^workqueue_depth\{name="serviceaccount_tokens_service"\} `,
		`^workqueue_depth\{name="root_ca_cert_publisher"\} `,
		`^workqueue_adds_total\{name="deployment"\} `,
		`^rest_client_requests_total\{code="200"`,
		`^running_managed_controllers\{manager="kube-controller-manager",name="deployment-controller"\} 1$`,
		`^kubernetes_build_info\{`,
		`^kubernetes_feature_enabled\{`,
		`^version_info\{`,
		`^process_cpu_seconds_total `,
		`^go_goroutines `,
	)
	contains("/metrics/slis", page("/metrics/slis", nil), `^kubernetes_healthcheck\{name="leaderElection",type="healthz"\} 1$`,
		`^kubernetes_healthchecks_total\{name="deployment-controller",status="success",type="healthz"\} \d`)
	contains("/flagz", page("/flagz", nil), `^kube-controller-manager flagz$`, `^Warning: This endpoint is not meant to be machine parseable`,
		// The separator is another one in each process, so that nobody parses it.
		`^leader-elect[ :=]+true$`, `^use-service-account-credentials[ :=]+true$`)
	contains("/statusz", page("/statusz", nil), `^kube-controller-manager statusz$`, `^Started.*\d`, `^Up`, `^Go version`, `^Binary version.*1\.37`, `^Emulation version.*1\.37`,
		`/configz`, `/flagz`, `/healthz`, `/metrics`)
	contains("/debug/controllers", page("/debug/controllers", nil), `deployment-controller`)

	var configz map[string]map[string]any
	if err := json.Unmarshal([]byte(page("/configz", nil)), &configz); err != nil {
		t.Fatal(err)
	}
	config := configz["kubecontrollermanager.config.k8s.io"]
	if len(configz) != 1 || config["Generic"] == nil || config["DeploymentController"] == nil || config["NamespaceController"] == nil {
		t.Errorf("/configz: %v", configz)
	}

	structured := page("/flagz", http.Header{"Accept": {"application/json;as=Flagz;v=v1alpha1;g=config.k8s.io"}})
	var flagz struct {
		Kind  string            `json:"kind"`
		Flags map[string]string `json:"flags"`
	}
	if err := json.Unmarshal([]byte(structured), &flagz); err != nil || flagz.Kind != "Flagz" || flagz.Flags["leader-elect"] != "true" {
		t.Errorf("structured /flagz: %v %.300s", err, structured)
	}
}

func TestVerbosityCanBeChangedWhileRunning(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env)
	code, body, err := m.Do(t.Context(), env.Config(), http.MethodPut, "/debug/flags/v", "5", nil)
	if err != nil || code != http.StatusOK {
		t.Errorf("PUT /debug/flags/v: %d %s %v", code, body, err)
	}
	if code, _, err := m.Do(t.Context(), nil, http.MethodPut, "/debug/flags/v", "5", nil); err != nil || code != http.StatusForbidden {
		t.Errorf("PUT /debug/flags/v without credentials: %d %v", code, err)
	}
}

func TestProfilingCanBeSwitchedOff(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env, "--profiling=false")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/profile?seconds=1", "/debug/flags/v"} {
		if code, body, err := m.Get(t.Context(), env.Config(), path); err != nil || code != http.StatusNotFound {
			t.Errorf("%s without profiling: %d %.100s %v", path, code, body, err)
		}
	}
}

func TestRightsAreAskedOfTheAPIServer(t *testing.T) {
	env := framework.New(t)
	m := startLeader(t, env)
	ns := env.Namespace(t, "rights")
	tokens, err := env.Client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := rest.AnonymousClientConfig(env.Config())
	bearer.BearerToken = tokens.Status.Token
	if code, body, err := m.Get(t.Context(), bearer, "/metrics"); err != nil || code != http.StatusForbidden || !strings.Contains(body, "system:serviceaccount:"+ns+":default") {
		t.Errorf("/metrics before the binding: %d %s %v", code, body, err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "default"}},
	}
	rbac := env.Client.RbacV1()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, err := range []error{rbac.ClusterRoles().Delete(ctx, ns, metav1.DeleteOptions{}), rbac.ClusterRoleBindings().Delete(ctx, ns, metav1.DeleteOptions{})} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	if _, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A refusal is remembered for 10s.
	env.WaitFor(t, "the service account to see /metrics", timeout, func(ctx context.Context) (bool, error) {
		code, body, err := m.Get(ctx, bearer, "/metrics")
		return err == nil && code == http.StatusOK && strings.Contains(body, "workqueue_depth"), err
	})
	if code, _, err := m.Get(t.Context(), bearer, "/configz"); err != nil || code != http.StatusForbidden {
		t.Errorf("/configz with a right to /metrics alone: %d %v", code, err)
	}
	bearer.BearerToken = "nonsense"
	if code, _, err := m.Get(t.Context(), bearer, "/metrics"); err != nil || code != http.StatusUnauthorized {
		t.Errorf("a false token got %d, %v, want 401", code, err)
	}
}

func TestStandbyHealth(t *testing.T) {
	env := framework.New(t)
	_, standby := startPair(t, env)
	code, body, err := standby.Get(t.Context(), nil, "/healthz?verbose")
	if err != nil || code != http.StatusOK || !strings.Contains(body, "[+]leaderElection ok") {
		t.Errorf("/healthz of a standby: %d %s %v", code, body, err)
	}
	if strings.Contains(body, "deployment-controller") {
		t.Errorf("a standby has checks of controllers that it does not run: %s", body)
	}
}
