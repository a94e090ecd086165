// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server for tests of the manager's start, election and end: a cluster
// with nothing in it but the namespace "default", whose watches never say anything and that forgets
// what is written to it; but whose Leases are real, with resource versions and conflicts.
package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// Server is a running API server. Create it with New.
type Server struct {
	// URL is where the server listens, in plain HTTP.
	URL string

	http *httptest.Server
	// kinds are the kinds of the resources, as client-go knows them.
	kinds map[schema.GroupVersionResource]string

	// mu guards the following fields.
	mu        sync.Mutex
	unhealthy bool
	frozen    chan struct{} // nil, or closed when requests are answered again
	version   int
	leases    map[string]*coordinationv1.Lease
	requests  []string
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{leases: map[string]*coordinationv1.Lease{}, kinds: map[schema.GroupVersionResource]string{}}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		s.kinds[resource] = gvk.Kind
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Flags returns the manager's flags that connect it to the server, which speaks JSON only.
func (s *Server) Flags(t testing.TB) []string {
	t.Helper()
	return []string{"--kubeconfig=" + s.kubeconfig(t), "--kube-api-content-type=application/json"}
}

// kubeconfig writes a kubeconfig file for the server and returns its path.
func (s *Server) kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"users":[{"name":"u","user":{}}]}`, s.URL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// DropConnections closes all connections, idle ones included: client-go keeps them open beyond the
// life of a client.
func (s *Server) DropConnections() { s.http.CloseClientConnections() }

// SetHealthy says what /healthz answers.
func (s *Server) SetHealthy(healthy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unhealthy = !healthy
}

// Freeze keeps all requests waiting until the returned func is called.
func (s *Server) Freeze() (thaw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frozen := make(chan struct{})
	s.frozen = frozen
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.frozen = nil
		close(frozen)
	})
}

// Lease returns a copy of a Lease in kube-system, or nil.
func (s *Server) Lease(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy()
}

// Holder returns who holds a Lease in kube-system, "" if nobody does.
func (s *Server) Holder(name string) string {
	lease := s.Lease(name)
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// WaitForHolder waits until somebody holds a Lease, and returns who.
func (s *Server) WaitForHolder(t testing.TB, name string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holder := s.Holder(name); holder != "" {
			return holder
		}
	}
	t.Fatalf("nobody took the lease %s", name)
	return ""
}

// SetHolder overwrites the holder of a Lease, as nobody should. The holder has it for an hour; no holder gives it back.
func (s *Server) SetHolder(name, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := s.leases[name]
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: "uid"}}
	}
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, ptr.To[int32](3600)
	if holder == "" {
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	}
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	s.storeLocked(lease)
}

// Requests returns the requests so far, as "METHOD path".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	unhealthy, frozen := s.unhealthy, s.frozen
	s.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-r.Context().Done():
			return
		}
	}

	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	version, err := schema.ParseGroupVersion(apiVersion(r.URL.Path))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kind := s.kinds[version.WithResource(resource)]
	switch {
	case r.URL.Path == "/healthz" && unhealthy:
		http.Error(w, "not well", http.StatusInternalServerError)
	case r.URL.Path == "/healthz":
		fmt.Fprint(w, "ok")
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case strings.Contains(r.URL.Path, "/leases"):
		s.serveLease(w, r, resource)
	case r.URL.Query().Get("watch") != "":
		watch(w, r, resource, kind)
	case r.Method == http.MethodGet && kind != "":
		answer(w, http.StatusOK, map[string]any{
			"kind": kind + "List", "apiVersion": apiVersion(r.URL.Path),
			"metadata": map[string]any{"resourceVersion": "1"}, "items": items(resource),
		})
	case r.Method == http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		// An error here means that the client has gone.
		_, _ = io.Copy(w, r.Body)
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// items are the objects of a resource.
func items(resource string) []any {
	if resource != "namespaces" {
		return []any{}
	}
	return []any{map[string]any{
		"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "default", "uid": "1", "resourceVersion": "1"},
		"spec": map[string]any{"finalizers": []string{"kubernetes"}}, "status": map[string]any{"phase": "Active"},
	}}
}

// watch sends what a streamed list is, and then nothing until the client goes.
func watch(w http.ResponseWriter, r *http.Request, resource, kind string) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, item := range items(resource) {
			// An error here means that the client has gone.
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": item})
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1","annotations":{%q:"true"}}}}`+"\n",
			kind, apiVersion(r.URL.Path), metav1.InitialEventsAnnotationKey)
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

func (s *Server) serveLease(w http.ResponseWriter, r *http.Request, name string) {
	if r.URL.Query().Get("watch") != "" {
		watch(w, r, "leases", "Lease")
		return
	}
	var sent coordinationv1.Lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusUnsupportedMediaType)
			return
		}
		name = sent.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, exists := s.leases[name]
	switch {
	case r.Method == http.MethodPost && exists:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case r.Method == http.MethodPost:
		sent.UID = "uid"
		answer(w, http.StatusCreated, s.storeLocked(&sent))
	case !exists:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPut && sent.ResourceVersion != stored.ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
	case r.Method == http.MethodPut:
		answer(w, http.StatusOK, s.storeLocked(&sent))
	default:
		answer(w, http.StatusOK, stored)
	}
}

func (s *Server) storeLocked(lease *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	lease.ResourceVersion = strconv.Itoa(s.version)
	lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	s.leases[lease.Name] = lease
	return lease
}

// apiVersion returns the version in /api/v1/… or /apis/group/version/….
func apiVersion(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" && len(parts) > 2 {
		return parts[1] + "/" + parts[2]
	}
	return "v1"
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error here means that the client has gone.
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: string(reason),
	})
}
