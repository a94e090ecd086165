// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane on this machine: etcd and kube-apiserver, and on request
// kube-scheduler and kwok with fake nodes. Tests start one per package and stop it in TestMain; the local cluster
// (test/cmd/localup) starts one that outlives the command.
//
// Everything is on 127.0.0.1 and under one folder, Options.Dir: certificates (pki), kubeconfigs, etcd's data, one log
// per component (logs). RBAC is on and every user has a certificate of its own, so a test sees what production sees.
//
// Concurrency: a ControlPlane may be used from many goroutines. Each program has one goroutine that started it and
// waits for it; Stop returns when all of them have ended, so nothing leaks. A program that dies unasked is reported by
// Done and Err with its name, its log's path and the last lines of the log.
//
// Faults: StopComponent, KillComponent, StartComponent, PauseComponent and ResumeComponent act on one program, so that
// a test can take the API server away and give it back with the same data, ports and certificates.
package controlplane
