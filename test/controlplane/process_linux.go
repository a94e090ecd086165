// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
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

// lookUp returns when the process started, as the boot and the clock tick in it, and whether it has ended: a zombie
// has, for where nobody reaps (a container whose first process is no init) it stays for ever. One whose other threads
// are still on their way out has not: it may hold its ports yet.
func lookUp(pid int) (started string, ended bool, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false, err
	}
	// The second field is the program's name in parentheses, which may hold any character: proc_pid_stat(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, threads, startTime = 0, 17, 19 // fields 3, 20 and 22
	if len(fields) <= startTime {
		return "", false, fmt.Errorf("/proc/%d/stat has %d fields after the name, want more than %d", pid, len(fields), startTime)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false, err
	}
	zombie := fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1")
	return strings.TrimSpace(string(boot)) + "/" + fields[startTime], zombie || fields[state] == "X", nil
}
