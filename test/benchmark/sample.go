// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kcm-dev/kcm/test/cluster"
)

// ticksPerSecond is the unit of /proc/PID/stat on every Linux that Go runs on: USER_HZ.
const ticksPerSecond = 100

// phase is a measured phase whose requests are not counted yet.
type phase struct {
	Phase
	from, to time.Time
}

// Measure runs f and records what it took. The name tells the phases of a scenario apart; one that has only one leaves
// it empty.
func (e *Env) Measure(ctx context.Context, name string, f func(ctx context.Context) error) error {
	p, err := e.measure(ctx, name, f)
	if err != nil {
		return err
	}
	e.record(p)
	return nil
}

// MeasureGrowth is Measure for a scenario that asks what it costs to know of something: f makes it, and the phase tells
// how much more of the heap lives after f than before.
func (e *Env) MeasureGrowth(ctx context.Context, name string, f func(ctx context.Context) error) error {
	before, err := e.liveHeap(ctx)
	if err != nil {
		return err
	}
	p, err := e.measure(ctx, name, f)
	if err != nil {
		return err
	}
	after, err := e.liveHeap(ctx)
	if err != nil {
		return err
	}
	p.Growth = after - before
	e.record(p)
	return nil
}

func (e *Env) record(p phase) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.phases = append(e.phases, p)
}

func (e *Env) measure(ctx context.Context, name string, f func(ctx context.Context) error) (phase, error) {
	before := map[int]float64{}
	for _, m := range e.running() {
		before[m.Pid], _ = cpuSeconds(m.Pid) // one that has ended used nothing
	}
	e.takeLag()
	from := time.Now()
	if err := f(ctx); err != nil {
		return phase{}, err
	}
	to := time.Now()
	p := phase{Phase: Phase{Name: name, Seconds: to.Sub(from).Seconds(), Lag: e.takeLag()}, from: from, to: to}
	for _, manager := range e.running() {
		cpu, err := cpuSeconds(manager.Pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		p.CPUSeconds += cpu - before[manager.Pid]
		m, err := memory(manager.Pid)
		if err != nil {
			return phase{}, err
		}
		p.RSS += m.resident
		p.PeakRSS += m.peak
		p.Private += m.private
		heap, err := heapInUse(ctx, manager)
		if err != nil {
			return phase{}, err
		}
		p.Heap += heap
	}
	return p, nil
}

// Observe records how long something took within a phase: the report compares the 99th percentile.
func (e *Env) Observe(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lags = append(e.lags, d.Seconds())
}

// takeLag returns the 99th percentile of what was observed since the last call, 0 of nothing.
func (e *Env) takeLag() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	lags := slices.Sorted(slices.Values(e.lags))
	e.lags = nil
	if len(lags) == 0 {
		return 0
	}
	return lags[(len(lags)*99+99)/100-1]
}

func (e *Env) running() []*cluster.Manager {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*cluster.Manager(nil), e.managers...)
}

// cpuSeconds is what the process has used so far, user and system.
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("measuring CPU: %w", err)
	}
	// Fields follow the program's name, which is in parentheses and may hold anything: utime and stime are 14 and 15.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0, fmt.Errorf("measuring CPU: /proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	total := 0.0
	for _, field := range []string{fields[utime], fields[stime]} {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("measuring CPU: %w", err)
		}
		total += ticks / ticksPerSecond
	}
	return total, nil
}

// usage is what a process takes of the machine's memory, in bytes.
type usage struct {
	resident, peak float64
	// private is what of the resident memory no other process shares and no file backs: the program's own pages are in
	// the page cache, which gives them back when others need room.
	private float64
}

// memory returns what memory the process takes.
func memory(pid int) (usage, error) {
	var u usage
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("measuring memory: %w", err)
	}
	targets := map[string]*float64{"VmRSS": &u.resident, "VmHWM": &u.peak, "RssAnon": &u.private}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		target := targets[name]
		if target == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return u, fmt.Errorf("measuring memory: /proc/%d/status: %w", pid, err)
		}
		*target = kib * 1024
	}
	return u, nil
}

// heapInUse asks the manager for its Go heap.
func heapInUse(ctx context.Context, m *cluster.Manager) (float64, error) {
	return memstat(ctx, m, "go_memstats_heap_inuse_bytes")
}

// liveHeap is what the managers keep once they have thrown away what nobody uses.
func (e *Env) liveHeap(ctx context.Context) (total float64, err error) {
	for _, m := range e.running() {
		if _, err := m.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return 0, fmt.Errorf("having garbage collected: %w", err)
		}
		live, err := memstat(ctx, m, "go_memstats_heap_alloc_bytes")
		if err != nil {
			return 0, err
		}
		total += live
	}
	return total, nil
}

func memstat(ctx context.Context, m *cluster.Manager, metric string) (float64, error) {
	page, err := m.Get(ctx, "/metrics")
	if err != nil {
		return 0, fmt.Errorf("measuring the heap: %w", err)
	}
	for line := range strings.Lines(page) {
		if value, found := strings.CutPrefix(line, metric+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("measuring the heap: /metrics has no %s", metric)
}
