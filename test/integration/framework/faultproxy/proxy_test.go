// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer is an API server of ConfigMaps that remembers who asked for what
// and lets the test write the events of watches.
type fakeServer struct {
	*httptest.Server
	gets, posts atomic.Int32
	events      chan []byte // frames for the one open watch
	contentType string      // of watches

	mu sync.Mutex
	// mu guards the following fields.
	agents []string
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{events: make(chan []byte, 100), contentType: "application/json"}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.handle))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.agents = append(s.agents, r.UserAgent())
	s.mu.Unlock()
	if r.URL.Query().Get("watch") != "" {
		w.Header().Set("Content-Type", s.contentType)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case frame := <-s.events:
				_, _ = w.Write(frame)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	if r.Method == http.MethodPost {
		s.posts.Add(1)
	} else {
		s.gets.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"authorization": r.Header.Get("Authorization")}},
	})
}

func (s *fakeServer) config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// start starts a proxy before s and a client of it.
func start(t *testing.T, s *fakeServer, tag string) (*faultproxy.Proxy, *rest.Config) {
	t.Helper()
	p, err := faultproxy.Start(faultproxy.Options{
		Upstream:  s.config(),
		ConfigFor: func(string, ...string) (*rest.Config, error) { return s.config(), nil },
		Tag:       tag,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	cfg := p.Config(&rest.Config{Host: s.URL, QPS: -1, UserAgent: "tester"})
	return p, cfg
}

func clientOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(hc.Transport) })
	client, err := kubernetes.NewForConfigAndClient(cfg, hc)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func get(ctx context.Context, c kubernetes.Interface) (*corev1.ConfigMap, error) {
	return c.CoreV1().ConfigMaps("ns").Get(ctx, "x", metav1.GetOptions{})
}

func create(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().ConfigMaps("ns").Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})
	return err
}

