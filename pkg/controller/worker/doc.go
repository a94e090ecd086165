// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker is the one reconcile loop that every controller runs on.
//
// A controller brings a sync function for one typed key and event handlers that only enqueue;
// the Worker owns everything between: the queue, the goroutines, the panic guard, retries with
// back-off, the slow-sync line in the log, metrics under upstream's workqueue names, and a live
// record of what waits, runs and fails, which health checks and debug pages read.
//
// The sync function is called, it does not fetch: Done cannot be forgotten. One key is never
// synced by two goroutines at a time, and a key added while it is synced is synced once more.
// Keys from an informer's initial list (AddInitial) yield to keys of live events (Add), so that a
// user's change is answered while a restarted manager still works through its backlog.
package worker
