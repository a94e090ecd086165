// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// uniqueName makes a DNS label of the test's name that no other test has.
func uniqueName(t testing.TB) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	if len(name) > 40 {
		name = strings.TrimRight(name[:40], "-")
	}
	return name + "-" + rand.String(5)
}
