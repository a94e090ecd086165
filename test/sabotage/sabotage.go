// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sabotage plants bugs: rules for the fault proxy between a manager and the API server that make a right manager
// behave as a wrong one. With them the suites show that they would tell.
package sabotage

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// in matches a path of a resource in a namespace, and what follows.
func in(namespace, resource string) *regexp.Regexp {
	return regexp.MustCompile(`/namespaces/` + regexp.QuoteMeta(namespace) + `/` + resource)
}

var hash = regexp.MustCompile(`pod-template-hash[^a-z0-9]+([a-z0-9]{8,10})`)

// WrongHash changes the hash of every ReplicaSet that is created, in its name, labels and selector.
func WrongHash(namespace string) faultproxy.Rule {
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"create"}, Path: in(namespace, "replicasets$")},
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

// DoubleCreate sends each pod that is created to the API server twice, in the controller's name. config says where the
// server is; its credentials are not used.
func DoubleCreate(namespace string, config *rest.Config) (faultproxy.Rule, error) {
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return faultproxy.Rule{}, err
	}
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"create"}, Path: in(namespace, "pods$")},
		Intercept: func(_ http.ResponseWriter, r *http.Request) bool {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err != nil {
				return false
			}
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			again.URL.Scheme, again.URL.Host, again.RequestURI = "https", strings.TrimPrefix(config.Host, "https://"), ""
			if response, err := transport.RoundTrip(again); err == nil {
				_ = response.Body.Close()
			}
			return false
		},
	}, nil
}

// LostDelete turns deletions of pods into reads, which are answered as well.
func LostDelete(namespace string) faultproxy.Rule {
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"delete"}, Path: in(namespace, "pods/")},
		Intercept: func(_ http.ResponseWriter, r *http.Request) bool {
			r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
			r.URL.RawQuery = ""
			return false
		},
	}
}
