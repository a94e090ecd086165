// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/informers"

	"github.com/kcm-dev/kcm/test/cluster"
)

// Plan says what to run.
type Plan struct {
	Scenarios []Scenario
	Modes     []Mode
	// Sides are compared, the first is the measure of the others.
	Sides  []Side
	Rounds int
	// Scale shrinks the numbers of objects; 1 is full size.
	Scale float64
	// Log receives a line per run.
	Log io.Writer
	// Keep, if set, gets the report after each run: a run takes minutes, and may be the last.
	Keep func(*Report) error
}

// Run runs all scenarios in all modes, in rounds of one run per side. A run that fails is part of the report; the others
// go on.
func (p Plan) Run(ctx context.Context) (*Report, error) {
	report := newReport(p)
	for _, s := range p.Scenarios {
		for _, mode := range p.Modes {
			for round := range p.Rounds {
				for _, side := range p.Sides {
					r := p.one(ctx, s, mode, side)
					r.Round = round
					report.Runs = append(report.Runs, r)
					fmt.Fprintln(p.Log, r)
					if p.Keep != nil {
						if err := p.Keep(report); err != nil {
							return report, err
						}
					}
					if ctx.Err() != nil {
						return report, context.Cause(ctx)
					}
				}
			}
		}
	}
	return report, nil
}

// one runs a scenario once, on a control plane of its own.
func (p Plan) one(ctx context.Context, s Scenario, mode Mode, side Side) RunResult {
	result := RunResult{Scenario: s.Name, Mode: mode.Name, Side: side.Name, Load: loadAverage()}
	timeout := cmp.Or(s.Timeout, 10*time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the run took more than %v", timeout))
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Audit: cluster.AuditManagers})
	if err != nil {
		result.Error = err.Error()
		return result
	}
	stop := make(chan struct{})
	e := &Env{
		Cluster: c, scenario: s, side: side, args: managerArgs(s, mode), scale: p.Scale, log: p.Log, stop: stop,
		Informers: informers.NewSharedInformerFactory(c.Client, 0),
	}
	err = e.play(ctx)
	close(stop)
	e.Informers.Shutdown()
	for _, m := range e.running() {
		err = errors.Join(err, m.Kill()) // and its last requests are in the log
	}
	phases, countErr := e.countRequests()
	result.Phases = phases
	if err = errors.Join(err, countErr, c.Stop()); err != nil {
		result.Error = err.Error()
	}
	return result
}

func (e *Env) play(ctx context.Context) (err error) {
	if e.scenario.Nodes > 0 {
		options := e.scenario.Kubelet
		options.Nodes = e.NodeNames()
		// Heartbeats are not what is measured.
		options.LeaseDuration = cmp.Or(options.LeaseDuration, time.Hour)
		if e.Kubelet, err = e.Cluster.Kubelet(ctx, options); err != nil {
			return err
		}
	}
	if e.scenario.Seed != nil {
		if err := e.scenario.Seed(ctx, e); err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
	}
	if !e.scenario.OwnManagers {
		if _, err := e.StartManager(ctx); err != nil {
			return err
		}
		if _, err := e.WaitForLeader(ctx, time.Minute); err != nil {
			return err
		}
	}
	if e.scenario.Warm != nil {
		if err := e.scenario.Warm(ctx, e); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	return e.scenario.Run(ctx, e)
}

// countRequests fills in the phases' requests. The managers must have ended.
func (e *Env) countRequests() ([]Phase, error) {
	var phases []Phase
	for _, p := range e.phases {
		events, err := e.Requests(p.from, p.to)
		if err != nil {
			return nil, err
		}
		p.Requests = map[string]int{}
		for _, event := range events {
			p.Requests[event.Verb+" "+event.Resource()]++
			if event.IsWrite() {
				p.Writes++
			}
		}
		phases = append(phases, p.Phase)
	}
	return phases, nil
}
