// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package util holds the arithmetic of Deployments: which ReplicaSet is the new one, how far a
// rollout may go, what the annotations on ReplicaSets say, when a rollout is complete.
//
// All functions but the three that list or wait for their caller are pure; objects that are passed
// in are changed only by functions whose name begins with Set or Remove. The exported names and
// signatures are those that tools and tests written for upstream's package use.
package util
