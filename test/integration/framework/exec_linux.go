// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "syscall"

// dieWithParent has a manager killed with the test process, however that ends,
// and keeps the terminal's Ctrl-C from it: the test decides when it stops.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
