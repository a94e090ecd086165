// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework runs real controllers against a real API server in Go tests.
//
// A test package calls Main from TestMain: it starts one etcd and one
// kube-apiserver for the package and stops them at the end. Each test calls New
// for an Env: clients of any user, namespaces of its own, conditions to wait
// for (WaitFor), fake nodes (Kubelet), controllers in this process
// (Controllers), our manager as a process (StartManager), a proxy that injects
// faults (Proxy) and the API server's audit log (Audit). What a test starts is
// stopped, and waited for, by its own cleanup.
//
// Tests carry the build tag integration, so that a plain go test stays quick:
//
//	hack/test.sh                       # all tests, with the tag
//	go test -tags integration ./test/integration/replicaset
//
// Binaries come from hack/tools/build.sh, or from the folder KCM_BIN_DIR. A
// missing one fails the package with one line; nothing is ever skipped. The
// manager is built from the checkout, unless KCM_MANAGER_BIN names another.
//
// The folder KCM_TEST_KEEP, if set, receives the logs of the control plane and
// of the managers of a failed run.
package framework
