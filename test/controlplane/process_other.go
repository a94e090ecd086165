// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes put a program into a group of its own, so that its children can be signalled with it, and a
// session of its own when detached. Only Linux can tie its life to ours.
func processAttributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// lookUp returns when the process started, as ps prints it, and whether it has ended: a zombie has.
func lookUp(pid int) (started string, ended bool, err error) {
	out, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", false, err
	}
	state, started, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !found {
		return "", false, errors.New("ps does not know it")
	}
	return strings.TrimSpace(started), strings.HasPrefix(state, "Z"), nil
}

// allStopped tells whether a process has been stopped.
func allStopped(pid int) (bool, error) {
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false, err
	}
	return strings.HasPrefix(string(out), "T"), nil
}
