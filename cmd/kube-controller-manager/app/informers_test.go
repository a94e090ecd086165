// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// reported is what a factory reports.
type reported []cache.Status

func (r reported) Statuses(time.Time) []cache.Status { return r }

func getInformers(t *testing.T, v *informerView, path string) (int, string) {
	t.Helper()
	response := httptest.NewRecorder()
	v.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
	return response.Code, response.Body.String()
}

func TestInformersPage(t *testing.T) {
	minuteAgo := time.Now().Add(-time.Minute)
	v := &informerView{}
	if code, body := getInformers(t, v, "/debug/informers?format=json"); code != http.StatusOK || strings.TrimSpace(body) != "[]" {
		t.Errorf("without informers: %d %q", code, body)
	}
	v.show(reported{
		{
			Resource: "pods", Synced: true, Objects: 42, Bytes: 4200, ResourceVersion: "17", Watching: &minuteAgo, LastSign: &minuteAgo,
			Lists: map[string]int{"first": 1, "expired": 2}, LastError: "too old",
			Handlers: []cache.HandlerStatus{{Name: "job-controller", Told: 99, Waiting: 3, Synced: true}},
		},
		{Resource: "nodes", Unhealthy: "no watch"},
	}, reported{{Resource: "metadata/widgets.example.com"}})

	code, body := getInformers(t, v, "/debug/informers")
	if lines := strings.Split(strings.TrimSpace(body), "\n"); code != http.StatusOK || len(lines) != 4 {
		t.Fatalf("%d %s", code, body)
	}
	for _, want := range []string{"pods", "42", "4200", "no watch", "metadata/widgets.example.com", "never"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	code, body = getInformers(t, v, "/debug/informers/pods")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for _, want := range []string{"lists: 2 (expired)", "lists: 1 (first)", "last error: too old", "handler job-controller: told 99 times, 3 objects wait"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	code, body = getInformers(t, v, "/debug/informers/metadata/widgets.example.com?format=json")
	var statuses []cache.Status
	if err := json.Unmarshal([]byte(body), &statuses); code != http.StatusOK || err != nil || len(statuses) != 1 {
		t.Errorf("%d %v %s", code, err, body)
	}
	if code, _ := getInformers(t, v, "/debug/informers/unicorns"); code != http.StatusNotFound {
		t.Errorf("unknown resource: %d", code)
	}
}

func TestInformerCheck(t *testing.T) {
	now := time.Now()
	well := cache.Status{Resource: "pods", Synced: true, Watching: &now}
	broken := cache.Status{Resource: "nodes", Synced: true, Unhealthy: "nodes have no watch"}
	never := cache.Status{Resource: "podgroups", Unhealthy: "podgroups have no watch"}
	for _, tc := range []struct {
		name            string
		typed, metadata reported
		unhealthy       bool
	}{
		{name: "all well", typed: reported{well}},
		{name: "one has lost its watch", typed: reported{well, broken}, unhealthy: true},
		{name: "the server is away", typed: reported{broken, broken}},
		{name: "a resource that could never be listed", typed: reported{well, never}},
		{name: "metadata", typed: reported{well}, metadata: reported{broken}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := &informerView{}
			if err := v.check(nil); err != nil {
				t.Errorf("before there are informers: %v", err)
			}
			v.show(tc.typed, tc.metadata)
			if err := v.check(nil); (err != nil) != tc.unhealthy {
				t.Errorf("check: %v, want an error: %t", err, tc.unhealthy)
			}
		})
	}
}
