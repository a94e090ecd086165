// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchmark measures upstream's kube-controller-manager and ours side by side. hack/benchmark.sh runs it, and
// package test/benchmark says how it measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/test/benchmark"
	"github.com/kcm-dev/kcm/test/benchmark/scenarios"
	"github.com/kcm-dev/kcm/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	rounds         int
	scale          float64
	modes          string
	list, docs     bool
	render         bool
	out            string
	merge          bool
	upstream, ours string
	names          []string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 3, "runs of each scenario and mode with each binary")
	flags.Float64Var(&o.scale, "scale", 1, "share of the full number of objects, above 0 and at most 1")
	flags.StringVar(&o.modes, "modes", "equal,defaults", "modes to run, separated by commas")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and end")
	flags.BoolVar(&o.docs, "docs", false, "also write docs/benchmarks.md and docs/benchmarks.svg")
	flags.BoolVar(&o.render, "render", false, "run nothing: show the results that --out has")
	flags.BoolVar(&o.merge, "merge", false, "keep the results of other scenarios that the JSON file has")
	flags.StringVar(&o.out, "out", "_output/benchmark", "folder for result.json and result.svg")
	flags.StringVar(&o.upstream, "upstream", "", "upstream's binary (default: built by hack/tools/build.sh)")
	flags.StringVar(&o.ours, "ours", "", "our binary (default: built from this checkout)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.names = flags.Args()
	switch {
	case o.rounds < 1:
		return o, fmt.Errorf("--rounds is %d, must be 1 or more", o.rounds)
	case o.scale <= 0 || o.scale > 1:
		return o, fmt.Errorf("--scale is %v, must be above 0 and at most 1", o.scale)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	klog.SetOutput(os.Stderr)
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range scenarios.All() {
			fmt.Printf("%-22s %s\n", s.Name, s.Title)
		}
		return nil
	}
	report, err := o.report(ctx)
	if err != nil {
		return err
	}
	report.WriteTable(os.Stdout)
	if o.docs {
		if err := report.SaveDocs("docs"); err != nil {
			return err
		}
	}
	if failed := report.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d runs failed, the first: %s", len(failed), failed[0])
	}
	return nil
}

// report runs what is asked for, or reads what was, and leaves it in o.out after each run.
func (o options) report(ctx context.Context) (*benchmark.Report, error) {
	if o.render {
		return benchmark.Open(o.out)
	}
	plan, err := o.plan(ctx)
	if err != nil {
		return nil, err
	}
	earlier, err := benchmark.Open(o.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	plan.Keep = func(r *benchmark.Report) error { return r.Save(o.out) }
	if o.merge && earlier != nil {
		plan.Keep = func(r *benchmark.Report) error {
			earlier.Merge(r)
			return earlier.Save(o.out)
		}
	}
	if _, err := plan.Run(ctx); err != nil {
		return nil, err
	}
	return benchmark.Open(o.out)
}

// plan finds binaries, scenarios and modes. Scenarios that are named must be possible; of all, the possible ones run.
func (o options) plan(ctx context.Context) (benchmark.Plan, error) {
	p := benchmark.Plan{Rounds: o.rounds, Scale: o.scale, Log: os.Stderr}
	for _, mode := range benchmark.Modes() {
		if slices.Contains(strings.Split(o.modes, ","), mode.Name) {
			p.Modes = append(p.Modes, mode)
		}
	}
	if len(p.Modes) != len(strings.Split(o.modes, ",")) {
		return p, fmt.Errorf("--modes is %q, allowed: equal, defaults", o.modes)
	}
	chosen, err := choose(o.names)
	if err != nil {
		return p, err
	}
	if o.upstream == "" {
		if o.upstream, err = cluster.FindUpstream(ctx); err != nil {
			return p, err
		}
	}
	if o.ours == "" {
		if o.ours, err = cluster.BuildOurs(ctx); err != nil {
			return p, err
		}
	}
	p.Sides = []benchmark.Side{{Name: "upstream", Path: o.upstream}, {Name: "kcm", Path: o.ours}}
	for _, s := range chosen {
		err := benchmark.CheckControllers(ctx, s, p.Sides)
		switch {
		case err == nil:
			p.Scenarios = append(p.Scenarios, s)
		case len(o.names) > 0:
			return p, err
		default:
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
		}
	}
	return p, nil
}

// choose returns the scenarios with the names, all without any.
func choose(wanted []string) ([]benchmark.Scenario, error) {
	all := scenarios.All()
	if len(wanted) == 0 {
		return all, nil
	}
	var chosen []benchmark.Scenario
	for _, name := range wanted {
		i := slices.IndexFunc(all, func(s benchmark.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown scenario %q, --list lists them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
