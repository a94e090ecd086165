// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// ControlPlane is a running control plane. Start makes one.
type ControlPlane struct {
	options  Options
	ports    Ports
	reserved *reservation
	pki      *pki
	// temporary says that the folder goes with Stop.
	temporary bool

	managerKubeconfig, schedulerKubeconfig, kwokKubeconfig string

	died chan struct{} // closed at the first unasked death

	mu         sync.Mutex // guards the following
	components []*component
	identities map[string]identity
	failure    *ComponentError
	stopped    bool
}

// component is a program and what it takes to be ready.
type component struct {
	program
	port  int
	ready func(ctx context.Context) error
	// reached is what it may be called when ready says so; empty for "is ready".
	reached string
	// mayEnd says that its unasked end is nobody's failure.
	mayEnd bool
}

// Start starts a control plane and returns when it is ready: the API server has finished its start-up hooks, system
// namespaces exist, and fake nodes are Ready. ctx bounds the start only. An error is one line that names the component,
// followed by the end of its log; nothing that this call started is left running then.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.abandon())
	}
	return c, nil
}

// prepare does all that comes before the first program starts.
func prepare(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	needed := []Component{ComponentEtcd, ComponentAPIServer}
	if o.Scheduler {
		needed = append(needed, ComponentScheduler)
	}
	if o.Kwok {
		needed = append(needed, ComponentKwok)
	}
	if o.Binaries, err = FindBinaries(ctx, o.Binaries, o.Log, needed...); err != nil {
		return nil, err
	}
	c := &ControlPlane{died: make(chan struct{}), identities: map[string]identity{}}
	if c.temporary, err = o.prepareDir(); err != nil {
		return nil, err
	}
	c.options = o
	if c.pki, err = loadPKI(c.path("pki"), o.ServiceCIDR); err != nil {
		return nil, err
	}
	if err := c.checkFixedPorts(); err != nil {
		return nil, err
	}
	if err := c.choosePorts(); err != nil {
		return nil, err
	}
	if err := c.writeKubeconfigs(); err != nil {
		c.reserved.release()
		return nil, err
	}
	return c, nil
}

// checkFixedPorts finds a port that is taken before anything is started.
func (c *ControlPlane) checkFixedPorts() error {
	fixed := c.options.Ports
	ports := []PortBusyError{
		{ComponentEtcd, fixed.Etcd}, {ComponentEtcd, fixed.EtcdPeer},
		{ComponentAPIServer, fixed.APIServer}, {ComponentManager, fixed.Manager},
	}
	if c.options.Kwok {
		ports = append(ports, PortBusyError{ComponentKwok, fixed.Kwok})
	}
	if c.options.Scheduler {
		ports = append(ports, PortBusyError{ComponentScheduler, fixed.Scheduler})
	}
	for _, p := range ports {
		if p.Port == 0 || c.runsAlready(p.Component) {
			continue
		}
		if checkFree(p.Port) != nil {
			return &p
		}
	}
	return nil
}

// runsAlready reports whether an earlier command left this component running.
func (c *ControlPlane) runsAlready(name Component) bool {
	if !c.options.Detached {
		return false
	}
	_, running := readPidFile(c.pidPath(name))
	return running
}

func (c *ControlPlane) pidPath(name Component) string { return c.path("run", string(name)+".pid") }

// choosePorts picks a port wherever the options leave it open.
func (c *ControlPlane) choosePorts() (err error) {
	if c.reserved, err = newReservation(); err != nil {
		return err
	}
	c.ports = c.options.Ports
	for _, port := range []*int{&c.ports.Etcd, &c.ports.EtcdPeer, &c.ports.Kwok, &c.ports.APIServer, &c.ports.Scheduler, &c.ports.Manager} {
		if *port != 0 {
			continue
		}
		if *port, err = c.reserved.pick(); err != nil {
			c.reserved.release()
			return err
		}
	}
	return nil
}

