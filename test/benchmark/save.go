// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Save writes result.json and result.svg into the folder.
func (r *Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "result.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "result.svg"), []byte(r.SVG()), 0o644),
	)
}

// Open reads the report in the folder; an error is os.ErrNotExist when there is none.
func Open(dir string) (*Report, error) {
	data, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the earlier report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading the earlier report: %w", err)
	}
	return &r, nil
}

// MergeFile returns the report in the folder with the later one's runs in it; the later one alone if there is none.
func MergeFile(dir string, later *Report) (*Report, error) {
	earlier, err := Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return later, nil
	}
	if err != nil {
		return nil, err
	}
	earlier.Merge(later)
	return earlier, nil
}

// SaveDocs writes benchmarks.md and benchmarks.svg into the folder.
func (r *Report) SaveDocs(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(r.Markdown()), 0o644),
		os.WriteFile(filepath.Join(dir, "benchmarks.svg"), []byte(r.SVG()), 0o644),
	)
}

// Markdown is the page for the documentation.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\n")
	fmt.Fprintf(&b, "Upstream's kube-controller-manager and this repository's, in turn, on the same machine and in the same run. Made by\n")
	fmt.Fprintf(&b, "`hack/benchmark.sh --docs`; [test/benchmark/doc.go](../test/benchmark/doc.go) says how it measures and how to add a scenario.\n\n")
	fmt.Fprintf(&b, "- date: %s\n- machine: %s\n- built with %s; rounds: up to %d; scale: %g\n", r.Date.Format("2006-01-02"), r.Machine, r.Go, r.Rounds, r.Scale)
	for _, mode := range Modes() {
		if title, ok := r.Modes[mode.Name]; ok {
			fmt.Fprintf(&b, "- mode `%s`: %s\n", mode.Name, title)
		}
	}
	if load := r.loads(); load != "" {
		fmt.Fprintf(&b, "- load average when runs began: %s; above the number of CPUs others worked, too, and times say little\n", load)
	}
	fmt.Fprintf(&b, "\nRatios are kcm to upstream, below 1 is less than upstream: the median of the rounds, and their range.\n\n")
	fmt.Fprintf(&b, "![the ratios as a chart](benchmarks.svg)\n")
	scenario := ""
	for _, row := range r.Rows() {
		if row.Scenario != scenario {
			scenario = row.Scenario
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| mode | phase | metric | upstream | kcm | ratio (min–max) |\n|---|---|---|---|---|---|\n", scenario, upper(r.Titles[scenario]))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.Mode, row.Phase, row.Metric.Name,
			row.Metric.Format(row.Base), row.Metric.Format(row.Other), row.ratioText())
	}
	if failed := r.Failed(); len(failed) > 0 {
		fmt.Fprintf(&b, "\n## Failed runs\n\n")
		for _, run := range failed {
			fmt.Fprintf(&b, "- %s/%s, round %d, %s: %s\n", run.Scenario, run.Mode, run.Round+1, run.Side, firstLine(run.Error))
		}
	}
	return b.String()
}

// loads is the range of the runs' load averages, "" if they are not known.
func (r *Report) loads() string {
	var loads []float64
	for _, run := range r.Runs {
		if load, err := strconv.ParseFloat(run.Load, 64); err == nil {
			loads = append(loads, load)
		}
	}
	if len(loads) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f–%.1f", slices.Min(loads), slices.Max(loads))
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
