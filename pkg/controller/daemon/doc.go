// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon runs the daemonset-controller: one Pod of each DaemonSet on each node that it is for.
//
// It watches DaemonSets, their Pods and ControllerRevisions, and nodes. It writes Pods (bound to a node
// by affinity; the scheduler places them), ControllerRevisions that record the templates, the status of
// DaemonSets, and events.
//
// # Vocabulary
//
//   - verdict: what a node means to a DaemonSet. It wants a Pod, or merely tolerates the one it has (a
//     NoSchedule taint), or must have none. Capacity and readiness do not matter.
//   - updated, old: a Pod that was made of the current template, or not; its label
//     controller-revision-hash tells.
//   - available: ready for minReadySeconds. Each node that wants a Pod and has no available one counts
//     as unavailable.
//   - surge: an updated Pod beside an old one on the same node.
//
// # Invariants
//
//   - The plan (plan.go, plan_rollout.go) is a pure function of listed objects and the time.
//   - A roll-out takes down an available Pod only while fewer than maxUnavailable nodes are without one;
//     nodes that are unavailable for whatever reason count. Pods that are not available anyway go first.
//   - Nothing is planned from caches that do not show the DaemonSet's own last writes, and a Pod whose
//     deletion was requested counts as going at once (package consistency).
//   - Roll-out waits for the round of creations and deletions before it to show.
//   - A node's event costs one verdict per DaemonSet, in a queue of its own, and no DaemonSet is synced
//     whose verdict on that node agrees with what it has there.
//
// # Differences from upstream, all on purpose
//
//   - Nodes are taken in the order of their names, not a random one.
//   - Syncs for events of Pods are batched (podEventPeriod): each looks at all nodes.
//   - Deletions carry the Pod's UID.
//   - A revision that differs only in how it was written down is the same (history.SameTemplate).
package daemon
