// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const web = "---\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n"
	const other = "---\nkind: Pod\nmetadata:\n  name: a\n"
	tests := []struct {
		name          string
		first, second string
		want          []string
	}{
		{"equal", web + other, web + other, nil},
		{"order does not matter", web + other, other + web, nil},
		{"only the first", web + other, web, []string{"only in the first: Pod a", "- kind: Pod"}},
		{"only the second", web, web + other, []string{"only in the second: Pod a", "+ kind: Pod"}},
		{"a field", web, strings.Replace(web, "3", "4", 1), []string{"Deployment web:", "-   replicas: 3", "+   replicas: 4"}},
		{"one of two equals", web + other + other, web + other, []string{"only in the first: Pod a (2)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Diff(tt.first, tt.second)
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
