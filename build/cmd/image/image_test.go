// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	const from = "ghcr.io/kcm-dev/kube-controller-manager:v1.37.2_kcm.1"
	for registry, want := range map[string]string{
		"localhost:5000":             "localhost:5000/kube-controller-manager:v1.37.2_kcm.1",
		"registry.example/mirrors/":  "registry.example/mirrors/kube-controller-manager:v1.37.2_kcm.1",
		"registry.example/a/b":       "registry.example/a/b/kube-controller-manager:v1.37.2_kcm.1",
		"registry.example/UPPERCASE": "",
	} {
		got, err := target(from, registry)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), registry) {
				t.Errorf("%s: got %v, %v; want an error that names it", registry, got, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v; want %s", registry, got, err, want)
		}
	}
	if _, err := target("", "localhost:5000"); err == nil {
		t.Error("an image without a name was given one")
	}
}

// Mistakes are one line that names the flag.
func TestBuildMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"build": `required flag(s) "binary", "layout", "status-file" not set`,
		"build --binary=amd64=x --layout=l --status-file=/nowhere": "--status-file: open /nowhere",
		"check":          "accepts 1 arg(s)",
		"check /nowhere": "reading the OCI layout /nowhere",
		"push /nowhere":  "accepts 2 arg(s)",
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}
