// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// markerFile holds the state of a cluster, and marks a folder as one.
const markerFile = "cluster.json"

// stopTimeout is how long a program has to end on its own.
const stopTimeout = 15 * time.Second

// state is what a later up must know to continue the same cluster.
type state struct {
	Ports controlplane.Ports `json:"ports"`
	Nodes int                `json:"nodes"`
	// ManagerPath is the binary that --kcm named; empty for the one that is built from this checkout.
	ManagerPath string `json:"managerPath,omitempty"`
	// ManagerArgs are the flags that the manager was started with on top of the usual ones.
	ManagerArgs []string `json:"managerArgs,omitempty"`
	// ExampleApplied: later changes to the example are the user's, and stay.
	ExampleApplied bool `json:"exampleApplied"`
}

// cluster is the folder of a cluster, held by this command alone.
type cluster struct {
	dir   string
	out   io.Writer
	state state
	isNew bool
}

// withCluster opens the folder, keeps other commands off it, and runs do.
func withCluster(dir string, out io.Writer, do func(*cluster) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("--data-dir %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another command works on the cluster in %s at the moment", dir)
	}

	c := &cluster{dir: dir, out: out}
	data, err := os.ReadFile(filepath.Join(dir, markerFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.isNew = true
	case err != nil:
		return fmt.Errorf("reading the cluster's state: %w", err)
	default:
		if err := json.Unmarshal(data, &c.state); err != nil {
			return fmt.Errorf("reading the cluster's state from %s: %w", filepath.Join(dir, markerFile), err)
		}
	}
	return do(c)
}

func (c *cluster) save() error {
	data, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster's state: %w", err)
	}
	path := filepath.Join(c.dir, markerFile)
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	return nil
}

// say prints a line of progress.
func (c *cluster) say(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

// hint returns the command line for this very cluster. $KCM_DATA may be set for one command only, so its folder is
// named like any other.
func (c *cluster) hint(target string, args ...string) string {
	if c.dir != homeDataDir() {
		args = append([]string{"--data-dir " + c.dir}, args...)
	}
	if len(args) == 0 {
		return "make " + target
	}
	return fmt.Sprintf("make %s ARGS=%q", target, strings.Join(args, " "))
}

// running returns the programs of the cluster that run.
func (c *cluster) running() (map[controlplane.Component]controlplane.Detached, error) {
	found, err := controlplane.FindDetached(c.dir)
	if err != nil {
		return nil, err
	}
	running := map[controlplane.Component]controlplane.Detached{}
	for _, program := range found {
		if program.Running {
			running[program.Component] = program
		}
	}
	return running, nil
}

// down stops everything, and removes the folder when purge is set.
func (c *cluster) down(purge bool) error {
	running, err := c.running()
	if err != nil {
		return err
	}
	if err := controlplane.StopDetached(c.dir, stopTimeout, c.out); err != nil {
		return err
	}
	switch {
	case purge && c.isNew:
		// Nothing says that this folder is a cluster: a slip in --data-dir must not cost someone's files.
		return fmt.Errorf("--purge: %s holds no cluster (no %s in it), nothing was removed", c.dir, markerFile)
	case purge:
		if err := c.purge(); err != nil {
			return err
		}
		c.say("The cluster in %s is removed.", c.dir)
	case len(running) == 0:
		c.say("Nothing runs of the cluster in %s.", c.dir)
	default:
		c.say("The cluster is down. Its data stays in %s: `%s` continues it, `%s` removes it.", c.dir, c.hint("up"), c.hint("down", "--purge"))
	}
	return nil
}

// purge removes what a cluster writes, and the folder only if nothing else is in it.
func (c *cluster) purge() error {
	for _, name := range []string{"etcd", "pki", "kubeconfig", "logs", "run", "kwok-stages.yaml", "example.yaml", "admin.conf", ".lock", markerFile} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			return fmt.Errorf("--purge: %w", err)
		}
	}
	if err := os.Remove(c.dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("--purge: %w", err)
	}
	return nil
}

// showStatus prints a line per program. It needs no lock: it changes nothing.
func showStatus(dir string, out io.Writer) error {
	found, err := controlplane.FindDetached(dir)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		fmt.Fprintf(out, "Nothing runs of the cluster in %s.\n", dir)
		return nil
	}
	for _, program := range found {
		what := fmt.Sprintf("runs as process %d", program.PID)
		if !program.Running {
			what = "has ended unasked (up starts it again)"
		}
		fmt.Fprintf(out, "%-24s %s; log: %s\n", program.Component, what, program.LogPath)
	}
	return nil
}
