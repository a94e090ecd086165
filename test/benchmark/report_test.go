// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"os"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	phase := func(seconds float64, writes int) []Phase {
		return []Phase{{Seconds: seconds, PeakRSS: 1 << 20, Requests: map[string]int{"create pods": writes, "list pods": 1}, Writes: writes}}
	}
	return &Report{
		Sides: []string{"upstream", "kcm"}, Rounds: 3, Titles: map[string]string{"x": "what x is"}, Modes: map[string]string{"equal": "equal flags"},
		Runs: []RunResult{
			{Scenario: "x", Mode: "equal", Side: "upstream", Round: 0, Phases: phase(2, 10)},
			{Scenario: "x", Mode: "equal", Side: "kcm", Round: 0, Phases: phase(1, 10)},
			{Scenario: "x", Mode: "equal", Side: "upstream", Round: 1, Phases: phase(4, 10)},
			{Scenario: "x", Mode: "equal", Side: "kcm", Round: 1, Phases: phase(1, 5)},
			{Scenario: "x", Mode: "equal", Side: "upstream", Round: 2, Phases: phase(100, 10)},
			{Scenario: "x", Mode: "equal", Side: "kcm", Round: 2, Error: "it broke\nhere"},
		},
	}
}

func row(t *testing.T, r *Report, metric string) Row {
	t.Helper()
	for _, row := range r.Rows() {
		if row.Metric.Name == metric {
			return row
		}
	}
	t.Fatalf("there is no row for %s", metric)
	return Row{}
}

func TestRowsCompareWithinARound(t *testing.T) {
	r := sample()
	time := row(t, r, "time")
	if time.Base != 3 || time.Other != 1 || time.Ratio != 0.375 || time.Min != 0.25 || time.Max != 0.5 {
		t.Errorf("got %+v; the round with a failure must not count", time)
	}
	if writes := row(t, r, "writes"); writes.Ratio != 0.75 || writes.Max != 1 {
		t.Errorf("got %+v", writes)
	}
	// A manager that is planted to be slow is told as slow.
	for i := range r.Runs {
		if r.Runs[i].Side == "kcm" && r.Runs[i].Error == "" {
			r.Runs[i].Phases[0].Seconds = 40
		}
	}
	if slow := row(t, r, "time"); slow.Min < 10 {
		t.Errorf("a manager that takes ten times as long is told as %s", slow.ratioText())
	}
	if cpu := row(t, r, "CPU"); cpu.Compared || cpu.ratioText() != "–" {
		t.Errorf("a ratio to nothing is told as %s", cpu.ratioText())
	}
}

func TestReportShowsAll(t *testing.T) {
	r := sample()
	page := r.Markdown()
	for _, want := range []string{"## x", "What x is.", "0.38 (0.25–0.50)", "equal flags", "## Failed runs", "round 3, kcm: it broke\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page is without %q:\n%s", want, page)
		}
	}
	if svg := r.SVG(); strings.Count(svg, "<rect") < 6 || !strings.HasSuffix(svg, "</svg>\n") {
		t.Errorf("the chart is\n%s", svg)
	}
}

func TestMergeFile(t *testing.T) {
	dir := t.TempDir()
	first, err := MergeFile(dir, sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Save(dir); err != nil {
		t.Fatal(err)
	}
	later := sample()
	later.Runs = later.Runs[:2]
	later.Runs[0].Scenario, later.Runs[1].Scenario = "y", "y"
	later.Titles = map[string]string{"y": "what y is"}
	merged, err := MergeFile(dir, later)
	if err != nil || len(merged.Runs) != 8 || merged.Titles["x"] == "" || merged.Titles["y"] == "" {
		t.Errorf("got %v, %d runs, titles %v", err, len(merged.Runs), merged.Titles)
	}
	again := sample()
	again.Runs = again.Runs[:2]
	if merged.Merge(again); len(merged.Runs) != 4 {
		t.Errorf("a scenario that is run again leaves %d runs, want 2 of its own and 2 of the other", len(merged.Runs))
	}
}

func TestSamplesOfThisProcess(t *testing.T) {
	cpu, err := cpuSeconds(os.Getpid())
	if err != nil || cpu < 0 {
		t.Errorf("CPU %v, %v", cpu, err)
	}
	m, err := memory(os.Getpid())
	if err != nil || m.private < 1<<20 || m.resident <= m.private || m.peak < m.resident {
		t.Errorf("memory %+v, %v", m, err)
	}
}

func TestLag(t *testing.T) {
	e := &Env{}
	if got := e.takeLag(); got != 0 {
		t.Errorf("lag %v of nothing, want 0", got)
	}
	for i := 200; i > 0; i-- {
		e.Observe(time.Duration(i) * time.Second)
	}
	if got := e.takeLag(); got != 198 {
		t.Errorf("lag %v, want the 198th of 200", got)
	}
	if got := e.takeLag(); got != 0 {
		t.Errorf("lag %v of the next phase, want 0", got)
	}
	r := sample()
	for _, row := range r.Rows() {
		if row.Metric.Name == lagMetric || row.Metric.Name == growthMetric {
			t.Errorf("a scenario without a %s is told with one", row.Metric.Name)
		}
	}
	for i := range r.Runs {
		for j := range r.Runs[i].Phases {
			r.Runs[i].Phases[j].Lag = 2
			r.Runs[i].Phases[j].Growth = 4 << 20
		}
	}
	if lag := row(t, r, lagMetric); lag.Ratio != 1 {
		t.Errorf("got %+v", lag)
	}
	if growth := row(t, r, growthMetric); growth.Ratio != 1 || growth.Base != 4<<20 {
		t.Errorf("got %+v", growth)
	}
	if !strings.Contains(r.SVG(), growthMetric) {
		t.Errorf("the chart does not show %s", growthMetric)
	}
}
