// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// resetMetrics forgets what earlier tests have counted. The metrics must be registered, by a call of New.
func resetMetrics() {
	requests.Reset()
	requestDuration.Reset()
	fencedWrites.Reset()
}

// apiServer answers every request with what was sent, or an empty object.
func apiServer(t *testing.T, handle http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(handle)
	transport := &http.Transport{MaxConnsPerHost: 0}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL, QPS: -1, Transport: transport, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case len(body) > 0:
		_, _ = w.Write(body)
	default:
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)
	}
}

func openFence() *Fence {
	f := NewFence(nil)
	f.OpenForever()
	return f
}

func newClient(t *testing.T, g *Gate, cfg *rest.Config, controller string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(g.WrapConfig(cfg, controller))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// A closed fence stops every write before it leaves the process, and nothing else.
func TestFencedWrites(t *testing.T) {
	var methods []string
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		echo(w, r)
	})
	fence := NewFence(nil)
	g := New(fence)
	resetMetrics()
	client := newClient(t, g, cfg, "fenced-controller")
	scope := NewScope("fenced-controller", "ns/p")
	ctx := WithScope(t.Context(), scope)
	pods := client.CoreV1().Pods("ns")

	writes := map[string]func() error{
		"create": func() error { _, err := pods.Create(ctx, pod("p"), metav1.CreateOptions{}); return err },
		"update": func() error { _, err := pods.Update(ctx, pod("p"), metav1.UpdateOptions{}); return err },
		"status": func() error { _, err := pods.UpdateStatus(ctx, pod("p"), metav1.UpdateOptions{}); return err },
		"patch": func() error {
			_, err := pods.Patch(ctx, "p", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"delete": func() error { return pods.Delete(ctx, "p", metav1.DeleteOptions{}) },
		"deletecollection": func() error {
			return pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	}
	for name, write := range writes {
		if err := write(); !errors.Is(err, ErrFenced) {
			t.Errorf("%s: %v, want ErrFenced", name, err)
		}
	}
	if len(methods) != 0 {
		t.Errorf("requests that passed the fence: %v", methods)
	}
	if scope.Requests() != 0 || scope.Writes() != 0 || scope.Refused() != int64(len(writes)) || !errors.Is(scope.LastError(), ErrFenced) {
		t.Errorf("scope: %d requests, %d writes, %d refused, last error %v", scope.Requests(), scope.Writes(), scope.Refused(), scope.LastError())
	}

	if _, err := pods.Get(ctx, "p", metav1.GetOptions{}); err != nil {
		t.Errorf("get: %v", err)
	}
	if _, err := client.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "sa", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("token request: %v", err)
	}
	if _, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("token review: %v", err)
	}
	fence.OpenForever()
	for name, write := range writes {
		if err := write(); err != nil {
			t.Errorf("%s through the open fence: %v", name, err)
		}
	}
	if scope.Requests() != 3+int64(len(writes)) || scope.Writes() != int64(len(writes)) {
		t.Errorf("scope: %d requests, %d writes", scope.Requests(), scope.Writes())
	}
	fence.Close()
	if err := writes["delete"](); !errors.Is(err, ErrFenced) {
		t.Errorf("delete after the fence was closed: %v", err)
	}
	want := []Stats{{Controller: "fenced-controller", Requests: 9, Writes: 6, Refused: 7, Window: initialWindow}}
	if diff := cmp.Diff(want, g.Stats()); diff != "" {
		t.Errorf("stats: -want +got:\n%s", diff)
	}
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(`
# HELP kcm_client_fenced_writes_total [ALPHA] Writes that were not sent because the process does not lead.
# TYPE kcm_client_fenced_writes_total counter
kcm_client_fenced_writes_total{controller="fenced-controller"} 7
`), "kcm_client_fenced_writes_total"); err != nil {
		t.Error(err)
	}
}

// A write that waited for its turn until the lease was lost is not sent.
func TestFenceIsAskedAgainAfterTheWait(t *testing.T) {
	var sent atomic.Int32
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		echo(w, r)
	})
	fence := openFence()
	g := New(fence)
	client := newClient(t, g, cfg, "waiting-controller")
	l := g.client("waiting-controller").limiter
	l.window = 1
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod("p"), metav1.CreateOptions{})
		done <- err
	}()
	for g.Stats()[0].Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	fence.Close()
	now := time.Now()
	l.release(answer{start: now, end: now, failed: true})
	if err := <-done; !errors.Is(err, ErrFenced) || sent.Load() != 0 {
		t.Errorf("error %v, %d requests sent", err, sent.Load())
	}
	if l.inFlight != 0 {
		t.Errorf("%d in flight at the end", l.inFlight)
	}
}

