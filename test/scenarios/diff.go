// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// around is how many equal lines a diff shows before and after those that differ.
const around = 2

// Diff shows what differs between two streams of YAML documents, by object: "-" is the first, "+" the second. "" if nothing.
func Diff(first, second string) string {
	a, b := byObject(first), byObject(second)
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		left, hasLeft := a[name]
		right, hasRight := b[name]
		switch {
		case !hasLeft:
			fmt.Fprintf(&out, "only in the second: %s\n%s", name, indent("+ ", right))
		case !hasRight:
			fmt.Fprintf(&out, "only in the first: %s\n%s", name, indent("- ", left))
		case left != right:
			fmt.Fprintf(&out, "%s:\n%s", name, Lines(left, right))
		}
	}
	return out.String()
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind: (.+)$`)
	nameLine = regexp.MustCompile(`(?m)^  name: (.+)$`)
)

// byObject splits a stream into its documents by kind and name.
func byObject(stream string) map[string]string {
	objects := map[string]string{}
	for document := range strings.SplitSeq(stream, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		name := "?"
		if kind, called := kindLine.FindStringSubmatch(document), nameLine.FindStringSubmatch(document); kind != nil && called != nil {
			name = kind[1] + " " + called[1]
		}
		for base, n := name, 2; objects[name] != ""; n++ {
			name = fmt.Sprintf("%s (%d)", base, n)
		}
		objects[name] = document
	}
	return objects
}

func indent(with, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(with + line)
	}
	return b.String()
}

// Lines is a line diff of two texts with some lines around what differs.
func Lines(left, right string) string {
	a, b := strings.Split(strings.TrimSpace(left), "\n"), strings.Split(strings.TrimSpace(right), "\n")
	lines := align(a, b)
	shown := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] != ' ' {
			for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
				shown[j] = true
			}
		}
	}
	var out strings.Builder
	for i, line := range lines {
		switch {
		case shown[i]:
			out.WriteString("  " + line + "\n")
		case i > 0 && shown[i-1]:
			out.WriteString("    …\n")
		}
	}
	return out.String()
}

// align returns the lines of both texts with " ", "-" or "+" before each, by their longest common subsequence.
func align(a, b []string) []string {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			lines = append(lines, "  "+a[i])
			i++
			j++
		case common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+a[i])
			i++
		default:
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	for ; i < len(a); i++ {
		lines = append(lines, "- "+a[i])
	}
	for ; j < len(b); j++ {
		lines = append(lines, "+ "+b[j])
	}
	return lines
}
