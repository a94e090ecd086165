// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package differential

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// TestPlantedBugs shows that the suite would tell of bugs: our manager works behind a proxy that plants one, and the
// scenario must differ, in the way that belongs to the bug.
func TestPlantedBugs(t *testing.T) {
	tests := []struct {
		name     string
		scenario string
		sabotage func(api *atomic.Pointer[rest.Config]) faultproxy.Rule
		// want is in the report.
		want string
	}{
		{
			name: "a wrong hash", scenario: "deployment-create",
			sabotage: func(*atomic.Pointer[rest.Config]) faultproxy.Rule { return wrongHash() },
			want:     "only in the second: ReplicaSet web-",
		},
		{
			name: "a pod created twice", scenario: "replicaset-create",
			sabotage: doubleCreate,
			want:     "Deleted pod: web-<x>",
		},
		{
			name: "a deletion that is forgotten", scenario: "rc-scale",
			sabotage: func(*atomic.Pointer[rest.Config]) faultproxy.Rule { return lostDelete() },
			want:     "last seen: there are 5",
		},
	}
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := LoadAccepted()
	if err != nil {
		t.Fatal(err)
	}
	b, err := suite.binaries()
	if err != nil {
		t.Fatal(err)
	}
	upstream := suite.pair(t, nil).Upstream
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var api atomic.Pointer[rest.Config]
			ours, err := suite.start("kcm with a bug", b.ours, nil, []faultproxy.Rule{tt.sabotage(&api)})
			if err != nil {
				t.Fatal(err)
			}
			api.Store(ours.Config())
			// It will not get there.
			ours.Timeout = 10 * time.Second
			pair := &Pair{Upstream: upstream, Ours: ours}
			namespace := "bug-" + tt.scenario
			ctx, cancel := context.WithTimeout(t.Context(), scenarioTimeout)
			defer cancel()
			err = pair.Play(ctx, find(t, all, tt.scenario), namespace, accepted)
			var difference *Difference
			switch {
			case !errors.As(err, &difference):
				t.Errorf("with the bug the scenario ends with %v, want a difference", err)
			case !strings.Contains(difference.Text, tt.want):
				t.Errorf("the difference does not show the bug, want %q in it:\n%v", tt.want, difference)
			}
		})
	}
}

func find(t *testing.T, all []scenarios.Scenario, name string) scenarios.Scenario {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return scenarios.Scenario{}
}

// wrongHash changes the hash of every ReplicaSet that is created, in name, labels and selector.
func wrongHash() faultproxy.Rule {
	hash := regexp.MustCompile(`pod-template-hash[^a-z0-9]+([a-z0-9]{8,10})`)
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"create"}, Path: regexp.MustCompile(`/namespaces/bug-[^/]+/replicasets$`)},
		Intercept: func(_ http.ResponseWriter, r *http.Request) bool {
			body, err := io.ReadAll(r.Body)
			if found := hash.FindSubmatch(body); err == nil && found != nil {
				// As long as the right one: the body may be protobuf, which counts.
				body = bytes.ReplaceAll(body, found[1], bytes.Repeat([]byte("x"), len(found[1])))
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return false
		},
	}
}

// doubleCreate sends each pod to the API server twice.
func doubleCreate(api *atomic.Pointer[rest.Config]) faultproxy.Rule {
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"create"}, Path: regexp.MustCompile(`/namespaces/bug-[^/]+/pods$`)},
		Intercept: func(_ http.ResponseWriter, r *http.Request) bool {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			config := api.Load()
			if err != nil || config == nil {
				return false
			}
			transport, err := rest.TransportFor(config)
			if err != nil {
				return false
			}
			again := r.Clone(r.Context())
			again.Header.Del("Authorization")
			again.Body = io.NopCloser(bytes.NewReader(body))
			again.URL.Scheme, again.URL.Host, again.RequestURI = "https", strings.TrimPrefix(config.Host, "https://"), ""
			if response, err := transport.RoundTrip(again); err == nil {
				_ = response.Body.Close()
			}
			return false
		},
	}
}

// lostDelete turns deletions of pods into reads, which are answered as well.
func lostDelete() faultproxy.Rule {
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"delete"}, Path: regexp.MustCompile(`/namespaces/bug-[^/]+/pods/`)},
		Intercept: func(_ http.ResponseWriter, r *http.Request) bool {
			r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
			r.URL.RawQuery = ""
			return false
		},
	}
}