// client-go retries what was answered with 429 and Retry-After. The gate adds no retry, and each try has its body.
func TestTooManyRequests(t *testing.T) {
	var tries atomic.Int32
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		var got corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Name != "p" {
			t.Errorf("try %d came with the body %+v, %v", tries.Load(), got.ObjectMeta, err)
		}
		if tries.Add(1) <= 2 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(got)
	})
	g := New(openFence())
	client := newClient(t, g, cfg, "rejected-controller")
	scope := NewScope("rejected-controller", "ns/p")
	created, err := client.CoreV1().Pods("ns").Create(WithScope(t.Context(), scope), pod("p"), metav1.CreateOptions{})
	if err != nil || created.Name != "p" {
		t.Fatalf("created %v, %v", created, err)
	}
	if tries.Load() != 3 || scope.Requests() != 3 {
		t.Errorf("%d tries, %d requests counted, want 3", tries.Load(), scope.Requests())
	}
	stats := g.Stats()[0]
	if stats.Rejected != 2 || stats.Window >= initialWindow || stats.InFlight != 0 {
		t.Errorf("stats %+v, want two rejections and a window below %v", stats, initialWindow)
	}
	var status *StatusError
	if !errors.As(scope.LastError(), &status) || status.Error() != "create /api/v1/namespaces/ns/pods: 429 Too Many Requests" {
		t.Errorf("last error %v", scope.LastError())
	}
}

// An eviction that a PodDisruptionBudget does not allow is no sign of load.
func TestEvictionIsNotCongestion(t *testing.T) {
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
	})
	g := New(openFence())
	client := newClient(t, g, cfg, "evicting-controller")
	err := client.PolicyV1().Evictions("ns").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
	if !apierrors.IsTooManyRequests(err) {
		t.Fatalf("error %v", err)
	}
	if s := g.Stats()[0]; s.Window != initialWindow || s.Rejected != 0 {
		t.Errorf("stats %+v, want an untouched window", s)
	}
}

func TestRetryAfterHeader(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "1": time.Second, "30": 30 * time.Second, "-1": 0, "Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {value}}}); got != want {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
}

// Watches do not use up the window, and are not held up by it.
func TestWatchesAreNotLimited(t *testing.T) {
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			echo(w, r)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	g := New(openFence())
	client := newClient(t, g, cfg, "watching-controller")
	l := g.client("watching-controller").limiter
	l.window = 1
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	now := time.Now()
	l.release(answer{start: now, end: now})
	if _, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{}); err != nil {
		t.Errorf("a get beside three watches: %v", err)
	}
	if got := g.Stats()[0]; got.InFlight != 0 || got.Requests != 4 {
		t.Errorf("stats %+v, want 4 requests and none in flight", got)
	}
	cancel()
}

// No more requests of a controller are under way than its window allows, unless the user has set a rate. One
// controller does not wait for another.
func TestWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*rest.Config)
		limited bool
	}{
		"no limit given":   {func(c *rest.Config) {}, true},
		"rate given":       {func(c *rest.Config) { c.QPS, c.Burst = 1000, 1000 }, false},
		"limiter given":    {func(c *rest.Config) { c.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter() }, false},
		"default rate":     {func(c *rest.Config) { c.QPS, c.Burst = 0, 0 }, false},
		"another's window": {func(c *rest.Config) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, answer := make(chan struct{}, 10), make(chan struct{})
			cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				arrived <- struct{}{}
				<-answer
				echo(w, r)
			})
			tc.change(cfg)
			g := New(openFence())
			client := newClient(t, g, cfg, "c")
			if name == "another's window" {
				client = newClient(t, g, cfg, "d")
			}
			g.client("c").limiter.window = 2
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() {
					if _, err := client.CoreV1().Pods("ns").Get(t.Context(), fmt.Sprint(i), metav1.GetOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
			if tc.limited {
				for g.Stats()[0].Waiting != 3 {
					time.Sleep(time.Millisecond)
				}
				if n := len(arrived); n > 2 {
					t.Errorf("%d requests under way, want no more than 2", n)
				}
			} else {
				for range 5 {
					<-arrived
				}
			}
			close(answer)
			wg.Wait()
		})
	}
}

// Who gives up while waiting gets the reason of its context.
func TestWaitCanceled(t *testing.T) {
	g := New(openFence())
	client := newClient(t, g, apiServer(t, echo), "c")
	g.client("c").limiter.window = 0
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	scope := NewScope("c", "k")
	_, err := client.CoreV1().Pods("ns").Create(WithScope(ctx, scope), pod("p"), metav1.CreateOptions{})
	if !errors.Is(err, context.DeadlineExceeded) || scope.Requests() != 0 {
		t.Errorf("error %v, %d requests sent", err, scope.Requests())
	}
}

