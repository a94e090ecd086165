// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed accepted.yaml
var acceptedYAML []byte

// Accepted is a difference that is meant, or that upstream's own runs show among each other.
type Accepted struct {
	// Scenarios is a regular expression for whole names; empty: all.
	Scenarios string `json:"scenarios"`
	// Lines is a regular expression for lines, without what is before and after them, which are not compared.
	Lines string `json:"lines"`
	// Reason is for maintainers.
	Reason string `json:"reason"`

	scenarios, lines *regexp.Regexp
}

// LoadAccepted reads accepted.yaml.
func LoadAccepted() ([]Accepted, error) { return parseAccepted(acceptedYAML) }

func parseAccepted(text []byte) ([]Accepted, error) {
	var list []Accepted
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		return nil, fmt.Errorf("accepted.yaml: %w", err)
	}
	var errs []error
	for i := range list {
		a := &list[i]
		var err error
		if a.scenarios, err = regexp.Compile("^(" + a.Scenarios + ")$"); err != nil {
			errs = append(errs, fmt.Errorf("accepted.yaml, entry %d: scenarios: %w", i+1, err))
		}
		if a.lines, err = regexp.Compile("^(" + a.Lines + ")$"); err != nil {
			errs = append(errs, fmt.Errorf("accepted.yaml, entry %d: lines: %w", i+1, err))
		}
		if a.Lines == "" || a.Reason == "" {
			errs = append(errs, fmt.Errorf("accepted.yaml, entry %d: lines and reason must be given", i+1))
		}
	}
	return list, errors.Join(errs...)
}

// without returns the text without the lines that the list accepts for the scenario.
func without(list []Accepted, scenario, text string) string {
	var kept strings.Builder
lines:
	for line := range strings.Lines(text) {
		for _, a := range list {
			if (a.Scenarios == "" || a.scenarios.MatchString(scenario)) && a.lines.MatchString(strings.TrimSpace(line)) {
				continue lines
			}
		}
		kept.WriteString(line)
	}
	return kept.String()
}
