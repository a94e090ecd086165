// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption runs the disruption-controller: it keeps the status of PodDisruptionBudgets, by
// which the eviction API decides how many Pods may go now.
//
// It watches PodDisruptionBudgets, Pods, and what scales Pods: ReplicationControllers, ReplicaSets,
// Deployments and StatefulSets. Any other owner is asked for its scale sub-resource. It writes the
// status of budgets, the DisruptionTarget condition of Pods that were to go and did not, and events.
//
// # Vocabulary
//
//   - expected: how many Pods there should be: the sum of the scales of the selected Pods' controllers,
//     each counted once; with an integer minAvailable, how many there are.
//   - desired: how many of the expected must stay healthy. allowed is what healthy Pods exceed it by.
//   - disrupted: a Pod that the API server has let go. It writes the name and the time into
//     status.disruptedPods before it deletes the Pod, so that the Pod counts as gone until the caches
//     show its deletion, or for two minutes.
//   - unmanaged: a Pod without a controller; nothing says how many of those are expected.
//
// # Invariants
//
//   - A status is computed by makePlan from cached objects alone, and written only when it differs, at
//     the resourceVersion that it was computed from: an eviction in between makes the write fail.
//   - When the numbers cannot be known no disruption is allowed (SyncFailed).
//   - Nothing is computed from a cache that does not show the budget's last write.
//
// # Differences from upstream, all on purpose
//
//   - Of several budgets that select a Pod all are kept right. Upstream updates one of them,
//     arbitrarily, when the Pod changes, and warns; so do we warn.
//   - A Pod whose labels change counts anew for the budgets that selected it before, too.
//   - Events are repeated when what they tell of has changed, not with each look at a budget.
//   - A budget whose numbers cannot be known is looked at again after a minute, without an event.
//   - The stale DisruptionTarget condition is taken back by a patch that names this condition only.
//     Upstream sends the whole status (kubernetes/kubernetes#113578 is about what can go wrong then).
package disruption