func TestForwardsWithTokenAndTag(t *testing.T) {
	s := newFakeServer(t)
	_, cfg := start(t, s, "a")
	cfg.BearerToken = "secret"
	got, err := get(t.Context(), clientOf(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Bearer secret"; got.Annotations["authorization"] != want {
		t.Errorf("server saw authorization %q, want %q", got.Annotations["authorization"], want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := "tester via/a"; len(s.agents) != 1 || s.agents[0] != want {
		t.Errorf("server saw user agents %q, want one %q", s.agents, want)
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name  string
		rule  faultproxy.Rule
		check func(error) bool
		retry int
	}{
		{"conflict", faultproxy.Rule{Status: 409}, apierrors.IsAlreadyExists, 0}, // a POST
		{"internal", faultproxy.Rule{Status: 500}, apierrors.IsInternalError, 0},
		{"unavailable", faultproxy.Rule{Status: 503}, apierrors.IsServiceUnavailable, 0},
		{"forbidden", faultproxy.Rule{Status: 403}, apierrors.IsForbidden, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t)
			p, cfg := start(t, s, "")
			rule := p.Add(tt.rule)
			err := create(t.Context(), clientOf(t, cfg))
			if !tt.check(err) {
				t.Errorf("got error %v (reason %s)", err, apierrors.ReasonForError(err))
			}
			if n := s.posts.Load(); n != 0 {
				t.Errorf("%d requests reached the server", n)
			}
			if n := rule.Hits(); n != 1 {
				t.Errorf("rule hit %d times, want 1", n)
			}
			rule.Remove()
			if err := create(t.Context(), clientOf(t, cfg)); err != nil {
				t.Errorf("after the rule was removed: %v", err)
			}
		})
	}
}

func TestTooManyRequestsSendsRetryAfter(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	p.Add(faultproxy.Rule{Status: 429, RetryAfter: 7 * time.Second})
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer utilnet.CloseIdleConnectionsFor(hc.Transport)
	resp, err := hc.Get(p.URL() + "/api/v1/namespaces/ns/configmaps/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var status metav1.Status
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || status.Reason != metav1.StatusReasonTooManyRequests ||
		status.Details.RetryAfterSeconds != 7 {
		t.Errorf("got %d, Retry-After %q, status %+v", resp.StatusCode, resp.Header.Get("Retry-After"), status)
	}
}

func TestDrop(t *testing.T) {
	for _, connection := range []bool{false, true} {
		t.Run(fmt.Sprintf("before/connection=%t", connection), func(t *testing.T) {
			s := newFakeServer(t)
			p, cfg := start(t, s, "")
			p.Add(faultproxy.Rule{Drop: faultproxy.DropBefore, CutConnection: connection, Match: faultproxy.Match{Verbs: faultproxy.WriteVerbs()}})
			client := clientOf(t, cfg)
			err := create(t.Context(), client)
			if err == nil || s.posts.Load() != 0 {
				t.Errorf("got error %v and %d requests at the server, want an error and none", err, s.posts.Load())
			}
			if _, err := get(t.Context(), client); err != nil {
				t.Errorf("a get is not matched, but: %v", err)
			}
		})
		t.Run(fmt.Sprintf("after/connection=%t", connection), func(t *testing.T) {
			s := newFakeServer(t)
			p, cfg := start(t, s, "")
			p.Add(faultproxy.Rule{Drop: faultproxy.DropAfter, CutConnection: connection, Times: 1})
			client := clientOf(t, cfg)
			err := create(t.Context(), client)
			var status apierrors.APIStatus
			if err == nil || errors.As(err, &status) {
				t.Errorf("got %v, want a broken connection", err)
			}
			if n := s.posts.Load(); n != 1 {
				t.Errorf("%d requests reached the server, want 1", n)
			}
			if err := create(t.Context(), client); err != nil {
				t.Errorf("the rule was for one request, but: %v", err)
			}
		})
	}
}

func TestHold(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	client := clientOf(t, cfg)
	rule := p.Add(faultproxy.Rule{Hold: true, Match: faultproxy.Match{Path: regexp.MustCompile(`/configmaps/x$`)}})
	done := make(chan error, 1)
	go func() {
		_, err := get(t.Context(), client)
		done <- err
	}()
	if err := rule.WaitHits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("a held request came back: %v", err)
	case <-time.After(100 * time.Millisecond): // it cannot be waited for that nothing happens
	}
	if n := s.gets.Load(); n != 0 {
		t.Fatal("a held request reached the server")
	}
	rule.Remove()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestHeldRequestEndsWithClient(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	p.Add(faultproxy.Rule{Hold: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, clientOf(t, cfg)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDelay(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	const delay = 100 * time.Millisecond
	p.Add(faultproxy.Rule{Delay: delay, Times: 1, Match: faultproxy.Match{UserAgent: regexp.MustCompile("^tester$")}})
	begin := time.Now()
	if _, err := get(t.Context(), clientOf(t, cfg)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < delay {
		t.Errorf("took %v, want at least %v", took, delay)
	}
}

func TestCountingRulesAndFirstFault(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	client := clientOf(t, cfg)
	all := p.Add(faultproxy.Rule{})
	others := p.Add(faultproxy.Rule{Match: faultproxy.Match{UserAgent: regexp.MustCompile("other")}})
	first := p.Add(faultproxy.Rule{Status: 500, Times: 1})
	second := p.Add(faultproxy.Rule{Status: 503, Times: 1})
	if err := create(t.Context(), client); !apierrors.IsInternalError(err) {
		t.Errorf("first: %v", err)
	}
	if err := create(t.Context(), client); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("second: %v", err)
	}
	if err := create(t.Context(), client); err != nil {
		t.Errorf("third: %v", err)
	}
	if all.Hits() != 3 || others.Hits() != 0 || first.Hits() != 1 || second.Hits() != 1 {
		t.Errorf("hits %d, %d, %d, %d", all.Hits(), others.Hits(), first.Hits(), second.Hits())
	}
}

func TestImpossibleRulesPanic(t *testing.T) {
	s := newFakeServer(t)
	p, _ := start(t, s, "")
	for _, rule := range []faultproxy.Rule{
		{Drop: 7},
		{Status: 500, Drop: faultproxy.DropAfter},
		{Status: 200},
		{RetryAfter: time.Second},
		{Event: func(faultproxy.WatchEvent) bool { return true }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rule %+v was taken", rule)
				}
			}()
			p.Add(rule)
		}()
	}
}

// eventSource writes events of ConfigMaps in either encoding.
type eventSource struct {
	s        *fakeServer
	protobuf bool
}

func (e eventSource) send(t *testing.T, typ, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	if !e.protobuf {
		raw, err := json.Marshal(cm)
		if err != nil {
			t.Fatal(err)
		}
		frame, err := json.Marshal(metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: raw}})
		if err != nil {
			t.Fatal(err)
		}
		e.s.events <- append(frame, '\n')
		return
	}
	raw, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), cm)
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: raw}}
	payload, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var frame strings.Builder
	if _, err := protobuf.LengthDelimitedFramer.NewFrameWriter(&frame).Write(payload); err != nil {
		t.Fatal(err)
	}
	e.s.events <- []byte(frame.String())
}

