// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package healthz

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type failing struct{}

func (failing) Check(*http.Request) error { return errors.New("stuck in ns/name for 10m") }

func get(h http.Handler, url string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	return w.Code, w.Body.String()
}

func TestMutableHealthzHandler(t *testing.T) {
	h := NewMutableHealthzHandler()
	for _, step := range []struct {
		what, url string
		add       []healthz.HealthChecker
		code      int
		body      string
	}{
		{what: "no checks", url: "/healthz", code: 200, body: "ok"},
		{what: "not there yet", url: "/healthz/a", code: 404, body: "404 page not found\n"},
		{what: "one check", add: []healthz.HealthChecker{NamedPingChecker("a")}, url: "/healthz", code: 200, body: "ok"},
		{what: "alone", url: "/healthz/a", code: 200, body: "ok"},
		{what: "verbose", url: "/healthz?verbose", code: 200, body: "[+]a ok\nhealthz check passed\n"},
		{what: "one fails, added later", add: []healthz.HealthChecker{NamedHealthChecker("b", failing{})}, url: "/healthz", code: 500,
			body: "[+]a ok\n[-]b failed: reason withheld\nhealthz check failed\n"},
		{what: "livez", url: "/livez", code: 500, body: "[+]a ok\n[-]b failed: reason withheld\nlivez check failed\n"},
		{what: "readyz", url: "/readyz", code: 500, body: "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n"},
		{what: "the other alone", url: "/healthz/a", code: 200, body: "ok"},
		{what: "the one alone", url: "/livez/b", code: 500, body: "internal server error: stuck in ns/name for 10m\n"},
		{what: "excluded", url: "/healthz?exclude=b", code: 200, body: "ok"},
		{what: "excluded, verbose", url: "/readyz?verbose&exclude=b", code: 200, body: "[+]a ok\n[+]b excluded: ok\nreadyz check passed\n"},
		{what: "replaced by name", add: []healthz.HealthChecker{NamedPingChecker("b")}, url: "/healthz?verbose", code: 200, body: "[+]a ok\n[+]b ok\nhealthz check passed\n"},
	} {
		if step.add != nil {
			h.AddHealthChecker(step.add...)
		}
		if code, body := get(h, step.url); code != step.code || body != step.body {
			t.Errorf("%s: %s: %d %q, want %d %q", step.what, step.url, code, body, step.code, step.body)
		}
	}
}

// Checks may be added while others are served.
func TestConcurrentUse(t *testing.T) {
	h := NewMutableHealthzHandler(NamedPingChecker("first"))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { h.AddHealthChecker(NamedPingChecker(fmt.Sprint(i))) })
		wg.Go(func() {
			if code, _ := get(h, "/healthz/first"); code != 200 {
				t.Errorf("code %d", code)
			}
		})
	}
	wg.Wait()
	for i := range 20 {
		if code, _ := get(h, fmt.Sprintf("/healthz/%d", i)); code != 200 {
			t.Errorf("check %d got lost: %d", i, code)
		}
	}
}
