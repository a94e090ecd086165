// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job runs Jobs: it creates their Pods, counts those that end, and says when the
// Job has ended.
//
// It watches Jobs and Pods, and writes Pods (create, delete, adopt, release, the finalizer
// batch.kubernetes.io/job-tracking), the status of Jobs, and events on them.
//
// Vocabulary. Tracked: a Pod with the finalizer; it cannot vanish before it is counted.
// Uncounted: a Pod that has ended and that the status lists by UID
// (status.uncountedTerminatedPods). Folding: adding a listed Pod that has lost the finalizer
// to the counts. Verdict: how a Job is to end; its target condition (SuccessCriteriaMet or
// FailureTarget) comes before the final one (Complete or Failed), which waits until no Pod
// is left to end or to count. Kept: the last failed Pod of an index that waits for its
// replacement.
//
// How a Pod is counted once, wherever the controller dies in between:
//
//	ended, tracked ──status──▶ listed, tracked ──patch──▶ listed, untracked ──status──▶ counted
//
// Each step can be seen in what is stored, so that a sync goes on from there. The succeeded
// Pods of an Indexed Job need no list: their index, once in completedIndexes, is counted.
//
// Invariants. A sync decides only from caches that have seen the Job's own writes (the guard
// of package consistency; it is always on, the gate StaleControllerConsistencyJob is accepted
// and changes nothing), and all that was written before this manager led; as long as the
// cache of Pods may be older than that, or than a request of unknown outcome, they are listed
// live. Statuses are written under the Job's resourceVersion, and only when they
// differ. Pods are deleted, and lose the finalizer, under their UID.
//
// Where upstream differs:
//   - Folding takes a write of its own there; here it goes with the next status, at the
//     latest after SyncJobBatchPeriod.
//   - A status of an ending Job that has nothing to wait for is one write, not two.
//   - While other Jobs wait for a worker, a Job whose Pods have all ended is stored as ended, with
//     all of them counted, before they lose the finalizer: a Job that has ended counts no Pod any
//     more. They lose it when no Job has waited for a second, or half a minute later.
//   - A Pod whose Job is not in the cache loses its finalizer there at once, also when the
//     cache is only late; here the Job is looked up live first.
//   - After a restart the back-off is read off the Pods that are there, and not forgotten.
//   - In a namespace in deletion a failed Pod of backoffLimitPerIndex is not kept for a
//     replacement that is refused, which never ends there.
//   - The alpha gate WorkloadWithJob (off by default) has no effect: no Workload and no PodGroup
//     is made for a Job.
//   - Events on the end and on suspension are sent after the status that says so is stored.
package job
