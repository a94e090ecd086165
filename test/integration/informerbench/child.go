// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// sample is what the process has used so far.
type sample struct {
	CPU       time.Duration
	Allocs    uint64
	Allocated uint64
	// Heap is what is live.
	Heap uint64
	// Resident is the greatest size of the process in memory.
	Resident uint64
}

// report is what a child says: the difference between two samples.
type report struct {
	Step string
	Wall time.Duration
	// Objects in the cache, or events seen.
	Objects int
	Used    sample
}

func takeSample(collect bool) sample {
	var usage syscall.Rusage
	// Before the collections below: they are the measurement's, not the informer's.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	s := sample{
		CPU:    time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		Allocs: before.Mallocs, Allocated: before.TotalAlloc, Resident: uint64(usage.Maxrss) << 10,
	}
	if collect {
		runtime.GC()
		runtime.GC()
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		s.Heap = after.HeapAlloc
	}
	return s
}

func (s sample) since(before sample) sample {
	return sample{
		CPU: s.CPU - before.CPU, Allocs: s.Allocs - before.Allocs, Allocated: s.Allocated - before.Allocated,
		Heap: s.Heap - min(before.Heap, s.Heap), Resident: s.Resident,
	}
}

// counts is what a variant's handler has seen.
type counts struct {
	updated atomic.Int64
	// awaited is the number of updates that wakes whoever waits at reached.
	awaited atomic.Int64
	reached chan struct{}
}

func newCounts() *counts { return &counts{reached: make(chan struct{}, 1)} }

// update counts an update.
func (c *counts) update() {
	if c.updated.Add(1) == c.awaited.Load() {
		c.reached <- struct{}{}
	}
}

// running is a variant that has synced.
type running struct {
	// stored is the number of objects in the cache.
	stored func() int
	// stop ends it, and keep is what holds the cache until then.
	stop func()
}

// child runs one variant: it reports when the cache has synced, and after each line on in how much the updates that the
// line names have cost.
func child(ctx context.Context, v variant, config *rest.Config, in io.Reader, out io.Writer, profile string) error {
	seen := newCounts()
	tell := json.NewEncoder(out)
	before := takeSample(true)
	start := time.Now()
	stopProfile, err := startProfile(profile)
	if err != nil {
		return err
	}
	r, err := v.start(ctx, config, seen)
	if err != nil {
		return fmt.Errorf("variant %s: %w", v.name, err)
	}
	wall := time.Since(start)
	synced := takeSample(true)
	if err := tell.Encode(report{Step: "sync", Wall: wall, Objects: r.stored(), Used: synced.since(before)}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var updates int64
		if _, err := fmt.Sscan(strings.TrimSpace(lines.Text()), &updates); err != nil {
			return fmt.Errorf("reading the number of updates: %w", err)
		}
		if err := measureUpdates(ctx, tell, seen, updates); err != nil {
			return err
		}
	}
	if err := stopProfile(); err != nil {
		return err
	}
	r.stop()
	return lines.Err()
}

// measureUpdates says that it is ready, and then what the updates have cost.
func measureUpdates(ctx context.Context, tell *json.Encoder, seen *counts, updates int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	from := seen.updated.Load()
	seen.awaited.Store(from + updates)
	before := takeSample(true)
	// The collections of the first sample are not the updates'.
	before.CPU = takeSample(false).CPU
	if err := tell.Encode(report{Step: "ready"}); err != nil {
		return err
	}
	start := time.Now()
	select {
	case <-seen.reached:
	case <-ctx.Done():
		return fmt.Errorf("only %d of %d updates were seen: %w", seen.updated.Load()-from, updates, ctx.Err())
	}
	after := takeSample(true)
	return tell.Encode(report{Step: "updates", Wall: time.Since(start), Objects: int(updates), Used: after.since(before)})
}

// startProfile writes a CPU profile to path.cpu and one of the heap to path.heap at the end.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
		heap, err := os.Create(path + ".heap")
		if err != nil {
			return err
		}
		defer heap.Close()
		return pprof.WriteHeapProfile(heap)
	}, nil
}
