// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/informers"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// Scenario is something that a manager does, and how to measure it.
type Scenario struct {
	// Name is what the command line calls it: lower case, with dashes.
	Name string
	// Title is one line for the table's reader.
	Title string
	// Controllers are the canonical names of those that run; others do not.
	Controllers []string
	// Flags of the managers beside the usual ones, in both modes.
	Flags []string
	// Nodes is the number of fake nodes. With none there is no kubelet.
	Nodes int
	// Kubelet changes the fake kubelet's options; its Nodes are filled in.
	Kubelet fakekubelet.Options
	// Seed makes the objects that are there before a manager starts. May be nil.
	Seed func(ctx context.Context, e *Env) error
	// OwnManagers says that Run starts the managers itself.
	OwnManagers bool
	// Warm runs when the manager leads, before Run. May be nil.
	Warm func(ctx context.Context, e *Env) error
	// Run does what is measured, within Env.Measure.
	Run func(ctx context.Context, e *Env) error
	// Timeout of one run, control plane and seed included. 0: ten minutes.
	Timeout time.Duration
}

// Side is one of the two managers.
type Side struct {
	Name string
	Path string
}

// Env is what a scenario's functions work with, one per run.
type Env struct {
	*cluster.Cluster
	// Kubelet plays the nodes; nil without any.
	Kubelet *fakekubelet.Kubelet
	// Informers are the harness's own: ask for listers, then call Sync.
	Informers informers.SharedInformerFactory

	scenario Scenario
	side     Side
	args     []string
	scale    float64
	log      io.Writer
	stop     <-chan struct{}

	mu sync.Mutex // guards the following
	// managers are those that run or have run.
	managers []*cluster.Manager
	phases   []phase
	lags     []float64 // seconds, of the phase that is measured
}

// N is a number of objects, at least 1, as --scale makes it.
func (e *Env) N(n int) int { return max(1, int(float64(n)*e.scale)) }

// NodeNames are the names of the fake nodes.
func (e *Env) NodeNames() []string { return nodeNames(e.N(e.scenario.Nodes)) }

func nodeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	return names
}

// Sync starts the informers that have been asked for and returns when they are full.
func (e *Env) Sync(ctx context.Context) error {
	e.Informers.Start(e.stop)
	for kind, synced := range e.Informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the harness's informer of %v did not sync: %w", kind, context.Cause(ctx))
		}
	}
	return nil
}

// Wait waits until the condition holds, until the scenario's time is up.
func (e *Env) Wait(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	return cluster.WaitFor(ctx, what, time.Hour, condition)
}

// StartManager starts a manager of the side that is measured, with the scenario's controllers.
func (e *Env) StartManager(ctx context.Context) (*cluster.Manager, error) {
	m, err := e.Cluster.StartManager(ctx, cluster.ManagerOptions{Path: e.side.Path, Args: e.args})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.managers = append(e.managers, m)
	return m, nil
}

// managerArgs are the flags of both sides.
func managerArgs(s Scenario, mode Mode) []string {
	args := []string{"--controllers=" + strings.Join(s.Controllers, ",")}
	args = append(args, mode.Flags...)
	return append(args, s.Flags...)
}

// Mode is a set of flags that both sides get.
type Mode struct {
	Name, Title string
	Flags       []string
}

// Modes returns the modes.
func Modes() []Mode {
	return []Mode{
		{
			Name: "equal", Title: "equal flags, client rate limit of 500 a second",
			Flags: []string{"--kube-api-qps=500", "--kube-api-burst=1000"},
		},
		{Name: "defaults", Title: "each with its defaults"},
	}
}

// CheckControllers returns an error that names what a side's binary lacks.
func CheckControllers(ctx context.Context, s Scenario, sides []Side) error {
	for _, side := range sides {
		missing, err := cluster.Missing(ctx, side.Path, s.Controllers)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			return fmt.Errorf("scenario %s needs %s, which %s (%s) does not have", s.Name, strings.Join(missing, ", "), side.Name, side.Path)
		}
	}
	return nil
}
