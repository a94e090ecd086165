// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"net/http/httptest"
	"testing"
)

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		method, url string
		want        call
	}{
		{"GET", "/api/v1/namespaces/ns/pods/p", call{verb: "get", class: "get /pods"}},
		{"GET", "/api/v1/namespaces/ns/pods", call{verb: "list"}},
		{"GET", "/apis/apps/v1/deployments?limit=500", call{verb: "list"}},
		{"GET", "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true", call{verb: "watch", stream: true}},
		{"GET", "/apis/apps/v1/deployments?watch=1&sendInitialEvents=true", call{verb: "watch", stream: true}},
		{"GET", "/apis/coordination.k8s.io/v1/namespaces/ns/leases?fieldSelector=metadata.name%3Dn&watch=true", call{verb: "watch", stream: true}},
		{"GET", "/api/v1/namespaces/ns/pods/p/log?follow=true", call{verb: "get", stream: true}},
		{"POST", "/api/v1/namespaces/ns/pods/p/exec", call{verb: "create", write: true, stream: true}},
		{"POST", "/api/v1/namespaces/ns/pods", call{verb: "create", write: true, class: "create /pods"}},
		{"POST", "/api/v1/namespaces/ns/pods/p/eviction", call{verb: "create", write: true, budgeted: true, class: "create /pods/eviction"}},
		{"PUT", "/apis/apps/v1/namespaces/ns/deployments/d/status", call{verb: "update", write: true, class: "update apps/deployments/status"}},
		{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", call{verb: "patch", write: true, class: "patch apps/deployments"}},
		{"DELETE", "/api/v1/namespaces/ns/pods/p", call{verb: "delete", write: true, class: "delete /pods"}},
		{"DELETE", "/api/v1/namespaces/ns/pods", call{verb: "deletecollection", write: true}},
		{"POST", "/api/v1/namespaces/kube-system/serviceaccounts/job-controller/token", call{verb: "create", class: "create /serviceaccounts/token"}},
		{"POST", "/api/v1/namespaces/kube-system/serviceaccounts", call{verb: "create", write: true, class: "create /serviceaccounts"}},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", call{verb: "create", class: "create authentication.k8s.io/tokenreviews"}},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", call{verb: "create", class: "create authorization.k8s.io/subjectaccessreviews"}},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews", call{verb: "create", class: "create authorization.k8s.io/localsubjectaccessreviews"}},
		{"DELETE", "/apis/authentication.k8s.io/v1/tokenreviews", call{verb: "deletecollection", write: true}},
		{"GET", "/healthz", call{verb: "get"}},
		{"GET", "/apis", call{verb: "get"}},
		{"POST", "/unheard/of", call{verb: "post", write: true}},
		// Behind a proxy that serves the API under a path of its own.
		{"POST", "/k8s/clusters/c-1/api/v1/namespaces/ns/pods", call{verb: "create", write: true, class: "create /pods"}},
		{"GET", "/k8s/clusters/c-1/apis/apps/v1/deployments?watch=true", call{verb: "watch", stream: true}},
	} {
		if got := classify(httptest.NewRequest(tc.method, "https://server"+tc.url, nil)); got != tc.want {
			t.Errorf("%s %s: %+v, want %+v", tc.method, tc.url, got, tc.want)
		}
	}
}