func TestWatch(t *testing.T) {
	for _, proto := range []bool{false, true} {
		t.Run(fmt.Sprintf("protobuf=%t", proto), func(t *testing.T) {
			s := newFakeServer(t)
			p, cfg := start(t, s, "")
			if proto {
				s.contentType = "application/vnd.kubernetes.protobuf;stream=watch"
				cfg.ContentType = "application/vnd.kubernetes.protobuf"
				cfg.AcceptContentTypes = cfg.ContentType
			}
			source := eventSource{s, proto}
			w, err := clientOf(t, cfg).CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			next := func() string {
				t.Helper()
				select {
				case e, ok := <-w.ResultChan():
					if !ok || e.Type == watch.Error {
						return "broken"
					}
					return string(e.Type) + " " + e.Object.(*corev1.ConfigMap).Name
				case <-time.After(10 * time.Second):
					t.Fatal("no event within 10s")
					return ""
				}
			}
			source.send(t, "ADDED", "a")
			if got := next(); got != "ADDED a" {
				t.Fatalf("got %s", got)
			}

			// Withhold from an open watch: what is selected waits, and all behind it.
			rule := p.Add(faultproxy.Rule{WithholdEvents: true, Event: func(e faultproxy.WatchEvent) bool {
				return e.Type == "DELETED" && e.Object.Name == "a"
			}})
			source.send(t, "ADDED", "b")
			source.send(t, "DELETED", "a")
			source.send(t, "ADDED", "c")
			if got := next(); got != "ADDED b" {
				t.Fatalf("got %s", got)
			}
			if err := rule.WaitEvents(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-w.ResultChan():
				t.Fatalf("withheld event came: %v", e)
			default:
			}
			rule.Remove()
			for _, want := range []string{"DELETED a", "ADDED c"} {
				if got := next(); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}

			const delay = 100 * time.Millisecond
			rule = p.Add(faultproxy.Rule{EventDelay: delay})
			begin := time.Now()
			source.send(t, "ADDED", "d")
			if got := next(); got != "ADDED d" || time.Since(begin) < delay {
				t.Fatalf("got %s after %v", got, time.Since(begin))
			}
			if rule.Events() != 1 {
				t.Errorf("rule saw %d events, want 1", rule.Events())
			}

			if n := p.CutWatches(faultproxy.Match{Verbs: []string{"list"}}); n != 0 {
				t.Errorf("cut %d watches that do not match", n)
			}
			if n := p.OpenWatches(faultproxy.Match{}); n != 1 {
				t.Errorf("%d watches are open, want 1", n)
			}
			if n := p.CutWatches(faultproxy.Match{Path: regexp.MustCompile("configmaps")}); n != 1 {
				t.Errorf("cut %d watches, want 1", n)
			}
			if got := next(); got != "broken" {
				t.Errorf("after the cut: %s", got)
			}
		})
	}
}

func TestCloseCutsWhatIsInFlight(t *testing.T) {
	s := newFakeServer(t)
	p, cfg := start(t, s, "")
	client := clientOf(t, cfg)
	rule := p.Add(faultproxy.Rule{Hold: true, Match: faultproxy.Match{Verbs: []string{"create"}}})
	w, err := client.CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	done := make(chan error, 1)
	go func() { done <- create(t.Context(), client) }()
	if err := rule.WaitHits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p.Close()
	<-done // either way: what counts is that it ends
	if e, ok := <-w.ResultChan(); ok && e.Type != watch.Error {
		t.Error("the watch outlived the proxy")
	}
}

func TestUnreachableServerIsABrokenConnection(t *testing.T) {
	s := newFakeServer(t)
	_, cfg := start(t, s, "")
	s.Close()
	_, err := get(t.Context(), clientOf(t, cfg))
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) || errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v, want a broken connection", err)
	}
}
