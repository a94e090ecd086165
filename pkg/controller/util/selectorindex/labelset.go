// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"slices"
	"strings"
)

// labelSet holds the pairs of a set of labels as "key=value", sorted and joined by commas, neither
// of which a key or a value can contain.
type labelSet string

// noLabels is the set without labels, apart from the empty string, which means no set at all.
const noLabels labelSet = ","

func newLabelSet(labels map[string]string) labelSet {
	if len(labels) == 0 {
		return noLabels
	}
	return labelSet(strings.Join(pairsOf(labels), ","))
}

func (s labelSet) pairs() []string {
	if s == noLabels || s == "" {
		return nil
	}
	return strings.Split(string(s), ",")
}

// pairsOf returns the pairs of labels, sorted.
func pairsOf(labels map[string]string) []string {
	pairs := make([]string, 0, len(labels))
	for key, value := range labels {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return pairs
}

// contains says whether all pairs of sub are in super; both are sorted.
func contains(super, sub []string) bool {
	for _, pair := range sub {
		for len(super) > 0 && super[0] < pair {
			super = super[1:]
		}
		if len(super) == 0 || super[0] != pair {
			return false
		}
	}
	return true
}
