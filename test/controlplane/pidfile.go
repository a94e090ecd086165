// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// processID tells a process from a later one with the same number.
type processID struct {
	PID int `json:"pid"`
	// Started is when the process started, in a form of the operating system that includes the boot.
	Started string `json:"started"`
}

// identify returns the identity of a child of ours, which may have ended, but which nobody has waited for.
func identify(pid int) (processID, error) {
	started, _, err := lookUp(pid)
	if err != nil {
		return processID{}, fmt.Errorf("identifying process %d: %w", pid, err)
	}
	return processID{PID: pid, Started: started}, nil
}

// running reports whether this very process is alive. One that ended and that nobody has waited for is not.
func (id processID) running() bool {
	started, ended, err := lookUp(id.PID)
	return err == nil && !ended && started == id.Started
}

// signal sends sig to the process's group, which it leads. A process that has ended is no error.
func (id processID) signal(sig syscall.Signal) error {
	if !id.running() {
		return nil
	}
	if err := syscall.Kill(-id.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process group %d: %w", sig, id.PID, err)
	}
	return nil
}

func writePidFile(path string, id processID) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeFile(path, data, 0o600)
}

// readPidFile returns the process that the file names, if it is running. A file that cannot be read names none: the
// port that the process would hold tells if it is there all the same.
func readPidFile(path string) (processID, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return processID{}, false
	}
	var id processID
	if json.Unmarshal(data, &id) != nil || id.PID <= 1 {
		return processID{}, false
	}
	return id, id.running()
}

// removePidFile removes the file if it is about this process. A file left behind does no harm.
func removePidFile(path string, id processID) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var written processID
	if json.Unmarshal(data, &written) == nil && written == id {
		os.Remove(path)
	}
}
