// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ttlafterfinished deletes finished Jobs when their ttlSecondsAfterFinished has
// passed (KEP-592).
//
// It watches Jobs and deletes them in the foreground: a Job goes after its Pods. It writes
// nothing else and records no events.
//
// A Job is finished when its condition Complete or Failed is true; it expires its TTL after
// that condition became true. A Job that has not expired comes back when it will have; each
// look starts anew from the Job as it is then, so that a TTL may be changed at any time.
//
// Invariants. A Job is read live before it is deleted, and deleted under the UID and the
// resourceVersion of that read: a TTL that was raised, or a Job that was made anew, even in
// the last moment, is respected.
//
// Where upstream differs:
//   - The deletion has no resourceVersion: a TTL raised between the live read and the
//     deletion comes too late.
//   - A Job that has finished at no time (a condition without lastTransitionTime) is retried
//     for ever; here it waits for its next event.
//
// A clock that runs ahead: a Job that has finished in the future is logged, and expires by
// that time.
package ttlafterfinished
