// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cronjob creates the Jobs of CronJobs at their scheduled times.
//
// It watches CronJobs and Jobs. It creates Jobs, deletes them (beyond the history limits, and for
// the policy Replace) and writes the status of CronJobs: active, lastScheduleTime and
// lastSuccessfulTime.
//
// Vocabulary. A time is a moment that the schedule names; a run is the Job of a time. Only the
// latest time that has come is ever run: the missed ones before it are not made up for.
//
// Invariants.
//   - One Job for one time, however often the manager restarts. The time is in the Job's name, so
//     that the API server refuses a second one; and a Job that exists counts as run even when the
//     status does not say so. A finished Job is kept until its time is safe in lastScheduleTime.
//   - The times around now are found by bisection, not by a walk: a CronJob that was suspended for
//     years costs no more than one that runs each minute.
//   - A new schedule starts nothing for times before it was there (kubernetes/kubernetes#63371).
//   - A message about the schedule is an event once, not at each sync.
//   - When the wall clock is set, all CronJobs are looked at anew (clock.go).
//
// Where upstream differs:
//   - A run whose Job was created but is not in the status (a crash in between) is put into
//     active as soon as it is seen, so that Forbid and Replace respect it; upstream warns of an
//     UnexpectedJob and finds out when the creation fails, or never when the next time has come.
//   - An active Job is not read before Replace deletes it, hence no event FailedGet: the deletion has
//     the UID as precondition. The other live reads of upstream, for the case of a late cache, are
//     done only for active Jobs that the cache does not have.
//   - With "@every" and a startingDeadlineSeconds shorter than the interval upstream never runs
//     anything, because the deadline shifts the grid of times; here the grid begins at the last
//     run, whatever the deadline.
//   - MissSchedule is an event for a time that was missed by more than startingDeadlineSeconds;
//     upstream has the words but does not get there.
//   - After an edit upstream waits for the next time, but runs an old one if any other event comes
//     first.
//   - A Job of another owner under a run's name is told by an event FailedCreate, and the next try
//     is at the next time; upstream retries quietly with back-off.
//   - A schedule that has no times, such as the 31st of February, is InvalidSchedule as upstream's.
package cronjob