// The transport must close the body also of a request that it does not send.
func TestBodyIsClosed(t *testing.T) {
	g := New(NewFence(nil))
	cfg := g.WrapConfig(&rest.Config{Host: "https://server"}, "c")
	rt := cfg.WrapTransport(http.DefaultTransport)
	body := &closeNoter{Reader: strings.NewReader("{}")}
	req := httptest.NewRequest(http.MethodPost, "https://server/api/v1/namespaces/ns/pods", body)
	if _, err := rt.RoundTrip(req); !errors.Is(err, ErrFenced) || !body.closed {
		t.Errorf("error %v, body closed: %v", err, body.closed)
	}
}

type closeNoter struct {
	io.Reader
	closed bool
}

func (c *closeNoter) Close() error {
	c.closed = true
	return nil
}

// Requests are told apart by user agent, metrics and scope; the configuration that was wrapped is left alone.
func TestAttribution(t *testing.T) {
	var agent atomic.Value
	cfg := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		if strings.HasSuffix(r.URL.Path, "/missing") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		echo(w, r)
	})
	g := New(openFence())
	resetMetrics()
	client := newClient(t, g, cfg, "named-controller")
	if cfg.WrapTransport != nil || cfg.UserAgent != "" {
		t.Error("WrapConfig changed its argument")
	}
	scope := NewScope("named-controller", "k")
	ctx := WithScope(t.Context(), scope)
	if ScopeFrom(ctx) != scope || ScopeFrom(t.Context()) != nil {
		t.Error("the scope is not that of the context")
	}
	pods := client.CoreV1().Pods("ns")
	_, err := pods.Create(ctx, pod("p"), metav1.CreateOptions{})
	_, notFound := pods.Get(ctx, "missing", metav1.GetOptions{})
	if err != nil || !apierrors.IsNotFound(notFound) {
		t.Errorf("create: %v, get: %v", err, notFound)
	}
	if got := agent.Load().(string); got != rest.DefaultKubernetesUserAgent()+"/named-controller" {
		t.Errorf("user agent %q", got)
	}
	if got := fmt.Sprint(scope.LastError()); got != "get /api/v1/namespaces/ns/pods/missing: 404 Not Found" {
		t.Errorf("last error %q", got)
	}
	for _, labels := range []map[string]string{
		{"controller": "named-controller", "verb": "create", "code": "200"},
		{"controller": "named-controller", "verb": "get", "code": "404"},
	} {
		if got, err := testutil.GetCounterMetricValue(requests.With(labels)); err != nil || got != 1 {
			t.Errorf("%v: %v, %v, want 1", labels, got, err)
		}
	}
	for _, verb := range []string{"create", "get"} {
		if got, err := testutil.GetHistogramMetricCount(requestDuration.WithLabelValues("named-controller", verb)); err != nil || got != 1 {
			t.Errorf("durations of %s: %d, %v, want 1", verb, got, err)
		}
	}
}

// A connection that cannot be made is counted and says nothing about the server's load.
func TestNoAnswer(t *testing.T) {
	g := New(openFence())
	resetMetrics()
	refused := errors.New("connection refused")
	cfg := &rest.Config{Host: "http://server", QPS: -1, Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused })}
	client := newClient(t, g, cfg, "unlucky-controller")
	scope := NewScope("unlucky-controller", "k")
	_, err := client.CoreV1().Pods("ns").Create(WithScope(t.Context(), scope), pod("p"), metav1.CreateOptions{})
	if !errors.Is(err, refused) || !errors.Is(scope.LastError(), refused) {
		t.Errorf("error %v, last error %v", err, scope.LastError())
	}
	if got, err := testutil.GetCounterMetricValue(requests.WithLabelValues("unlucky-controller", "create", "error")); err != nil || got != 1 {
		t.Errorf("counted %v, %v, want 1", got, err)
	}
	if s := g.Stats()[0]; s.Window != initialWindow || s.InFlight != 0 {
		t.Errorf("stats %+v", s)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A context without a scope is counted nowhere, and breaks nothing.
func TestNilScope(t *testing.T) {
	var s *Scope
	s.sent(true)
	s.refuse(ErrFenced)
	s.failed(ErrFenced)
	if s.Requests() != 0 || s.Writes() != 0 || s.Refused() != 0 || s.LastError() != nil {
		t.Error("a nil scope counts")
	}
}
