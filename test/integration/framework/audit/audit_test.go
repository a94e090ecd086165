// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

// server writes an audit log as kube-apiserver does, line by line.
type server struct {
	t    *testing.T
	mu   sync.Mutex
	file *os.File
}

func newServer(t *testing.T) (*server, string) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &server{t: t, file: file}, path
}

func (s *server) write(id string, stage auditv1.Stage, agent, verb, resource string, at time.Duration) {
	event := auditv1.Event{
		AuditID: types.UID(id), Stage: stage, UserAgent: agent, Verb: verb,
		ObjectRef:                &auditv1.ObjectReference{Resource: resource, Namespace: "ns", Name: "x"},
		RequestReceivedTimestamp: metav1.NewMicroTime(time.Unix(0, 0).Add(at)),
		StageTimestamp:           metav1.NewMicroTime(time.Unix(0, 0).Add(at + time.Millisecond)),
	}
	if stage != auditv1.StageRequestReceived {
		event.ResponseStatus = &metav1.Status{Code: 200}
	}
	line, err := json.Marshal(event)
	if err != nil {
		s.t.Error(err)
	}
	s.raw(string(line) + "\n")
}

func (s *server) raw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Error(err)
	}
}

// marker logs a marker request as answered at once.
func (s *server) marker(_ context.Context, agent string) error {
	s.write(agent, auditv1.StageRequestReceived, agent, "get", "namespaces", 0)
	s.write(agent, auditv1.StageResponseComplete, agent, "get", "namespaces", 0)
	return nil
}

func TestSinceWaitsForWhatArrivedBefore(t *testing.T) {
	s, path := newServer(t)
	log := audit.NewLog(path, s.marker)
	s.write("early", auditv1.StageRequestReceived, "a", "create", "pods", 0)
	s.write("early", auditv1.StageResponseComplete, "a", "create", "pods", 0)
	mark, err := log.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// The answer of "slow" has been seen by its client, but its line comes late.
	s.write("slow", auditv1.StageRequestReceived, "a", "update", "pods", time.Second)
	type result struct {
		events audit.Events
		err    error
	}
	done := make(chan result)
	go func() {
		events, err := log.Since(t.Context(), mark)
		done <- result{events, err}
	}()
	select {
	case r := <-done:
		t.Fatalf("Since did not wait for the late line: %v %v", r.events, r.err)
	case <-time.After(50 * time.Millisecond): // it cannot be waited for that nothing happens
	}
	s.write("later", auditv1.StageRequestReceived, "a", "delete", "pods", 2*time.Second) // never answered: no matter
	s.write("slow", auditv1.StageResponseComplete, "a", "update", "pods", time.Second)
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	if len(r.events) != 1 || r.events[0].Verb != "update" {
		t.Errorf("got %v, want the update alone", r.events)
	}
}

func TestLogTakesLinesInPieces(t *testing.T) {
	s, path := newServer(t)
	s.raw(`{"auditID":"1","stage":"Response`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	// The marker's own lines cannot be there before the line in pieces is whole.
	var whole atomic.Bool
	log := audit.NewLog(path, func(ctx context.Context, agent string) error {
		if whole.Load() {
			return s.marker(ctx, agent)
		}
		return nil
	})
	if _, err := log.Mark(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without its marker Mark gave %v", err)
	}
	s.raw(`Complete","verb":"patch"}` + "\n")
	whole.Store(true)
	events, err := log.Since(t.Context(), 0)
	if err != nil || len(events) != 1 || events[0].Verb != "patch" {
		t.Errorf("got %v, %v", events, err)
	}
}

func TestBrokenLineIsAnError(t *testing.T) {
	s, path := newServer(t)
	s.raw("nonsense\n")
	if _, err := audit.NewLog(path, s.marker).Mark(t.Context()); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}

func event(user, agent, verb, group, resource, sub string, code int32, received, answered int64) audit.Event {
	e := audit.Event{Event: auditv1.Event{
		UserAgent: agent, Verb: verb,
		ObjectRef:                &auditv1.ObjectReference{APIGroup: group, Resource: resource, Subresource: sub, Namespace: "ns"},
		ResponseStatus:           &metav1.Status{Code: code},
		RequestReceivedTimestamp: metav1.NewMicroTime(time.UnixMicro(received)),
		StageTimestamp:           metav1.NewMicroTime(time.UnixMicro(answered)),
	}}
	e.User.Username = user
	return e
}

func TestFilters(t *testing.T) {
	events := audit.Events{
		event("admin", "kubectl", "create", "", "pods", "", 201, 1, 2),
		event("system:serviceaccount:kube-system:deployment-controller", "kcm/deployment", "update", "apps", "deployments", "status", 409, 3, 4),
		event("system:serviceaccount:kube-system:deployment-controller", "kcm/deployment", "list", "apps", "deployments", "", 200, 5, 6),
	}
	tests := []struct {
		name    string
		filters []audit.Filter
		want    int
	}{
		{"none", nil, 3},
		{"writes", []audit.Filter{audit.Writes()}, 2},
		{"user", []audit.Filter{audit.User("admin")}, 1},
		{"service account", []audit.Filter{audit.ServiceAccount("deployment-controller")}, 2},
		{"agent", []audit.Filter{audit.Agent("^kcm/")}, 2},
		{"verb", []audit.Filter{audit.Verb("list", "create")}, 2},
		{"resource", []audit.Filter{audit.Resource("deployments.apps/status")}, 1},
		{"core resource", []audit.Filter{audit.Resource("pods")}, 1},
		{"namespace", []audit.Filter{audit.Namespace("other")}, 0},
		{"code", []audit.Filter{audit.Code(409)}, 1},
		{"not", []audit.Filter{audit.Not(audit.Writes())}, 1},
		{"all of", []audit.Filter{audit.Writes(), audit.Agent("kcm")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := events.Where(tt.filters...); len(got) != tt.want {
				t.Errorf("got %d events, want %d:\n%s", len(got), tt.want, got)
			}
		})
	}
	if n := events.Count(func(e audit.Event) string { return e.Verb })["update"]; n != 1 {
		t.Errorf("counted %d updates", n)
	}
}

func TestCheckHandover(t *testing.T) {
	a := audit.Events{event("", "", "update", "", "pods", "", 200, 10, 20), event("", "", "update", "", "pods", "", 200, 11, 15)}
	tests := []struct {
		name          string
		before, after audit.Events
		ok            bool
	}{
		{"one after the other", a, audit.Events{event("", "", "update", "", "pods", "", 200, 21, 22)}, true},
		{"overlap with the last answer", a, audit.Events{event("", "", "update", "", "pods", "", 200, 19, 22)}, false},
		{"wrong way round", audit.Events{event("", "", "update", "", "pods", "", 200, 21, 22)}, a, false},
		{"nothing before", nil, a, false},
		{"nothing after", a, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := audit.CheckHandover(tt.before, tt.after); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