func (c *ControlPlane) writeKubeconfigs() (err error) {
	if c.managerKubeconfig, err = c.KubeconfigFor(ManagerUser); err != nil {
		return err
	}
	if c.schedulerKubeconfig, err = c.KubeconfigFor(schedulerUser); err != nil {
		return err
	}
	// kwok stands for all kubelets and needs the rights of every one of them; its own name shows in the audit log.
	c.kwokKubeconfig, err = c.KubeconfigFor("kwok", MastersGroup)
	return err
}

// start starts the programs, each when what it needs is ready.
func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.launch(ctx, c.etcd()); err != nil {
		return err
	}
	apiServer, err := c.apiServer()
	if err != nil {
		return err
	}
	if err := c.launch(ctx, apiServer); err != nil {
		return err
	}

	var rest []*component
	if c.options.Scheduler {
		rest = append(rest, c.scheduler())
	}
	if c.options.Kwok {
		if err := c.dropLeases(ctx); err != nil {
			return err
		}
		kwok, err := c.kwok()
		if err != nil {
			return err
		}
		rest = append(rest, kwok)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, p := range rest {
		group.Go(func() error { return c.launch(groupCtx, p) })
	}
	group.Go(func() error { return c.createNodes(groupCtx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if c.options.Kwok && c.options.Nodes > 0 {
		return c.waitForNodes(ctx)
	}
	return nil
}

// launch registers the component, starts it and waits until it is ready.
func (c *ControlPlane) launch(ctx context.Context, p *component) error {
	p.logPath = c.LogPath(p.name)
	if !p.mayEnd {
		p.died = c.reportDeath
	}
	if c.options.Detached {
		p.detached = true
		p.pidPath = c.pidPath(p.name)
	}

	c.mu.Lock()
	stopped := c.stopped
	known := slices.ContainsFunc(c.components, func(other *component) bool { return other.name == p.name })
	if !stopped && !known {
		c.components = append(c.components, p)
	}
	c.mu.Unlock()
	if stopped {
		return fmt.Errorf("starting %s: the control plane is stopped", p.name)
	}
	if known {
		return fmt.Errorf("starting %s: there is one already; give the other another name", p.name)
	}
	return c.bringUp(ctx, p)
}

// bringUp starts a registered component and waits until it is ready.
func (c *ControlPlane) bringUp(ctx context.Context, p *component) error {
	began := time.Now()
	if !c.runsAlready(p.name) {
		if err := checkFree(p.port); err != nil {
			return &PortBusyError{Component: p.name, Port: p.port}
		}
	}
	r, err := p.start()
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx, p, r); err != nil {
		return err
	}
	what := cmp.Or(p.reached, "is ready") + " after " + time.Since(began).Round(100*time.Millisecond).String()
	if r.adopted {
		what = "runs already"
	}
	fmt.Fprintf(c.options.Log, "%s %s (port %d)\n", p.name, what, p.port)
	return nil
}

// readyPoll is how often a starting component is asked.
const readyPoll = 50 * time.Millisecond

// awaitReady asks until the component is ready, has ended, or the time is up.
func (c *ControlPlane) awaitReady(caller context.Context, p *component, r *run) error {
	ctx, cancel := context.WithTimeout(caller, c.options.StartTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		answer := p.ready(ctx)
		if answer == nil {
			return nil
		}
		select {
		case <-r.done:
			return p.failure(r, "exited while starting: "+describeExit(r.exitError()))
		case <-ctx.Done():
			if caller.Err() != nil {
				return fmt.Errorf("waiting for %s to be ready: %w", p.name, context.Cause(caller))
			}
			return p.failure(r, fmt.Sprintf("was not ready within %v (last answer: %v)", c.options.StartTimeout, answer))
		case <-ticker.C:
		}
	}
}

// reportDeath records the first unasked end of a component.
func (c *ControlPlane) reportDeath(failure *ComponentError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = failure
		close(c.died)
	}
}

// Done is closed when a component ended unasked; Err says which.
func (c *ControlPlane) Done() <-chan struct{} { return c.died }

// Err returns a *ComponentError when a component ended unasked, else nil.
func (c *ControlPlane) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		return nil
	}
	return c.failure
}

