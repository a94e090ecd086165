// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Detached is a program that runs, or ran, detached under a folder.
type Detached struct {
	Component Component
	PID       int
	Running   bool
	LogPath   string

	pidPath string
	process processID
}

// FindDetached returns the programs that a detached control plane in dir has left running, or that ended unasked,
// in the order in which they are stopped: who uses a program comes before it.
func FindDetached(dir string) ([]Detached, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "run", "*.pid"))
	if err != nil {
		return nil, fmt.Errorf("looking for programs under %s: %w", dir, err)
	}
	var found []Detached
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".pid")
		process, running := readPidFile(path)
		found = append(found, Detached{
			Component: Component(name),
			PID:       process.PID,
			Running:   running,
			LogPath:   filepath.Join(dir, "logs", name+".log"),
			pidPath:   path,
			process:   process,
		})
	}
	slices.SortFunc(found, func(a, b Detached) int {
		return cmp.Or(stopOrder(a.Component)-stopOrder(b.Component), strings.Compare(string(a.Component), string(b.Component)))
	})
	return found, nil
}

// stopOrder puts managers first, whatever their names.
func stopOrder(name Component) int {
	order := []Component{ComponentKwok, ComponentScheduler, ComponentAPIServer, ComponentEtcd}
	return 1 + slices.Index(order, name)
}

// Stop ends the program: SIGTERM, SIGKILL after the grace. It returns when the program has ended. A process that was
// given the program's number later is left alone.
func (d Detached) Stop(grace time.Duration) error {
	if !d.Running {
		return forgetPid(d.pidPath)
	}
	p := &program{name: d.Component, logPath: d.LogPath, pidPath: d.pidPath, detached: true}
	p.current = p.adopt(d.process)
	return p.stop(grace)
}

func forgetPid(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting a program that has ended: %w", err)
	}
	return nil
}

// StopDetached stops all programs that a detached control plane in dir has left running. Its data stays. Each one is
// reported to log by a line.
func StopDetached(dir string, grace time.Duration, log io.Writer) error {
	found, err := FindDetached(dir)
	if err != nil {
		return err
	}
	for _, program := range found {
		if err := program.Stop(grace); err != nil {
			return err
		}
		if program.Running {
			fmt.Fprintf(log, "%s stopped\n", program.Component)
		}
	}
	return nil
}
