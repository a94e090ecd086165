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

	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

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
		all             string // what the check of all of them says
	}{
		{name: "all well", typed: reported{well}, metadata: reported{well}},
		{name: "one has lost its watch", typed: reported{well, broken}, unhealthy: true, all: "nodes have no watch"},
		{name: "the server is away", typed: reported{broken, broken}, metadata: reported{never}},
		{name: "a resource that could never be listed", typed: reported{well, never}, all: "podgroups have no watch"},
		{name: "metadata", typed: reported{well}, metadata: reported{broken, never}, all: "nodes have no watch\npodgroups have no watch"},
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
			var all string
			if err := v.checkAll(nil); err != nil {
				all = err.Error()
			}
			if all != tc.all {
				t.Errorf("check of all: %q, want %q", all, tc.all)
			}
		})
	}
}

func TestInformerMetrics(t *testing.T) {
	now := time.Now()
	v := &informerView{}
	v.show(reported{{
		Resource: "pods", Objects: 42, Bytes: 4200, Events: 7, Watches: 3, Watching: &now, LastSign: &now,
		Lists: map[string]int{"first": 1, "expired": 2},
	}}, reported{{Resource: "metadata/secrets", Objects: 1}})
	registry := k8smetrics.NewKubeRegistry()
	collector := newInformerCollector()
	registry.CustomMustRegister(collector)
	collector.add(v, "manager-2")
	want := `
# HELP kcm_informer_lists_total [ALPHA] How often all objects were listed, and why.
# TYPE kcm_informer_lists_total counter
kcm_informer_lists_total{name="manager-2",reason="expired",resource="pods"} 2
kcm_informer_lists_total{name="manager-2",reason="first",resource="pods"} 1
# HELP kcm_informer_objects [ALPHA] Number of objects in the cache.
# TYPE kcm_informer_objects gauge
kcm_informer_objects{name="manager-2",resource="metadata/secrets"} 1
kcm_informer_objects{name="manager-2",resource="pods"} 42
# HELP kcm_informer_bytes [ALPHA] About how many bytes of memory the cached objects take.
# TYPE kcm_informer_bytes gauge
kcm_informer_bytes{name="manager-2",resource="metadata/secrets"} 0
kcm_informer_bytes{name="manager-2",resource="pods"} 4200
# HELP kcm_informer_watching [ALPHA] 1 while a watch is open.
# TYPE kcm_informer_watching gauge
kcm_informer_watching{name="manager-2",resource="metadata/secrets"} 0
kcm_informer_watching{name="manager-2",resource="pods"} 1
# HELP kcm_informer_events_total [ALPHA] Number of events that watches have brought, bookmarks included.
# TYPE kcm_informer_events_total counter
kcm_informer_events_total{name="manager-2",resource="metadata/secrets"} 0
kcm_informer_events_total{name="manager-2",resource="pods"} 7
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "kcm_informer_lists_total", "kcm_informer_objects",
		"kcm_informer_bytes", "kcm_informer_watching", "kcm_informer_events_total"); err != nil {
		t.Error(err)
	}
	collector.remove(v)
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("after the manager has gone: %v, %v", families, err)
	}
}
