// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	fields, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false, err
	}
	zombie := fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1")
	return strings.TrimSpace(string(boot)) + "/" + fields[startTime], zombie || fields[state] == "X", nil
}

// Fields 3, 20 and 22 of a process's stat, among those that readStat returns.
const state, threads, startTime = 0, 17, 19

// readStat returns the fields of a process's or a thread's stat from the third on. The second is the program's name in
// parentheses, which may hold any character: proc_pid_stat(5).
func readStat(path string) ([]string, error) {
	stat, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startTime {
		return nil, fmt.Errorf("%s has %d fields after the name, want more than %d", path, len(fields), startTime)
	}
	return fields, nil
}

// allStopped tells whether every thread of a process has been stopped.
func allStopped(pid int) (bool, error) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, path := range stats {
		fields, err := readStat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		if fields[state] != "T" {
			return false, nil
		}
	}
	return len(stats) > 0, nil
}
