// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("there are %d scenarios, want 60 or more", len(all))
	}
	for _, s := range all {
		if _, err := s.In("another"); err != nil {
			t.Errorf("in another namespace: %v", err)
		}
	}
}

func TestParseTellsWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"unknown field":   {"about: x\nstep: []", "unknown field"},
		"no checkpoint":   {"about: x\nsteps: [{advance: 1s}]", "no checkpoint"},
		"no about":        {"steps: [{checkpoint: a}]", "about is empty"},
		"two in a step":   {"about: x\nsteps: [{checkpoint: a, advance: 1s}]", "must have one"},
		"unknown outcome": {"about: x\nsteps: [{pods: {become: tired}}, {checkpoint: a}]", "tired"},
		"empty wait":      {"about: x\nsteps: [{wait: {kind: Pod}}, {checkpoint: a}]", "none of is, gone, count"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("x", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestFieldsAre(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}},
		"status": map[string]any{
			"replicas":   int64(3),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
			"subsets":    []any{map[string]any{"addresses": []any{map[string]any{"ip": "x"}}}},
		},
	}
	tests := []struct {
		path string
		want any
		met  bool
	}{
		{"status.replicas", 3, true},
		{"status.replicas", 4, false},
		{"status.missing", "", true},
		{"status.conditions.Ready.status", "True", true},
		{"status.conditions.Other.status", "", true},
		{"status.subsets.0.addresses.0.ip", "x", true},
		{"status.subsets.0.addresses.1", "", true},
		{"metadata.labels.a.b/c", "d", true},
	}
	for _, tt := range tests {
		if met, seen := fieldsAre(object, map[string]any{tt.path: tt.want}); met != tt.met {
			t.Errorf("%s = %v: got %t (%s)", tt.path, tt.want, met, seen)
		}
	}
}

func TestScrubText(t *testing.T) {
	const text = `ns demo, demo-node, 2026-01-02T03:04:05Z, 10.96.3.4, 10.128.0.7, tick-29512345, 'pods "web-p5tgg" is forbidden'`
	const want = `ns <ns>, <ns>-node, <time>, <clusterIP>, <podIP>, tick-<minutes>, 'pods "web-<x>" is forbidden'`
	if got := scrubText(text, "demo"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
