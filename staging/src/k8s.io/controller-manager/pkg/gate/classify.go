// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// call is what the gate needs to know of a request.
type call struct {
	// verb is the API verb: get, list, watch, create, update, patch, delete, deletecollection; for paths that are no
	// resource, the HTTP method in lower case.
	verb string
	// write says that the request may change something that the API server stores.
	write bool
	// stream says that the request may stay open for long: a watch, a log, a port-forward.
	stream bool
	// budgeted says that an answer of 429 is not about load: an eviction is refused so by a PodDisruptionBudget.
	budgeted bool
	// class groups requests that take an API server about the same time while its load does not change. Empty for
	// those that belong to no such group: lists take as long as there are objects.
	class string
}

var (
	// reviews are created but not stored.
	reviews = sets.New("tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews",
		"selfsubjectrulesreviews", "selfsubjectreviews")
	// streams are subresources that are served for as long as their client wants.
	streams = sets.New("attach", "exec", "log", "portforward", "proxy")
	// resolver reads requests as API servers do.
	resolver = &apirequest.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
)

func classify(req *http.Request) call {
	info, err := resolver.NewRequestInfo(withoutPrefix(req))
	if err != nil || !info.IsResourceRequest {
		return call{verb: strings.ToLower(req.Method), write: modifies(req.Method)}
	}
	c := call{
		verb:   info.Verb,
		write:  modifies(req.Method),
		stream: info.Verb == "watch" || info.Verb == "proxy" || streams.Has(info.Subresource),
		// policy/v1 Eviction is a subresource of pods alone.
		budgeted: info.Resource == "pods" && info.Subresource == "eviction",
	}
	if c.verb == "create" && (reviews.Has(info.Resource) || info.Resource == "serviceaccounts" && info.Subresource == "token") {
		c.write = false
	}
	if !c.stream && c.verb != "list" && c.verb != "deletecollection" {
		c.class = strings.TrimSuffix(c.verb+" "+info.APIGroup+"/"+info.Resource+"/"+info.Subresource, "/")
	}
	return c
}

func modifies(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return false
	default:
		return true
	}
}

// withoutPrefix returns the request as an API server sees it that a proxy serves under a path of its own.
func withoutPrefix(req *http.Request) *http.Request {
	if strings.HasPrefix(req.URL.Path, "/api/") || strings.HasPrefix(req.URL.Path, "/apis/") {
		return req
	}
	for _, root := range []string{"/api/", "/apis/"} {
		if i := strings.Index(req.URL.Path, root); i > 0 {
			url := *req.URL
			url.Path = url.Path[i:]
			short := *req
			short.URL = &url
			return &short
		}
	}
	return req
}
