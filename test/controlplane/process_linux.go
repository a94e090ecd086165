// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// processAttributes put a program into a group of its own, so that its children can be signalled with it: a session of
// its own when detached, else one that is killed when this process ends.
func processAttributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startedAt returns the boot and the clock tick in it at which the process started. A zombie counts as ended: where
// nobody reaps (a container whose first process is no init) it stays for ever.
func startedAt(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses, which may hold any character: proc_pid_stat(5).
	_, rest, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest))
	const state, startTime = 0, 19 // fields 3 and 22
	if !found || len(fields) <= startTime {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the name, want more than %d", pid, len(fields), startTime)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", errors.New("it has ended")
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[startTime], nil
}
