// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Options of a Proxy.
type Options struct {
	// Upstream says where the API server is and which CA signed its
	// certificate. Its credentials are not used.
	Upstream *rest.Config
	// ConfigFor gives the credentials with which the proxy forwards requests
	// of clients that showed a certificate of that user and groups.
	ConfigFor func(user string, groups ...string) (*rest.Config, error)
	// Tag, if set, is appended to the user agent of everything that goes
	// through, as " via/<tag>", so that the audit log can tell apart clients
	// with equal names.
	Tag string
}

// Proxy is a running fault proxy.
type Proxy struct {
	opts     Options
	upstream *url.URL
	caPEM    []byte
	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when server.Serve has returned
	info     *request.RequestInfoFactory

	handlers sync.WaitGroup // requests in flight

	mu sync.Mutex
	// mu guards the following fields.
	closed     bool
	rules      []*ActiveRule
	changed    chan struct{} // closed and replaced at each change of rules or counts
	watches    map[*openWatch]struct{}
	transports map[string]http.RoundTripper
}

// call is what rules see of a request.
type call struct {
	verb, path, userAgent, user string
	groups                      []string
	watch                       bool
}

type openWatch struct {
	call   call
	cancel context.CancelCauseFunc
}

type connKey struct{}

var errCut = errors.New("cut by a fault rule")

// Start starts a proxy on a free loopback port. The caller must Close it.
func Start(opts Options) (*Proxy, error) {
	if opts.Upstream == nil || opts.ConfigFor == nil {
		return nil, errors.New("starting fault proxy: Upstream and ConfigFor must be set")
	}
	upstream, _, err := rest.DefaultServerUrlFor(opts.Upstream)
	if err != nil {
		return nil, fmt.Errorf("starting fault proxy: API server's address %q: %w", opts.Upstream.Host, err)
	}
	caPEM, cert, err := newServingCert()
	if err != nil {
		return nil, fmt.Errorf("starting fault proxy: making a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting fault proxy: %w", err)
	}
	p := &Proxy{
		opts:     opts,
		upstream: &url.URL{Scheme: upstream.Scheme, Host: upstream.Host},
		caPEM:    caPEM,
		listener: listener,
		served:   make(chan struct{}),
		info: &request.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
		changed:    make(chan struct{}),
		watches:    map[*openWatch]struct{}{},
		transports: map[string]http.RoundTripper{},
	}
	quiet := log.New(io.Discard, "", 0) // cut connections are what the proxy is for
	p.server = &http.Server{
		Handler:  p,
		ErrorLog: quiet,
		// The certificate says who the client claims to be. It is not verified: the
		// proxy serves the tests of one process on loopback.
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert},
			ClientAuth:   tls.RequestClientCert,
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"h2", "http/1.1"},
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() {
		defer close(p.served)
		_ = p.server.ServeTLS(listener, "", "") // ErrServerClosed: Close was called
	}()
	return p, nil
}

// URL is the proxy's address, https://127.0.0.1:<port>.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// CAData is the PEM certificate of the CA that signed the proxy's certificate.
func (p *Proxy) CAData() []byte { return p.caPEM }

// Config returns a copy of a client's config that goes through the proxy.
func (p *Proxy) Config(direct *rest.Config) *rest.Config {
	cfg := rest.CopyConfig(direct)
	cfg.Host = p.URL()
	cfg.TLSClientConfig.CAFile = ""
	cfg.TLSClientConfig.CAData = p.caPEM
	cfg.TLSClientConfig.ServerName = ""
	return cfg
}

// Add takes up a rule. An impossible rule is an error of the test's author and panics.
func (p *Proxy) Add(r Rule) *ActiveRule {
	if err := r.validate(); err != nil {
		panic("faultproxy: " + err.Error())
	}
	a := &ActiveRule{proxy: p, rule: r, removed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, a)
	p.changedLocked()
	return a
}

// CutWatches cuts all open watches that match and returns their number.
func (p *Proxy) CutWatches(m Match) int {
	return p.eachWatch(m, func(w *openWatch) { w.cancel(errCut) })
}

// OpenWatches is the number of matching watches that are open now.
func (p *Proxy) OpenWatches(m Match) int {
	return p.eachWatch(m, func(*openWatch) {})
}

// eachWatch calls do for all open watches that match and returns their number.
func (p *Proxy) eachWatch(m Match, do func(*openWatch)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for w := range p.watches {
		if m.matches(w.call) {
			do(w)
			n++
		}
	}
	return n
}

