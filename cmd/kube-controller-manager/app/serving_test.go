// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	apiserverhealthz "k8s.io/apiserver/pkg/server/healthz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
	genericapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/healthz"
)

// testConfig is a configuration with which pages can be served.
func testConfig(t *testing.T, profiling bool) *config.CompletedConfig {
	t.Helper()
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ComponentGlobalsRegistry.SetFallback(); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{
		ComponentConfig:          options.NewDefaultComponentConfig(),
		ComponentGlobalsRegistry: s.ComponentGlobalsRegistry,
		Flagz:                    flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{}},
	}
	c.ComponentConfig.Generic.Debugging.EnableProfiling = ptr.To(profiling)
	return c.Complete()
}

// testHandler serves one healthy and, if told, one unhealthy controller behind access control like
// the real one's: X-User says who asks, "admin" may do everything.
func testHandler(t *testing.T, profiling, healthy bool) http.Handler {
	t.Helper()
	checks := []apiserverhealthz.HealthChecker{healthz.NamedPingChecker("good-controller")}
	if !healthy {
		checks = append(checks, apiserverhealthz.NamedCheck("bad-controller", func(*http.Request) error { return errors.New("stuck") }))
	}
	ping := []apiserverhealthz.HealthChecker{apiserverhealthz.PingHealthz}
	base, err := newBaseHandler(testConfig(t, profiling), pages{
		health: newHealthPages(healthz.NewMutableHealthzHandler(checks...), ping, ping,
			apiserverhealthz.NamedCheck("apart", func(*http.Request) error { return errors.New("widgets have no watch") })),
		registry:  testRegistry(),
		informers: &informerView{},
	})
	if err != nil {
		t.Fatal(err)
	}
	authn := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		who := r.Header.Get("X-User")
		if who == "" {
			who = user.Anonymous
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: who}}, true, nil
	})
	authz := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		alwaysAllowed := []string{"/healthz", "/readyz", "/livez"}
		if a.GetUser().GetName() == "admin" || slices.Contains(alwaysAllowed, a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	return genericapp.BuildHandlerChain(base, &apiserver.AuthorizationInfo{Authorizer: authz}, &apiserver.AuthenticationInfo{Authenticator: authn})
}

func get(handler http.Handler, path, who string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if who != "" {
		req.Header.Set("X-User", who)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	return w
}

// The codes are upstream's as a probe of its 1.37.2 binary shows them, but for the pages that it lacks.
func TestEndpoints(t *testing.T) {
	tests := []struct {
		path             string
		anonymous, admin int
	}{
		{"/healthz", 200, 200},
		{"/healthz/good-controller", 403, 200}, // Upstream: 404.
		{"/healthz/nobody", 403, 404},
		{"/livez", 200, 200},      // Upstream: 404.
		{"/livez/ping", 403, 200}, // Upstream: 404.
		{"/readyz", 200, 200},     // Upstream: 404.
		{"/metrics", 403, 200},
		{"/metrics/slis", 403, 200},
		{"/configz", 403, 200},
		{"/flagz", 403, 200},
		{"/statusz", 403, 200},
		{"/debug/pprof/", 403, 200},
		{"/debug/pprof/goroutine", 403, 200},
		{"/debug/flags/v", 403, 406},
		{"/debug/controllers", 403, 200},                  // Upstream: 404.
		{"/debug/controllers/plain-controller", 403, 200}, // Upstream: 404.
		{"/debug/clients", 403, 200},                      // Upstream: 404.
		{"/debug/controllers/graph-controller/graph", 403, 200},
		{"/debug/controllers/plain-controller/graph", 403, 404},
		{"/", 403, 404},
		{"/nope", 403, 404},
	}
	handler := testHandler(t, true, true)
	for _, test := range tests {
		if got := get(handler, test.path, "").Code; got != test.anonymous {
			t.Errorf("%s: anonymous gets %d, want %d", test.path, got, test.anonymous)
		}
		if got := get(handler, test.path, "admin").Code; got != test.admin {
			t.Errorf("%s: admin gets %d, want %d", test.path, got, test.admin)
		}
	}
}

func TestEndpointsWithoutProfiling(t *testing.T) {
	handler := testHandler(t, false, true)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/flags/v"} {
		if got := get(handler, path, "admin").Code; got != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, got)
		}
	}
}

func TestHealthzPerController(t *testing.T) {
	handler := testHandler(t, true, false)
	all := get(handler, "/healthz", "admin")
	if all.Code != http.StatusInternalServerError || !strings.Contains(all.Body.String(), "[-]bad-controller failed") || !strings.Contains(all.Body.String(), "[+]good-controller ok") {
		t.Errorf("/healthz: %d\n%s", all.Code, all.Body)
	}
	if got := get(handler, "/healthz?exclude=bad-controller", "admin").Code; got != http.StatusOK {
		t.Errorf("/healthz without the bad one: %d, want 200", got)
	}
	if got := get(handler, "/healthz/bad-controller", "admin").Code; got != http.StatusInternalServerError {
		t.Errorf("/healthz/bad-controller: %d, want 500", got)
	}
	// A controller that fails is no reason to kill the process that runs the others.
	if got := get(handler, "/livez", "admin").Code; got != http.StatusOK {
		t.Errorf("/livez: %d, want 200", got)
	}
}

// A check apart names what is wrong to who asks for it, and fails nothing that a probe asks.
func TestCheckApart(t *testing.T) {
	handler := testHandler(t, true, true)
	if got := get(handler, "/healthz/apart", "admin"); got.Code != http.StatusInternalServerError || got.Body.String() != "widgets have no watch\n" {
		t.Errorf("/healthz/apart: %d %q", got.Code, got.Body)
	}
	if got := get(handler, "/healthz/apart", "").Code; got != http.StatusForbidden {
		t.Errorf("/healthz/apart for anyone: %d, want 403", got)
	}
	for _, path := range []string{"/healthz?verbose", "/livez?verbose", "/readyz?verbose"} {
		if got := get(handler, path, "admin"); got.Code != http.StatusOK || strings.Contains(got.Body.String(), "apart") {
			t.Errorf("%s: %d\n%s", path, got.Code, got.Body)
		}
	}
}

func TestConfigz(t *testing.T) {
	w := get(testHandler(t, true, true), "/configz", "admin")
	var got map[string]map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	c := got["kubecontrollermanager.config.k8s.io"]
	if len(got) != 1 || c["kind"] != "KubeControllerManagerConfiguration" || c["apiVersion"] != "kubecontrollermanager.config.k8s.io/v1alpha1" {
		t.Errorf("/configz has %d entries, kind %v of %v", len(got), c["kind"], c["apiVersion"])
	}
	if _, ok := c["DeploymentController"]; !ok {
		t.Errorf("/configz lacks DeploymentController:\n%s", w.Body)
	}
}

func TestStatuszListsThePaths(t *testing.T) {
	body := get(testHandler(t, true, true), "/statusz", "admin").Body.String()
	for _, path := range []string{"/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"} {
		if !slices.Contains(strings.Fields(body), path) {
			t.Errorf("/statusz does not list %s:\n%s", path, body)
		}
	}
}
