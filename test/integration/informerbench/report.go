// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// measured is a line of the table.
type measured struct {
	name string
	unit string
	// of is the number of a result.
	of func(o options, r result) float64
	// target is what ours may be at most, as a part of client-go's; 0 for none.
	target float64
}

func measurements() []measured {
	perPod := func(o options, n uint64) float64 { return float64(n) / float64(o.pods) }
	per1000 := func(r result, n float64) float64 { return n * 1000 / float64(r.updates.Objects) }
	return []measured{
		{"live heap per pod", "bytes", func(o options, r result) float64 { return perPod(o, r.sync.Used.Heap) }, 1. / 3},
		{"CPU to first sync", "ms", func(_ options, r result) float64 { return ms(r.sync.Used.CPU) }, 1. / 2},
		{"time to first sync", "ms", func(_ options, r result) float64 { return ms(r.sync.Wall) }, 0},
		{"allocations per pod to first sync", "", func(o options, r result) float64 { return perPod(o, r.sync.Used.Allocs) }, 1. / 3},
		{"bytes allocated per pod to first sync", "bytes", func(o options, r result) float64 { return perPod(o, r.sync.Used.Allocated) }, 0},
		{"greatest resident size after sync", "MiB", func(_ options, r result) float64 { return float64(r.sync.Used.Resident) / (1 << 20) }, 0},
		{"CPU per 1,000 updates", "ms", func(_ options, r result) float64 { return per1000(r, ms(r.updates.Used.CPU)) }, 1. / 2},
		{"allocations per update", "", func(_ options, r result) float64 { return per1000(r, float64(r.updates.Used.Allocs)) / 1000 }, 0},
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median is the middle of what a variant has reached, with the least and the greatest.
func median(values []float64) (mid, least, greatest float64) {
	slices.Sort(values)
	return values[len(values)/2], values[0], values[len(values)-1]
}

// writeReport prints a table for each of client-go's variants, and writes them to the output file.
func writeReport(o options, results map[string][]result) error {
	var b bytes.Buffer
	for _, base := range variants() {
		if base.name == base.beside && len(results[base.name]) > 0 {
			writeTable(&b, o, base.name, results)
		}
	}
	fmt.Print(b.String())
	if o.output == "" {
		return nil
	}
	return os.WriteFile(o.output, []byte(document(o, b.String())), 0o644)
}

func writeTable(b *bytes.Buffer, o options, base string, results map[string][]result) {
	shown := []string{base}
	for _, v := range variants() {
		if v.beside == base && v.name != base && len(results[v.name]) > 0 {
			shown = append(shown, v.name)
		}
	}
	fmt.Fprintf(b, "| %s pods, median of %d runs (least–greatest) |", thousands(float64(o.pods)), o.rounds)
	for _, name := range shown {
		fmt.Fprintf(b, " %s |", name)
	}
	for _, name := range shown[1:] {
		fmt.Fprintf(b, " %s / %s |", name, base)
	}
	fmt.Fprintf(b, " target |\n|%s\n", strings.Repeat("---|", 2*len(shown)+1))
	for _, m := range measurements() {
		writeLine(b, o, m, shown, results)
	}
	b.WriteByte('\n')
}

func writeLine(b *bytes.Buffer, o options, m measured, shown []string, results map[string][]result) {
	title := m.name
	if m.unit != "" {
		title += ", " + m.unit
	}
	fmt.Fprintf(b, "| %s |", title)
	var mids []float64
	for _, name := range shown {
		var values []float64
		for _, r := range results[name] {
			values = append(values, m.of(o, r))
		}
		mid, least, greatest := median(values)
		mids = append(mids, mid)
		fmt.Fprintf(b, " %s (%s–%s) |", thousands(mid), thousands(least), thousands(greatest))
	}
	for _, mid := range mids[1:] {
		fmt.Fprintf(b, " %.3f |", mid/mids[0])
	}
	if m.target > 0 {
		fmt.Fprintf(b, " ≤ %.3f |\n", m.target)
	} else {
		fmt.Fprint(b, " |\n")
	}
}

// thousands writes a number as it is read.
func thousands(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// document is what the output file has around the table.
func document(o options, table string) string {
	var about strings.Builder
	for _, v := range variants() {
		fmt.Fprintf(&about, "- **%s**: %s\n", v.name, v.about)
	}
	return fmt.Sprintf(`# Informers measured

What it costs to hold pods in memory, beside client-go's own informers: the same run, the same real kube-apiserver,
each variant in a process of its own. Written by %s.

%s
%s
The pods are ordinary: two containers with fifteen variables each, probes, resources, a projected token volume;
%d pods to a ReplicaSet; the object applied by one manager and the status by another, so managedFields are what a
server makes of them. An update is a pod that loses or gains readiness. CPU is user and system time of the whole
process, garbage collection included; heap is what is live after two collections, less what was before the start.

Machine: %s, %d cores, %s. Date: %s.
`, "`"+command(o)+"`", table, about.String(), podsPerOwner, cpuName(), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
}

func command(o options) string {
	return fmt.Sprintf("hack/benchmark-informers.sh -pods=%d -updates=%d -rounds=%d", o.pods, o.updates, o.rounds)
}

// cpuName is what Linux calls the processor.
func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}