// Close cuts everything in flight, stops serving and waits for all goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	rules := append([]*ActiveRule(nil), p.rules...)
	transports := p.transports
	p.mu.Unlock()
	for _, r := range rules {
		r.Remove()
	}
	p.CutWatches(Match{})
	_ = p.server.Close()
	<-p.served
	p.handlers.Wait()
	for _, t := range transports {
		utilnet.CloseIdleConnectionsFor(t)
	}
}

// changedLocked wakes all who wait for a change of rules or counts.
func (p *Proxy) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// enter counts a request in; false when the proxy is closing.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.handlers.Add(1)
	return true
}

// ServeHTTP implements http.Handler: it applies the rules and forwards.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.handlers.Done()
	c := p.describe(r)
	fault := p.pick(c)

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if c.watch {
		defer p.track(&openWatch{call: c, cancel: cancel})()
	}
	r = r.WithContext(ctx)
	if fault == nil {
		p.forward(w, r, c, Rule{})
		return
	}
	if !fault.pause(ctx) {
		panic(http.ErrAbortHandler)
	}
	switch rule := fault.rule; {
	case rule.Status != 0:
		answer(w, r.Method, rule)
	case rule.Drop == DropBefore:
		cut(r, rule)
	case rule.Intercept != nil && rule.Intercept(w, r):
	default:
		p.forward(w, r, c, rule)
	}
}

// pause carries out Delay and Hold; false when the client is gone.
func (a *ActiveRule) pause(ctx context.Context) bool {
	if a.rule.Delay > 0 && !sleep(ctx, a.rule.Delay) {
		return false
	}
	if a.rule.Hold {
		select {
		case <-a.removed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// cut ends the request without an answer.
func cut(r *http.Request, rule Rule) {
	if rule.CutConnection {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			_ = conn.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// describe reads from a request what rules look at.
func (p *Proxy) describe(r *http.Request) call {
	c := call{path: r.URL.Path, userAgent: r.UserAgent(), verb: strings.ToLower(r.Method)}
	if info, err := p.info.NewRequestInfo(r); err == nil {
		c.verb = info.Verb
		c.watch = info.IsResourceRequest && info.Verb == "watch"
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		subject := r.TLS.PeerCertificates[0].Subject
		c.user, c.groups = subject.CommonName, subject.Organization
	}
	return c
}

// pick counts the request in every matching rule and returns the first with a fault.
func (p *Proxy) pick(c call) *ActiveRule {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *ActiveRule
	counted := false
	for _, r := range p.rules {
		if r.spentLocked() || !r.rule.Match.matches(c) {
			continue
		}
		if r.skipped < r.rule.Skip {
			r.skipped++
			continue
		}
		if r.rule.hasRequestFault() {
			if first != nil {
				continue // Times counts requests that the rule befell
			}
			first = r
		}
		r.hits++
		counted = true
	}
	if counted {
		p.changedLocked()
	}
	return first
}

// track registers an open watch and returns what ends the registration.
func (p *Proxy) track(w *openWatch) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
	}
}

// forward sends the request on and copies the answer back, event by event for a watch.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, c call, rule Rule) {
	transport, err := p.transportFor(c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	ctx := r.Context()
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(p.upstream)
			if c.watch { // Events can be told apart only where they are not compressed.
				pr.Out.Header.Del("Accept-Encoding")
			}
			if p.opts.Tag != "" {
				pr.Out.Header.Set("User-Agent", c.userAgent+" via/"+p.opts.Tag)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if rule.Drop == DropAfter {
				return errCut
			}
			if c.watch && resp.StatusCode == http.StatusOK {
				resp.Body = p.newEventReader(ctx, c, resp)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			// Either a rule or the client cut it, or the server is gone: the client
			// sees what it would see without a proxy, a broken connection.
			cut(r, rule)
		},
	}
	proxy.ServeHTTP(w, r)
}

// transportFor returns the way to the server with the client's identity.
func (p *Proxy) transportFor(c call) (http.RoundTripper, error) {
	key := strings.Join(append([]string{c.user}, c.groups...), "\x00")
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.transports[key]; ok {
		return t, nil
	}
	cfg := rest.AnonymousClientConfig(p.opts.Upstream)
	if c.user != "" {
		var err error
		if cfg, err = p.opts.ConfigFor(c.user, c.groups...); err != nil {
			return nil, fmt.Errorf("credentials for user %q: %w", c.user, err)
		}
	}
	// The client's own limits and user agent count, not those of this hop; and
	// compression stays what the client asked for.
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.DisableCompression = "", true
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("TLS for user %q: %w", c.user, err)
	}
	// A transport of its own: client-go's cache would share connections with,
	// and keep them open for, the rest of the process.
	t := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig, DisableCompression: true})
	p.transports[key] = t
	return t, nil
}
