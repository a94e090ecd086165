// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const web = "---\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n"
	const other = "---\nkind: Pod\nmetadata:\n  name: a\n"
	tests := []struct {
		name           string
		upstream, ours string
		want           []string
	}{
		{"equal", web + other, web + other, nil},
		{"order does not matter", web + other, other + web, nil},
		{"only upstream", web + other, web, []string{"only with upstream: Pod a", "- kind: Pod"}},
		{"only ours", web, web + other, []string{"only with ours: Pod a", "+ kind: Pod"}},
		{"a field", web, strings.Replace(web, "3", "4", 1), []string{"Deployment web:", "-   replicas: 3", "+   replicas: 4"}},
		{"one of two equals", web + other + other, web + other, []string{"only with upstream: Pod a (2)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Diff(tt.upstream, tt.ours)
			if len(tt.want) == 0 && got != "" {
				t.Errorf("got a difference:\n%s", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got, without %q:\n%s", want, got)
				}
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	list, err := parseAccepted([]byte(`[{scenarios: "a|b", lines: "Event .*", reason: why}, {lines: everywhere, reason: why}]`))
	if err != nil {
		t.Fatal(err)
	}
	const text = "Event x\n  everywhere\nkept: Event y\n"
	for scenario, want := range map[string]string{"a": "kept: Event y\n", "ab": "Event x\nkept: Event y\n"} {
		if got := without(list, scenario, text); got != want {
			t.Errorf("%s: got %q, want %q", scenario, got, want)
		}
	}
	if _, err := parseAccepted([]byte(`[{lines: "("}]`)); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("an entry without a reason and with a broken expression gives %v", err)
	}
	if _, err := LoadAccepted(); err != nil {
		t.Error(err)
	}
}
