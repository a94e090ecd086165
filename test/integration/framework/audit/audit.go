// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit reads the audit log of a test's API server, to prove what was
// and what was not asked of it: who wrote, how often, and with what result.
//
// ServerArgs gives the flags and the policy with which the API server must
// run; a Log follows the file. Mark and Since are exact: they return only when
// every request whose answer anyone has seen by then is in the log. No sleep
// can tell that, since a request is logged just after it is answered. The log
// therefore also has a line for each request's arrival, and the barrier waits
// until all that arrived before it have their second line.
//
// Concurrency: a Log may be used from many goroutines.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// markerAgent begins the user agent of the barrier's own requests.
const markerAgent = "audit-marker/"

// poll is how often the file is looked at while waiting.
const poll = 5 * time.Millisecond

// ServerArgs writes the policy into dir and returns the kube-apiserver flags
// that make it log there, and the path of the log.
//
// The policy: writes with the request's body (without it for Secrets and
// tokens), reads without; each with a line at its arrival and one when it is
// answered. Watches have one line, when they begin. Requests that are not for
// resources are not logged.
func ServerArgs(dir string) (args []string, path string, err error) {
	data, err := yaml.Marshal(policy())
	if err != nil {
		return nil, "", fmt.Errorf("encoding the audit policy: %w", err)
	}
	policyPath := filepath.Join(dir, "audit-policy-tests.yaml")
	if err := os.WriteFile(policyPath, data, 0o600); err != nil {
		return nil, "", fmt.Errorf("writing the audit policy: %w", err)
	}
	path = filepath.Join(dir, "audit-tests.log")
	return []string{
		"--audit-policy-file=" + policyPath,
		"--audit-log-path=" + path,
		"--audit-log-mode=blocking-strict",
		"--audit-log-maxsize=1000000", // in MB: never rotated
	}, path, nil
}

func policy() auditv1.Policy {
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return auditv1.Policy{
		TypeMeta: metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "Policy"},
		Rules: []auditv1.PolicyRule{
			{
				Level:      auditv1.LevelMetadata,
				Verbs:      []string{"watch"},
				OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseComplete},
			},
			{
				Level:      auditv1.LevelMetadata,
				Verbs:      writes,
				OmitStages: []auditv1.Stage{auditv1.StageResponseStarted},
				Resources: []auditv1.GroupResources{
					{Group: "", Resources: []string{"secrets", "serviceaccounts/token"}},
					{Group: "authentication.k8s.io"},
				},
			},
			{Level: auditv1.LevelRequest, Verbs: writes, OmitStages: []auditv1.Stage{auditv1.StageResponseStarted}},
			{
				Level:      auditv1.LevelMetadata,
				Verbs:      []string{"get", "list"},
				Resources:  []auditv1.GroupResources{}, // all
				OmitStages: []auditv1.Stage{auditv1.StageResponseStarted},
			},
		},
	}
}

// Log follows the audit log of one API server.
type Log struct {
	path   string
	marker func(ctx context.Context, userAgent string) error

	mu sync.Mutex
	// mu guards the following fields.
	offset  int64
	partial []byte                 // a line that the server is still writing
	pending map[types.UID]struct{} // arrived, not answered
	seen    map[string]barrier     // markers by user agent
	events  Events                 // in the order in which they were answered
	markers int
}

// barrier is what had arrived before a marker.
type barrier struct {
	before   map[types.UID]struct{} // requests that were pending when the marker arrived
	answered bool
}

// Mark is a place in the log.
type Mark int

// NewLog returns a Log of the file at path. marker sends one GET or LIST of any
// resource with the given user agent to the server.
func NewLog(path string, marker func(ctx context.Context, userAgent string) error) *Log {
	return &Log{path: path, marker: marker, pending: map[types.UID]struct{}{}, seen: map[string]barrier{}}
}

// Mark returns the present end of the log, after everything that has been answered so far.
func (l *Log) Mark(ctx context.Context) (Mark, error) {
	if err := l.flush(ctx); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark(len(l.events)), nil
}

// Since returns the requests that were answered after the mark, in the order of
// their answers, and all of them that have been answered by now. Mark 0 is the
// log's beginning. Watches count as answered when they begin.
func (l *Log) Since(ctx context.Context, m Mark) (Events, error) {
	if err := l.flush(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(Events(nil), l.events[m:]...), nil
}

// flush returns when every request that was answered before the call is in l.events.
func (l *Log) flush(ctx context.Context) error {
	l.mu.Lock()
	l.markers++
	agent := fmt.Sprintf("%s%d-%d", markerAgent, os.Getpid(), l.markers)
	l.mu.Unlock()
	if err := l.marker(ctx, agent); err != nil {
		return fmt.Errorf("audit log: sending the marker request: %w", err)
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		done, err := l.readUntil(agent)
		if done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("audit log %s: waiting for marker %s: %w", l.path, agent, context.Cause(ctx))
		}
	}
}

// readUntil reads what is new in the file, and tells whether the marker and all
// that arrived before it have been answered.
func (l *Log) readUntil(agent string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readLocked(); err != nil {
		return false, err
	}
	b, arrived := l.seen[agent]
	if !arrived || !b.answered {
		return false, nil
	}
	for id := range b.before {
		if _, waiting := l.pending[id]; waiting {
			return false, nil
		}
	}
	delete(l.seen, agent)
	return true, nil
}

// readLocked takes in the whole lines that were written since the last call.
func (l *Log) readLocked() error {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // no request yet
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, l.offset, 1<<62))
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.offset += int64(len(data))
	data = append(l.partial, data...)
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			l.partial = bytes.Clone(data)
			return nil
		}
		data = rest
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("audit log %s: %w in line %.200q", l.path, err, line)
		}
		l.takeLocked(event)
	}
}

func (l *Log) takeLocked(event auditv1.Event) {
	marker := len(event.UserAgent) > len(markerAgent) && event.UserAgent[:len(markerAgent)] == markerAgent
	if event.Stage == auditv1.StageRequestReceived {
		if marker {
			before := make(map[types.UID]struct{}, len(l.pending))
			for id := range l.pending {
				before[id] = struct{}{}
			}
			l.seen[event.UserAgent] = barrier{before: before}
			return
		}
		l.pending[event.AuditID] = struct{}{}
		return
	}
	if marker {
		b := l.seen[event.UserAgent]
		b.answered = true
		l.seen[event.UserAgent] = b
		return
	}
	delete(l.pending, event.AuditID)
	l.events = append(l.events, Event{event})
}
