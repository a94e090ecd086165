// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller holds what several workload controllers share: owning objects
// (ref managers that claim, adopt and release), writing Pods with their events (pod
// control), naming by template (ComputeHash), choosing the Pods to delete first
// (ActivePods, ActivePodsWithRanks), looking Pods up by owner (indexes), and recording
// events (EventPipeline).
//
// There are no expectations here. A controller that must not act on a cache older
// than its own writes uses package consistency, which the OnWrite callback of
// RealPodControl feeds.
//
// Unlike upstream, a Pod is deleted under a precondition on its UID (DeletePodByUID):
// a stale cache can never take down a new Pod of the same name.
package controller
