// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiserver "k8s.io/apiserver/pkg/server"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/healthz"
)

func get(h http.Handler, url string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	return w.Result()
}

func TestNewBaseHandler(t *testing.T) {
	for name, tc := range map[string]struct {
		profiling *bool
		codes     map[string]int
		listed    []string
	}{
		"profiling": {ptr.To(true), map[string]int{
			"/healthz": 200, "/healthz/a": 200, "/healthz/b": 404, "/livez": 200, "/livez/a": 200, "/readyz": 200, "/readyz/a": 200,
			"/metrics": 200, "/configz": 200, "/debug/pprof/": 200, "/debug/pprof/goroutine": 200, "/debug/flags/v": 406, "/": 404, "/other": 404,
		}, []string{"/configz", "/healthz", "/livez", "/metrics", "/readyz"}},
		"no profiling": {ptr.To(false), map[string]int{"/healthz": 200, "/metrics": 200, "/debug/pprof/": 404, "/debug/flags/v": 404},
			[]string{"/configz", "/healthz", "/livez", "/metrics", "/readyz"}},
		"not said": {nil, map[string]int{"/debug/pprof/": 404}, []string{"/configz", "/healthz", "/livez", "/metrics", "/readyz"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewBaseHandler(&componentbaseconfig.DebuggingConfiguration{EnableProfiling: tc.profiling}, healthz.NewMutableHealthzHandler(healthz.NamedPingChecker("a")))
			for url, want := range tc.codes {
				if got := get(m, url).StatusCode; got != want {
					t.Errorf("%s: %d, want %d", url, got, want)
				}
			}
			listed := slices.DeleteFunc(m.ListedPaths(), func(path string) bool { return strings.HasPrefix(path, "/debug/") })
			slices.Sort(listed)
			if !slices.Equal(listed, tc.listed) {
				t.Errorf("listed %v, want %v", listed, tc.listed)
			}
		})
	}
}

// authenticate knows who comes with a name, and nobody else.
var authenticate = authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
	name := req.Header.Get("X-Name")
	return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
})

// TestBuildHandlerChain sends requests through the chain.
func TestBuildHandlerChain(t *testing.T) {
	var attributes authorizer.Attributes
	authorize := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		attributes = a
		if a.GetUser().GetName() == "admin" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("at the disco")
		}
		w.WriteHeader(http.StatusTeapot)
	})
	chain := BuildHandlerChain(handler, &apiserver.AuthorizationInfo{Authorizer: authorize}, &apiserver.AuthenticationInfo{Authenticator: authenticate})
	for _, tc := range []struct {
		name, path string
		want       int
	}{
		{"", "/metrics", http.StatusUnauthorized},
		{"nobody", "/metrics", http.StatusForbidden},
		{"admin", "/metrics", http.StatusTeapot},
		{"admin", "/panic", http.StatusInternalServerError},
	} {
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, tc.path, nil)
		req.Header.Set("X-Name", tc.name)
		func() {
			// The panic is answered, and goes on to the HTTP server, which ends the connection and nothing else.
			defer func() {
				if r := recover(); (r != nil) != (tc.path == "/panic") {
					t.Errorf("%s: recovered %v", tc.path, r)
				}
			}()
			chain.ServeHTTP(w, req)
		}()
		if w.Code != tc.want || w.Header().Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%q asks for %s: %d with Cache-Control %q, want %d", tc.name, tc.path, w.Code, w.Header().Get("Cache-Control"), tc.want)
		}
	}
	if attributes.IsResourceRequest() || attributes.GetPath() != "/panic" || attributes.GetVerb() != "get" {
		t.Errorf("authorized as %+v", attributes)
	}
	if got := get(BuildHandlerChain(handler, nil, nil), "/metrics").StatusCode; got != http.StatusTeapot {
		t.Errorf("without authentication and authorization: %d, want %d", got, http.StatusTeapot)
	}
}
