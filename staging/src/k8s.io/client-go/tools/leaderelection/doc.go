// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderelection makes one candidate of several the leader, by a Lease that they compete for.
//
// A candidate judges time by its own monotonic clock alone: a lease has expired when its record was not seen to
// change for as long as the record says. Times that others wrote are never read, so clocks may differ at will; what
// counts is how much faster one runs than another, and a leader that stops at RenewDeadline while the others wait
// for LeaseDuration is safe up to the ratio of the two (15s to 10s by default).
//
// The leader may act until RenewDeadline after the start of its last successful renewal, since the record changed no
// earlier than that. LeaderCallbacks.OnRenewed tells that deadline, for a fence around its writes. Standbys watch the
// Lease: they take a released one at once and an expired one when it expires; without a watch they poll. A Lease that
// somebody deletes, or whose holder somebody blanks out, says nothing to that holder, who acts on until it looks: others
// take it no sooner than if it had just been renewed. Only a candidate that starts while the Lease is deleted takes it
// for one that never was, and makes it at once: do not delete the Lease of a running leader.
//
// What to do next is decided by a pure function (plan.go); one goroutine carries it out (elector.go).
package leaderelection
