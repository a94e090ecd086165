// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package clientbuilder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// tokenSeconds is the lifetime that a token is requested with.
	tokenSeconds = 3600
	// leewayPercent is how much of its lifetime a token has left when it is renewed.
	leewayPercent = 20
	// minTokenLifetime is the shortest lifetime that an API server is expected to grant.
	minTokenLifetime = 10 * time.Minute
	// renewPause is how long a token that cannot be renewed is used on before the next try.
	renewPause = 10 * time.Second
)

// tokenBackoff spaces the tries of one token request.
func tokenBackoff() utilwait.Backoff {
	return utilwait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Steps: 4}
}

// tokenSource keeps the current token of one ServiceAccount.
type tokenSource struct {
	client          corev1client.CoreV1Interface
	namespace, name string

	// requesting is held, by sending to it, by whoever requests a token; the others wait for the result.
	requesting chan struct{}

	// mu guards current.
	mu      sync.Mutex
	current token
}

// token is a bearer token with times of the local monotonic clock, so that it does not matter how far this host's
// clock and the API server's are apart.
type token struct {
	bearer string
	// renew is when to request the next one; the token is good until expires.
	renew, expires time.Time
}

func newTokenSource(client corev1client.CoreV1Interface, namespace, name string) *tokenSource {
	return &tokenSource{client: client, namespace: namespace, name: name, requesting: make(chan struct{}, 1)}
}

// get returns a token that is good now, and requests one if it has to. While a token is still good that should have
// been renewed but could not be, it is used.
func (s *tokenSource) get(ctx context.Context) (string, error) {
	if t := s.peek(); time.Now().Before(t.renew) {
		return t.bearer, nil
	}
	select {
	case s.requesting <- struct{}{}:
		defer func() { <-s.requesting }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	old := s.peek()
	if time.Now().Before(old.renew) {
		return old.bearer, nil
	}
	fresh, err := s.request(ctx)
	if err == nil {
		s.set(fresh)
		return fresh.bearer, nil
	}
	if now := time.Now(); now.Before(old.expires) {
		klog.FromContext(ctx).Error(err, "Cannot renew the token, using the old one", "serviceAccount", klog.KRef(s.namespace, s.name), "expiresIn", old.expires.Sub(now).Round(time.Second))
		old.renew = earlier(now.Add(renewPause), old.expires)
		s.set(old)
		return old.bearer, nil
	}
	return "", err
}

// request asks for a token until it gets one, for as many tries as tokenBackoff has.
func (s *tokenSource) request(ctx context.Context) (token, error) {
	var result token
	var last error
	err := utilwait.ExponentialBackoffWithContext(ctx, tokenBackoff(), func(ctx context.Context) (bool, error) {
		result, last = s.requestOnce(ctx)
		if last == nil {
			return true, nil
		}
		klog.FromContext(ctx).V(2).Info("Token request failed", "serviceAccount", klog.KRef(s.namespace, s.name), "err", last)
		if apierrors.IsForbidden(last) {
			return false, last // asking again in a second does not help
		}
		if apierrors.IsNotFound(last) {
			// Somebody has deleted the account since the client was built.
			return false, ensureServiceAccount(ctx, s.client, s.namespace, s.name)
		}
		return false, nil
	})
	if err != nil {
		return token{}, fmt.Errorf("requesting a token for ServiceAccount %s/%s: %w", s.namespace, s.name, cause(ctx, err, last))
	}
	return result, nil
}

func (s *tokenSource) requestOnce(ctx context.Context) (token, error) {
	start := time.Now()
	answer, err := s.client.ServiceAccounts(s.namespace).CreateToken(ctx, s.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)},
	}, metav1.CreateOptions{})
	if err != nil {
		return token{}, err
	}
	lifetime := time.Duration(ptr.Deref(answer.Spec.ExpirationSeconds, tokenSeconds)) * time.Second
	if answer.Status.Token == "" || lifetime <= 0 {
		return token{}, fmt.Errorf("the API server granted no token or no lifetime (%v)", lifetime)
	}
	if lifetime < minTokenLifetime {
		klog.FromContext(ctx).Info("Granted lifetime of a token is short", "serviceAccount", klog.KRef(s.namespace, s.name), "lifetime", lifetime)
	}
	return token{
		bearer:  answer.Status.Token,
		renew:   start.Add(lifetime * (100 - leewayPercent) / 100),
		expires: start.Add(lifetime),
	}, nil
}

// cause prefers what the API server said last to the fact that the tries are used up.
func cause(ctx context.Context, err, last error) error {
	switch {
	case last == nil || errors.Is(err, last):
		return err
	case ctx.Err() == nil && utilwait.Interrupted(err):
		return last
	default:
		return errors.Join(err, last)
	}
}

func (s *tokenSource) peek() token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *tokenSource) set(t token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = t
}

// rejected forgets a token that the API server did not accept, unless it has been replaced already.
func (s *tokenSource) rejected(bearer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.bearer == bearer {
		s.current = token{}
	}
}

func (s *tokenSource) wrap(next http.RoundTripper) http.RoundTripper {
	return &bearerTransport{next: next, tokens: s}
}

// bearerTransport authenticates requests by the token of the moment.
type bearerTransport struct {
	next   http.RoundTripper
	tokens *tokenSource
}

// RoundTrip implements http.RoundTripper.
func (t *bearerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	bearer, err := t.tokens.get(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // the request is not sent: there is nobody to tell
		}
		return nil, err
	}
	authenticated := req.Clone(req.Context())
	authenticated.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := t.next.RoundTrip(authenticated)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.tokens.rejected(bearer)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the connections beneath, to close idle ones.
func (t *bearerTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
