// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core counts what the objects of a namespace use of a quota: Pods, Services,
// PersistentVolumeClaims and ResourceClaims by what they ask for, a few others under the names
// that quotas had for them before count/… came.
//
// The evaluators count for the controller. What the admission plugin in the API server asks of an
// evaluator beyond counting (Constraints, Handles, UncoveredQuotaScopes) is answered, too, since the
// interface of k8s.io/apiserver/pkg/quota/v1 demands it.
//
// How things count is the API's: admission charges by the same rules, and a difference between the
// two would show as a usage that jumps. Hence the quirks:
//   - "pods" and what Pods ask for leave out Pods that have ended, and Pods in deletion whose grace
//     period is over (their node is lost, say); "count/pods" counts every object.
//   - A Pod's requests are the larger of what its spec asks for and what its status says is
//     allocated, so that a resize downward does not free quota before it is done.
//   - A PersistentVolumeClaim's size is the larger of the request and status.allocatedResources.
//   - A request of a ResourceClaim for all devices counts as the most that a claim can get; one of
//     several alternatives counts the largest alternative of each class.
package core
