// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/kcm-dev/kcm/test/controlplane"
)

const (
	// defaultFirstPort puts the API server on 26443: easy to remember, and below the ports of outgoing connections.
	defaultFirstPort = 26440
	defaultNodes     = 3
)

// upFlags are the flags of up.
type upFlags struct {
	nodes         int
	manager       string
	managerArgs   []string
	firstPort     int
	ports         controlplane.Ports
	apiServerArgs []string
	noExample     bool
}

// portFlag is a flag for one port: where its value goes, and what it is called.
type portFlag struct {
	name, what string
	in         func(*controlplane.Ports) *int
}

func portFlags() []portFlag {
	return []portFlag{
		{"etcd-port", "etcd", func(p *controlplane.Ports) *int { return &p.Etcd }},
		{"etcd-peer-port", "etcd for its peers", func(p *controlplane.Ports) *int { return &p.EtcdPeer }},
		{"kwok-port", "kwok", func(p *controlplane.Ports) *int { return &p.Kwok }},
		{"apiserver-port", "the API server", func(p *controlplane.Ports) *int { return &p.APIServer }},
		{"scheduler-port", "the scheduler", func(p *controlplane.Ports) *int { return &p.Scheduler }},
		{"kcm-port", "the controller manager", func(p *controlplane.Ports) *int { return &p.Manager }},
	}
}

func (u *upFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&u.nodes, "nodes", defaultNodes, "number of fake nodes; ones that exist already stay")
	flags.StringVar(&u.manager, "kcm", "", "kube-controller-manager binary to run, upstream's too (default: this checkout's, which is built)")
	flags.StringArrayVar(&u.managerArgs, "kcm-arg", nil, "flag for the controller manager, such as --kcm-arg=--v=4, in place of what it is given otherwise; may be repeated")
	flags.StringArrayVar(&u.apiServerArgs, "apiserver-arg", nil, "flag for the API server; may be repeated")
	flags.IntVar(&u.firstPort, "ports-from", defaultFirstPort,
		"first of six ports in a row on 127.0.0.1: etcd, etcd's peers, kwok, API server, scheduler, controller manager")
	for _, port := range portFlags() {
		flags.IntVar(port.in(&u.ports), port.name, 0, "port of "+port.what+"; 0: see --ports-from")
	}
	flags.BoolVar(&u.noExample, "no-example", false, "do not apply the example")
}

// validate reports every bad value.
func (u *upFlags) validate() error {
	var errs []error
	if u.nodes < 0 || u.nodes > 5000 {
		errs = append(errs, fmt.Errorf("--nodes: %d is not from 0 to 5000", u.nodes))
	}
	if u.firstPort < 1 || u.firstPort > 65530 {
		errs = append(errs, fmt.Errorf("--ports-from: %d is not from 1 to 65530", u.firstPort))
	}
	for _, port := range portFlags() {
		if value := *port.in(&u.ports); value < 0 || value > 65535 {
			errs = append(errs, fmt.Errorf("--%s: %d is not from 0 to 65535", port.name, value))
		}
	}
	if u.manager != "" {
		path, err := exec.LookPath(u.manager)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--kcm: %q is no program that can be run", u.manager))
		}
		u.manager = path
	}
	return errors.Join(errs...)
}

// checkPorts returns an error that names every pair of programs with the same port, and the flags that part them.
func checkPorts(ports controlplane.Ports) error {
	var errs []error
	flags := portFlags()
	for i, one := range flags {
		for _, other := range flags[i+1:] {
			if port := *one.in(&ports); port == *other.in(&ports) {
				errs = append(errs, fmt.Errorf("port %d is given both to %s (--%s) and to %s (--%s): choose another one for either",
					port, one.what, one.name, other.what, other.name))
			}
		}
	}
	return errors.Join(errs...)
}

// managerCheckTimeout is ample for printing a version.
const managerCheckTimeout = 10 * time.Second

// checkManager finds out whether the file can be executed here, which its mode does not tell: it may be no program, or
// one for another machine. How the program ends is not looked at: its log will tell more when it is started.
func checkManager(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, managerCheckTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	if err := cmd.Start(); err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fmt.Errorf("--kcm: %q cannot be run: %w", path, err)
	}
	_ = cmd.Wait()
	return nil
}

// changes are what the flags of an up ask of a cluster.
type changes struct {
	// manager says that the controller manager is to be another one, or one with other flags, than before.
	manager bool
	// ports and apiServer say the same of things that cannot change while the cluster runs.
	ports, apiServer bool
}

// apply merges the flags into the state: ports and nodes stay as they were unless a flag says otherwise. The manager
// is this checkout's unless a flag says otherwise, or one runs.
func (u *upFlags) apply(s *state, isNew, managerRuns bool, flags *pflag.FlagSet) changes {
	before := *s
	if isNew || flags.Changed("ports-from") {
		s.Ports = controlplane.PortsFrom(u.firstPort)
	}
	for _, port := range portFlags() {
		if value := *port.in(&u.ports); value != 0 {
			*port.in(&s.Ports) = value
		}
	}
	if isNew || flags.Changed("nodes") {
		s.Nodes = u.nodes
	}
	if !managerRuns || flags.Changed("kcm") || flags.Changed("kcm-arg") {
		s.ManagerPath, s.ManagerArgs = u.manager, u.managerArgs
	}
	return changes{
		manager:   s.ManagerPath != before.ManagerPath || !slices.Equal(s.ManagerArgs, before.ManagerArgs),
		ports:     s.Ports != before.Ports,
		apiServer: len(u.apiServerArgs) > 0,
	}
}
