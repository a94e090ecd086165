// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selectorindex answers, without walking a namespace, which Services select a Pod and which
// Pods a Service selects.
//
// A selector selects what carries all of its label pairs. It is therefore enough to look under one
// of them: Services files each Service under the pair that has the fewest Services so far, and Pods
// looks under the pair of the selector that the fewest Pods carry. What is found under a pair is
// compared in full.
//
// A Change is what a Pod's event means to Services, small and comparable so that a queue can hold
// it: a thousand events of Pods with the same labels are one Change. Event handlers make it (FromPod)
// and keep the index of Services (Set, Delete); a worker looks up what it affects (Affected).
package selectorindex