// Stop stops every component, the last started first, waits for each, and removes the folder if it was temporary. It
// returns the error of a component that had ended unasked, too. Stopping again does nothing.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	components := slices.Clone(c.components)
	c.mu.Unlock()

	var errs []error
	for _, p := range slices.Backward(components) {
		errs = append(errs, p.stop(c.options.StopTimeout))
	}
	c.reserved.release()
	if err := c.Err(); err != nil {
		// The log stays for whoever reads the error.
		return errors.Join(append(errs, err)...)
	}
	if c.temporary {
		errs = append(errs, os.RemoveAll(c.options.Dir))
	}
	return errors.Join(errs...)
}

// abandon stops what a failed start has started, and leaves running what it found running.
func (c *ControlPlane) abandon() error {
	c.mu.Lock()
	c.stopped = true
	components := slices.Clone(c.components)
	c.mu.Unlock()

	var errs []error
	for _, p := range slices.Backward(components) {
		if r := p.running(); r != nil && !r.adopted {
			errs = append(errs, p.stop(c.options.StopTimeout))
		}
	}
	c.reserved.release()
	return errors.Join(errs...)
}

// StopComponent ends one program as an administrator would: SIGTERM, and SIGKILL after StopTimeout.
func (c *ControlPlane) StopComponent(name Component) error {
	return c.with(name, func(p *component) error { return p.stop(c.options.StopTimeout) })
}

// KillComponent ends one program at once, as a crash would.
func (c *ControlPlane) KillComponent(name Component) error {
	return c.with(name, func(p *component) error { return p.stop(0) })
}

// PauseComponent freezes one program (SIGSTOP): its connections stay open and nothing answers.
func (c *ControlPlane) PauseComponent(name Component) error {
	return c.with(name, func(p *component) error { return p.pause() })
}

// ResumeComponent ends a pause.
func (c *ControlPlane) ResumeComponent(name Component) error {
	return c.with(name, func(p *component) error { return p.signalRunning(syscall.SIGCONT) })
}

// StartComponent starts a program again that StopComponent or KillComponent ended, and waits until it is ready.
func (c *ControlPlane) StartComponent(ctx context.Context, name Component) error {
	return c.with(name, func(p *component) error { return c.bringUp(ctx, p) })
}

// Pid returns the process id of a component that runs, for those who measure it.
func (c *ControlPlane) Pid(name Component) (pid int, err error) {
	err = c.with(name, func(p *component) error {
		r := p.running()
		if r == nil {
			return fmt.Errorf("%s does not run", name)
		}
		pid = r.process.PID
		return nil
	})
	return pid, err
}

func (c *ControlPlane) with(name Component, do func(*component) error) error {
	c.mu.Lock()
	i := slices.IndexFunc(c.components, func(p *component) bool { return p.name == name })
	if i < 0 {
		c.mu.Unlock()
		return fmt.Errorf("%s is no component of this control plane", name)
	}
	p := c.components[i]
	c.mu.Unlock()
	return do(p)
}

// URL of the API server.
func (c *ControlPlane) URL() string {
	return "https://127.0.0.1:" + strconv.Itoa(c.ports.APIServer)
}

// Dir is the folder with everything in it.
func (c *ControlPlane) Dir() string { return c.options.Dir }

// Ports returns all ports, picked ones included.
func (c *ControlPlane) Ports() Ports { return c.ports }

// LogPath returns the path of a component's log.
func (c *ControlPlane) LogPath(name Component) string {
	return c.path("logs", string(name)+".log")
}

// FreePort returns a port that no other control plane on this machine is given until Stop.
func (c *ControlPlane) FreePort() (int, error) { return c.reserved.pick() }

func (c *ControlPlane) path(elements ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, elements...)...)
}
