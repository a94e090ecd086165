// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakekubelet plays the nodes of a cluster that has none: it creates
// Node objects, renews their leases, binds pods to them and reports the pods'
// status as kubelets do.
//
// A Kubelet watches pods and drives each one through its life: bound, Running,
// Ready; and, when it is deleted, terminated within its grace period and
// removed with a final DELETE of grace period 0. What becomes of a pod is
// decided by the rules of Set, and can be changed while it runs.
//
// It acts on the API only: no container ever runs, so hundreds of pods cost as
// many requests and nothing else. Its user agent is "fake-kubelet".
//
// Concurrency: all methods may be called from any goroutine. Run owns every
// goroutine and returns when all of them have ended.
package fakekubelet
