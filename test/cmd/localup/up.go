// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// components is the number of programs of a whole cluster.
const components = 5

// up brings the cluster up and returns when all of it is ready.
func (c *cluster) up(ctx context.Context, u *upFlags, flags *pflag.FlagSet) error {
	if err := u.validate(); err != nil {
		return err
	}
	running, err := c.running()
	if err != nil {
		return err
	}
	manager, managerRuns := running[controlplane.ComponentManager]
	change := u.apply(&c.state, c.isNew, managerRuns, flags)
	if err := c.refuseLateChange(change, running); err != nil {
		return err
	}
	if err := checkPorts(c.state.Ports); err != nil {
		return err
	}
	if u.manager != "" {
		if err := checkManager(ctx, u.manager); err != nil {
			return err
		}
	}

	whole := len(running) == components && !change.manager
	managerPath := c.state.ManagerPath
	// One that runs may have lost its lease and ended by the time that the API server is back.
	if managerPath == "" && !whole {
		if managerPath, err = buildManager(ctx); err != nil {
			return err
		}
	}
	binaries, err := controlplane.FindBinaries(ctx, controlplane.Binaries{}, os.Stderr, controlplane.ComponentEtcd,
		controlplane.ComponentAPIServer, controlplane.ComponentScheduler, controlplane.ComponentKwok, "kubectl")
	if err != nil {
		return err
	}
	if managerRuns && change.manager {
		c.say("Stopping the controller manager: another one is asked for.")
		if err := manager.Stop(stopTimeout); err != nil {
			return err
		}
	}
	plane, err := c.start(ctx, binaries, managerPath, u.apiServerArgs)
	if err != nil {
		return explainPort(err)
	}
	return c.present(ctx, plane, binaries.Kubectl, whole, !u.noExample)
}

// refuseLateChange returns an error for flags that need a stopped cluster.
func (c *cluster) refuseLateChange(change changes, running map[controlplane.Component]controlplane.Detached) error {
	if len(running) > 0 && change.ports {
		return fmt.Errorf("the cluster runs with other ports: stop it (%s) before you change them", c.hint("down"))
	}
	if _, runs := running[controlplane.ComponentAPIServer]; runs && change.apiServer {
		return fmt.Errorf("--apiserver-arg: the API server runs already: stop the cluster (%s) first", c.hint("down"))
	}
	return nil
}

// start starts what does not run. State is saved first: whatever happens next, down finds everything.
func (c *cluster) start(ctx context.Context, binaries controlplane.Binaries, managerPath string, apiServerArgs []string) (*controlplane.ControlPlane, error) {
	if err := c.save(); err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Dir:           c.dir,
		Binaries:      binaries,
		Ports:         c.state.Ports,
		APIServerArgs: apiServerArgs,
		Scheduler:     true,
		Kwok:          true,
		Nodes:         c.state.Nodes,
		Durable:       true,
		Detached:      true,
		StopTimeout:   stopTimeout,
		Log:           c.out,
	})
	if err != nil {
		return nil, err
	}
	if err := plane.StartManager(ctx, controlplane.Manager{Path: managerPath, Args: c.state.ManagerArgs}); err != nil {
		c.say("The rest of the cluster runs on: `%s` tries again, `%s` stops it.", c.hint("up"), c.hint("down"))
		return nil, err
	}
	return plane, nil
}

// explainPort adds to a taken port which flag chooses another.
func explainPort(err error) error {
	var busy *controlplane.PortBusyError
	if errors.As(err, &busy) {
		return fmt.Errorf("%w (--ports-from, or the flag for this one; --help lists them)", err)
	}
	return err
}

// buildManager builds this checkout's controller manager.
func buildManager(ctx context.Context) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	var path strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build-manager.sh"))
	cmd.Stdout, cmd.Stderr = &path, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building kube-controller-manager failed (see above), --kcm takes a binary that exists: %w", err)
	}
	return strings.TrimSpace(path.String()), nil
}
