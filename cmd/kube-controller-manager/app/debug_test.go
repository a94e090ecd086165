// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// debuggable is a controller with pages of its own.
type debuggable struct{ withWorkers }

func (debuggable) DebuggingHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "own page %s", r.URL.Path) })
}

func testRegistry() *controllerRegistry {
	r := &controllerRegistry{}
	for _, c := range []Controller{
		newControllerLoop("plain-controller", struct{}{}, untilDone),
		newControllerLoop("stuck-controller", withWorkers{stuckWorker{errors.New("key a/b is stuck")}}, untilDone),
		newControllerLoop("graph-controller", debuggable{}, untilDone),
	} {
		r.add(newSupervised(c.Name(), &instance{controller: c, scope: &informerScope{}}, nil, registerMetrics()))
	}
	return r
}

func TestDebugPages(t *testing.T) {
	tests := []struct {
		path, accept string
		code         int
		want         []string
	}{
		{path: "/debug/controllers", code: 200, want: []string{"NAME", "plain-controller  Built", "key a/b is stuck"}},
		{path: "/debug/controllers/", code: 200, want: []string{"plain-controller"}},
		{path: "/debug/controllers/plain-controller", code: 200, want: []string{"plain-controller: Built", "health: ok"}},
		{path: "/debug/controllers/stuck-controller", code: 200, want: []string{`queue "q"`, "waiting: 7", "health: key a/b is stuck"}},
		{path: "/debug/controllers/stuck-controller?format=json", code: 200, want: []string{`"depth": 7`, `"unhealthy": "key a/b is stuck"`}},
		{path: "/debug/controllers/stuck-controller", accept: "application/json", code: 200, want: []string{`"depth": 7`}},
		{path: "/debug/controllers/graph-controller/graph", code: 200, want: []string{"own page /graph"}},
		{path: "/debug/controllers/graph-controller/graph/more", code: 200, want: []string{"own page /graph/more"}},
		{path: "/debug/controllers/plain-controller/graph", code: 404},
		{path: "/debug/controllers/nobody", code: 404},
	}
	registry := testRegistry()
	for _, test := range tests {
		t.Run(test.path+" "+test.accept, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, test.path, nil)
			req.Header.Set("Accept", test.accept)
			w := httptest.NewRecorder()
			registry.ServeHTTP(w, req)
			if w.Code != test.code {
				t.Errorf("code = %d, want %d", w.Code, test.code)
			}
			for _, want := range test.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("body lacks %q:\n%s", want, w.Body)
				}
			}
			if strings.Contains(w.Header().Get("Content-Type"), "json") && !json.Valid(w.Body.Bytes()) {
				t.Errorf("body is not JSON:\n%s", w.Body)
			}
		})
	}
}

func TestDebugPagesOfAStandby(t *testing.T) {
	for path, want := range map[string]string{"/debug/controllers": "does not lead", "/debug/controllers?format=json": "[]"} {
		w := httptest.NewRecorder()
		(&controllerRegistry{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", path, w.Code, w.Body, want)
		}
	}
}

func TestClientsPage(t *testing.T) {
	registry := &controllerRegistry{}
	g := gate.New(gate.NewFence(nil))
	g.WrapConfig(&rest.Config{}, "deployment-controller")
	registry.addGate(g)
	for path, want := range map[string]string{"/debug/clients": "deployment-controller  0", "/debug/clients?format=json": `"Controller": "deployment-controller"`} {
		w := httptest.NewRecorder()
		registry.serveClients(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", path, w.Code, w.Body, want)
		}
	}
}
