// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package framework

import "syscall"

// dieWithParent keeps the terminal's Ctrl-C from a manager. Only Linux can have
// it die with the test process.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
