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

// startedAt returns the time at which the process started, as ps prints it. A zombie counts as ended.
func startedAt(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if state == "" || strings.HasPrefix(state, "Z") {
		return "", errors.New("it has ended")
	}
	return strings.TrimSpace(started), nil
}
