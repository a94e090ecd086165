// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strings"
	"testing"
)

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
