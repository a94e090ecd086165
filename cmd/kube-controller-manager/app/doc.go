// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app wires the controller manager, in start-up order:
//
//	NewControllerManagerCommand  flags → options → config → Run     controllermanager.go
//	Run                          events, serving, clients           controllermanager.go, serving.go, clients.go
//	  warm the informers, then elect                                context.go, leader.go
//	  leading: build every controller, run it, supervise it         descriptor.go, run.go, supervise.go
//
// Nothing beneath main ends the process or keeps state in package variables: Run returns an error,
// and two managers can run in one process. docs/architecture.md tells the same story at length.
package app
