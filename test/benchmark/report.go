// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a Plan, as it is written to JSON.
type Report struct {
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Go      string    `json:"go"`
	Rounds  int       `json:"rounds"`
	Scale   float64   `json:"scale"`
	// Sides in the order of a round; the first is the measure.
	Sides []string `json:"sides"`
	// Titles of the scenarios by name, Modes by name.
	Titles map[string]string `json:"titles"`
	Modes  map[string]string `json:"modes"`
	Runs   []RunResult       `json:"runs"`
}

// RunResult is one run of a scenario with one side.
type RunResult struct {
	Scenario string `json:"scenario"`
	Mode     string `json:"mode"`
	Side     string `json:"side"`
	Round    int    `json:"round"`
	// Load is the machine's one-minute load average when the run began.
	Load   string  `json:"load"`
	Phases []Phase `json:"phases,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Phase is what one Measure has found. Bytes and seconds.
type Phase struct {
	Name       string         `json:"name,omitempty"`
	Seconds    float64        `json:"seconds"`
	CPUSeconds float64        `json:"cpuSeconds"`
	RSS        float64        `json:"rss"`
	PeakRSS    float64        `json:"peakRSS"`
	Private    float64        `json:"private"`
	Heap       float64        `json:"heap"`
	Writes     int            `json:"writes"`
	Requests   map[string]int `json:"requests"`
	// Lag is the 99th percentile of what Env.Observe was told, in seconds. 0: nothing was.
	Lag float64 `json:"lag,omitempty"`
	// Growth is how many more bytes of the heap live than before, of a phase of Env.MeasureGrowth.
	Growth float64 `json:"growth,omitempty"`
}

// total is the number of all requests.
func (p Phase) total() float64 {
	n := 0
	for _, count := range p.Requests {
		n += count
	}
	return float64(n)
}

// String is a line for whoever watches.
func (r RunResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s round %d %-8s", r.Scenario, r.Mode, r.Round+1, r.Side)
	for _, p := range r.Phases {
		fmt.Fprintf(&b, " | %s %.2fs cpu %.2fs peak %s heap %s requests %.0f (writes %d)",
			p.Name, p.Seconds, p.CPUSeconds, mib(p.PeakRSS), mib(p.Heap), p.total(), p.Writes)
		if p.Lag > 0 {
			fmt.Fprintf(&b, " lag %.3fs", p.Lag)
		}
		if p.Growth != 0 {
			fmt.Fprintf(&b, " live heap +%s", mib(p.Growth))
		}
	}
	if r.Error != "" {
		fmt.Fprintf(&b, " | FAILED: %s", r.Error)
	}
	return b.String()
}

func newReport(p Plan) *Report {
	r := &Report{
		Date: time.Now().UTC().Truncate(time.Second), Machine: machine(), Go: runtime.Version(), Rounds: p.Rounds, Scale: p.Scale,
		Titles: map[string]string{}, Modes: map[string]string{},
	}
	for _, side := range p.Sides {
		r.Sides = append(r.Sides, side.Name)
	}
	for _, s := range p.Scenarios {
		r.Titles[s.Name] = s.Title
	}
	for _, mode := range p.Modes {
		r.Modes[mode.Name] = mode.Title
	}
	return r
}

// Merge adds the runs of a later report; a scenario and mode that both have is the later one's.
func (r *Report) Merge(later *Report) {
	has := func(run RunResult) bool {
		return slices.ContainsFunc(later.Runs, func(l RunResult) bool { return l.Scenario == run.Scenario && l.Mode == run.Mode })
	}
	r.Runs = append(slices.DeleteFunc(r.Runs, has), later.Runs...)
	r.Date, r.Machine, r.Go, r.Sides = later.Date, later.Machine, later.Go, later.Sides
	r.Rounds, r.Scale = max(r.Rounds, later.Rounds), later.Scale
	for name, title := range later.Titles {
		r.Titles[name] = title
	}
	for name, title := range later.Modes {
		r.Modes[name] = title
	}
}

// Failed returns the runs that failed.
func (r *Report) Failed() []RunResult {
	var failed []RunResult
	for _, run := range r.Runs {
		if run.Error != "" {
			failed = append(failed, run)
		}
	}
	return failed
}

// Metrics that only some scenarios have.
const (
	lagMetric    = "lag (p99)"
	growthMetric = "live heap gained"
)

// Metric is something that is compared.
type Metric struct {
	Name   string
	Colour string // of its bars
	Value  func(Phase) float64
	Format func(float64) string
	// Rare metrics are told only where a side has something to tell.
	Rare bool
}

// Metrics returns what is compared, in the order of the table.
func Metrics() []Metric {
	seconds := func(v float64) string { return fmt.Sprintf("%.2f s", v) }
	count := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	return []Metric{
		{"time", "#4477aa", func(p Phase) float64 { return p.Seconds }, seconds, false},
		{"CPU", "#ee6677", func(p Phase) float64 { return p.CPUSeconds }, seconds, false},
		{"peak memory", "#228833", func(p Phase) float64 { return p.PeakRSS }, mib, false},
		{"private memory", "#117733", func(p Phase) float64 { return p.Private }, mib, true},
		{"Go heap", "#ccbb44", func(p Phase) float64 { return p.Heap }, mib, false},
		{"requests", "#66ccee", Phase.total, count, false},
		{"writes", "#aa3377", func(p Phase) float64 { return float64(p.Writes) }, count, false},
		{lagMetric, "#bbbbbb", func(p Phase) float64 { return p.Lag }, func(v float64) string { return fmt.Sprintf("%.3f s", v) }, true},
		{growthMetric, "#332288", func(p Phase) float64 { return p.Growth }, func(v float64) string { return fmt.Sprintf("%.1f MiB", v/(1<<20)) }, true},
	}
}

func mib(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }

// Row compares one metric of one phase.
type Row struct {
	Scenario, Mode, Phase string
	Metric                Metric
	// Base and Other are the medians of the two sides; Ratio is the median of the rounds' ratios, Min and Max their range.
	Base, Other, Ratio, Min, Max float64
	// Compared is false when no round gave a ratio: the base is zero.
	Compared bool
}

// Rows computes the table. Rounds in which a side failed are left out.
func (r *Report) Rows() []Row {
	if len(r.Sides) < 2 {
		return nil
	}
	type key struct{ scenario, mode, phase string }
	var order []key
	values := map[key]map[int]map[string]Phase{} // by round and side
	for _, run := range r.Runs {
		if run.Error != "" {
			continue
		}
		for _, p := range run.Phases {
			k := key{run.Scenario, run.Mode, p.Name}
			if values[k] == nil {
				values[k] = map[int]map[string]Phase{}
				order = append(order, k)
			}
			if values[k][run.Round] == nil {
				values[k][run.Round] = map[string]Phase{}
			}
			values[k][run.Round][run.Side] = p
		}
	}
	var rows []Row
	for _, k := range order {
		for _, metric := range Metrics() {
			row := Row{Scenario: k.scenario, Mode: k.mode, Phase: k.phase, Metric: metric}
			if row.compare(values[k], r.Sides[0], r.Sides[1]) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// compare fills in the numbers; false when no round has both sides, or neither side has a rare metric.
func (row *Row) compare(rounds map[int]map[string]Phase, base, other string) bool {
	var bases, others, ratios []float64
	for _, sides := range rounds {
		b, hasBase := sides[base]
		o, hasOther := sides[other]
		if !hasBase || !hasOther {
			continue
		}
		bases = append(bases, row.Metric.Value(b))
		others = append(others, row.Metric.Value(o))
		if row.Metric.Value(b) > 0 {
			ratios = append(ratios, row.Metric.Value(o)/row.Metric.Value(b))
		}
	}
	if len(bases) == 0 {
		return false
	}
	row.Base, row.Other = median(bases), median(others)
	if row.Metric.Rare && row.Base == 0 && row.Other == 0 {
		return false
	}
	if len(ratios) > 0 {
		row.Compared = true
		row.Ratio, row.Min, row.Max = median(ratios), slices.Min(ratios), slices.Max(ratios)
	}
	return true
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// ratioText is the ratio with its spread.
func (row Row) ratioText() string {
	if !row.Compared {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", row.Ratio, row.Min, row.Max)
}

// WriteTable writes the table for a terminal.
func (r *Report) WriteTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "scenario\tmode\tmetric\t%s\tratio (min–max)\n", strings.Join(r.Sides, "\t"))
	for _, row := range r.Rows() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", row.name(), row.Mode, row.Metric.Name,
			row.Metric.Format(row.Base), row.Metric.Format(row.Other), row.ratioText())
	}
	_ = t.Flush() // a terminal's errors are nobody's
}

func (row Row) name() string {
	if row.Phase == "" {
		return row.Scenario
	}
	return row.Scenario + ": " + row.Phase
}

// machine describes the computer in a line.
func machine() string {
	model := "unknown CPU"
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s, %s, %s/%s", runtime.NumCPU(), model, memoryTotal(), runtime.GOOS, runtime.GOARCH)
}

func memoryTotal() string {
	data, err := os.ReadFile("/proc/meminfo")
	var kib float64
	if err == nil {
		_, err = fmt.Sscanf(string(data), "MemTotal: %f kB", &kib)
	}
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return cmp.Or(one, "unknown")
}
