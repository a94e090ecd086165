// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package clientbuilder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var accounts = schema.GroupResource{Resource: "serviceaccounts"}

// tokenServer grants numbered tokens.
type tokenServer struct {
	*fake.Clientset

	// mu guards the following fields.
	mu       sync.Mutex
	asked    int
	err      error
	lifetime int64
	// skew is how far the API server's clock is ahead.
	skew time.Duration
	// takes is how long an answer takes.
	takes time.Duration
}

func newTokenServer() *tokenServer {
	s := &tokenServer{Clientset: fake.NewClientset(), lifetime: tokenSeconds}
	s.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "token" {
			return false, nil, nil
		}
		request := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
		if ptr.Deref(request.Spec.ExpirationSeconds, 0) != tokenSeconds || len(request.Spec.Audiences) != 0 {
			return true, nil, fmt.Errorf("request %+v", request.Spec)
		}
		s.mu.Lock()
		s.asked++
		err, n, lifetime, takes := s.err, s.asked, s.lifetime, s.takes
		expires := time.Now().Add(time.Duration(lifetime)*time.Second + s.skew)
		s.mu.Unlock()
		time.Sleep(takes)
		if err != nil {
			return true, nil, err
		}
		answer := &authenticationv1.TokenRequest{}
		answer.Spec.ExpirationSeconds = &lifetime
		answer.Status.Token = fmt.Sprintf("token-%d", n)
		answer.Status.ExpirationTimestamp.Time = expires
		return true, answer, nil
	})
	return s
}

func (s *tokenServer) source() *tokenSource { return newTokenSource(s.CoreV1(), "kube-system", "sa") }

func (s *tokenServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func expectToken(t *testing.T, s *tokenSource, want string) {
	t.Helper()
	if got, err := s.get(t.Context()); got != want || err != nil {
		t.Errorf("token %q, %v, want %q", got, err, want)
	}
}

// A token serves until a fifth of its lifetime is left, whatever the API server's clock says.
func TestTokenIsRenewedInTime(t *testing.T) {
	for _, skew := range []time.Duration{0, -3 * time.Hour, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			server := newTokenServer()
			server.skew = skew
			s := server.source()
			expectToken(t, s, "token-1")
			time.Sleep(48*time.Minute - 1)
			expectToken(t, s, "token-1")
			time.Sleep(time.Nanosecond)
			expectToken(t, s, "token-2")
			if server.asked != 2 {
				t.Errorf("asked %d times, want 2", server.asked)
			}
		})
	}
}

// What counts is the lifetime that was granted, not the one that was asked for.
func TestGrantedLifetimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer()
		server.lifetime = 600
		s := server.source()
		expectToken(t, s, "token-1")
		time.Sleep(8*time.Minute - 1)
		expectToken(t, s, "token-1")
		time.Sleep(time.Nanosecond)
		expectToken(t, s, "token-2")
	})
}

// Many requests at a time cost one token.
func TestOneTokenForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer()
		server.takes = time.Second
		s := server.source()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { expectToken(t, s, "token-1") })
		}
		synctest.Wait() // one asks, the others wait
		wg.Go(func() {  // and who gives up waiting is let go
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := s.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline of the context", err)
			}
		})
		wg.Wait()
		if server.asked != 1 {
			t.Errorf("asked %d times, want once", server.asked)
		}
	})
}

// Failing requests are tried four times in 3.5 seconds; what the API server said is reported.
func TestTokenRequestIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, start := newTokenServer(), time.Now()
		server.err = apierrors.NewInternalError(errors.New("etcd is away"))
		s := server.source()
		_, err := s.get(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "requesting a token for ServiceAccount kube-system/sa: ") || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); server.asked != 4 || took != 3500*time.Millisecond {
			t.Errorf("asked %d times in %v, want 4 times in 3.5s", server.asked, took)
		}
		server.set(func() { server.err = nil })
		expectToken(t, s, "token-5")

		server.err = apierrors.NewForbidden(accounts, "sa", nil)
		server.asked = 0
		if _, err := server.source().get(t.Context()); !apierrors.IsForbidden(err) || server.asked != 1 {
			t.Errorf("asked %d times for what is forbidden, %v, want once", server.asked, err)
		}
	})
}

// A token that cannot be renewed is used as long as it is good.
func TestOldTokenIsUsedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer()
		s := server.source()
		expectToken(t, s, "token-1")
		time.Sleep(50 * time.Minute)
		server.set(func() { server.err = errors.New("connection refused") })
		expectToken(t, s, "token-1")
		asked, before := server.asked, time.Now()
		expectToken(t, s, "token-1")
		if server.asked != asked || time.Since(before) != 0 {
			t.Error("the next request waited for another try at once")
		}
		time.Sleep(renewPause)
		expectToken(t, s, "token-1")
		if server.asked == asked {
			t.Error("the renewal is not tried again")
		}
		time.Sleep(10 * time.Minute)
		if token, err := s.get(t.Context()); err == nil {
			t.Errorf("the expired token %q is used", token)
		}
		server.set(func() { server.err, server.asked = nil, 99 })
		expectToken(t, s, "token-100")
	})
}

// An account that was deleted is made again.
func TestDeletedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer()
		server.err = apierrors.NewNotFound(accounts, "sa")
		server.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() == "" {
				server.set(func() { server.err = nil })
			}
			return false, nil, nil
		})
		expectToken(t, server.source(), "token-2")
	})
}

// An answer of 401 costs the token that was sent, and only that.
func TestRejectedToken(t *testing.T) {
	server := newTokenServer()
	s := server.source()
	var sent []string
	code := http.StatusUnauthorized
	client := &http.Client{Transport: s.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))}
	request := httptest.NewRequest(http.MethodGet, "http://server/", nil)
	request.RequestURI = ""
	for range 2 {
		if _, err := client.Do(request); err != nil {
			t.Fatal(err)
		}
		code = http.StatusOK
	}
	s.rejected("token-1") // a late answer to the first
	if _, err := client.Do(request); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer token-1", "Bearer token-2", "Bearer token-2"}, sent); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if request.Header.Get("Authorization") != "" {
		t.Error("the caller's request was changed")
	}
}

// Without a token the request is not sent, and its body is closed.
func TestNoToken(t *testing.T) {
	server := newTokenServer()
	server.err = apierrors.NewForbidden(accounts, "sa", nil)
	rt := server.source().wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("sent without a token")
		return nil, errors.New("unexpected")
	}))
	body := &closeNoter{Reader: strings.NewReader("{}")}
	if _, err := rt.RoundTrip(httptest.NewRequest(http.MethodPost, "http://server/", body)); !apierrors.IsForbidden(err) || !body.closed {
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

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
