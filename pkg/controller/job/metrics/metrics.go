// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the Job controller does, under upstream's names.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "job_controller"

// Values of the label action of syncs: what a sync did.
const (
	// JobSyncActionReconciling: it changed neither Pods nor counts.
	JobSyncActionReconciling = "reconciling"
	// JobSyncActionTracking: it counted finished Pods.
	JobSyncActionTracking = "tracking"
	// JobSyncActionPodsCreated: it created Pods.
	JobSyncActionPodsCreated = "pods_created"
	// JobSyncActionPodsDeleted: it deleted Pods.
	JobSyncActionPodsDeleted = "pods_deleted"
)

// Values of the labels result and status.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
)

// Values of the label event of TerminatedPodsTrackingFinalizerTotal.
const (
	Add    = "add"
	Delete = "delete"
)

// Values of the label reason of JobPodsCreationTotal.
const (
	// PodCreateNew: no Pod of the Job has failed or is being deleted.
	PodCreateNew = "new"
	// PodRecreateTerminatingOrFailed: a Pod has failed or is being deleted, and both are replaced.
	PodRecreateTerminatingOrFailed = "recreate_terminating_or_failed"
	// PodRecreateFailed: a Pod has failed, and only those are replaced.
	PodRecreateFailed = "recreate_failed"
)

// Values of the label backoffLimit of JobFinishedIndexesTotal.
const (
	BackoffLimitGlobal   = "global"
	BackoffLimitPerIndex = "perIndex"
)

// The collectors are variables of the package because upstream's are: tests written for
// upstream's package read them.
var (
	// JobSyncDurationSeconds is how long syncs take.
	JobSyncDurationSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "job_sync_duration_seconds",
		Help:           "The time it took to sync a job",
		StabilityLevel: metrics.STABLE,
		Buckets:        metrics.ExponentialBuckets(0.004, 2, 15),
	}, []string{"completion_mode", "result", "action"})
	// JobSyncNum counts syncs.
	JobSyncNum = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "job_syncs_total",
		Help:           "The number of job syncs",
		StabilityLevel: metrics.STABLE,
	}, []string{"completion_mode", "result", "action"})
	// JobFinishedNum counts Jobs that have finished.
	JobFinishedNum = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "jobs_finished_total",
		Help:           "The number of finished jobs",
		StabilityLevel: metrics.STABLE,
	}, []string{"completion_mode", "result", "reason"})
	// JobPodsFinished counts Pods that are in the counts of their Job.
	JobPodsFinished = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "job_pods_finished_total",
		Help:           "The number of finished Pods that are fully tracked",
		StabilityLevel: metrics.STABLE,
	}, []string{"completion_mode", "result"})
	// PodFailuresHandledByFailurePolicy counts failed Pods that a rule of their Job's policy matched.
	PodFailuresHandledByFailurePolicy = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem,
		Name:      "pod_failures_handled_by_failure_policy_total",
		Help: "The number of failed Pods handled by failure policy with\n" +
			"respect to the failure policy action applied based on the matched\n" +
			"rule. Possible values of the action label correspond to the\n" +
			"possible values for the failure policy rule action, which are:\n" +
			"\"FailJob\", \"Ignore\" and \"Count\".",
		StabilityLevel: metrics.BETA,
	}, []string{"action"})
	// TerminatedPodsTrackingFinalizerTotal counts finished Pods that have the finalizer (event
	// add) and those that have lost it (event delete): the difference is the backlog.
	TerminatedPodsTrackingFinalizerTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem,
		Name:      "terminated_pods_tracking_finalizer_total",
		Help: "The number of terminated pods (phase=Failed|Succeeded)\n" +
			"that have the finalizer batch.kubernetes.io/job-tracking\n" +
			"The event label can be \"add\" or \"delete\".",
		StabilityLevel: metrics.BETA,
	}, []string{"event"})
	// JobFinishedIndexesTotal counts indexes that have finished.
	JobFinishedIndexesTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem,
		Name:      "job_finished_indexes_total",
		Help: "The number of finished indexes. Possible values for the\n" +
			"\t\t\tstatus label are: \"succeeded\", \"failed\". Possible values for the\n" +
			"\t\t\tbackoffLimit label are: \"perIndex\" and \"global\"",
	}, []string{"status", "backoffLimit"})
	// JobPodsCreationTotal counts Pods that were, or could not be, created.
	JobPodsCreationTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem,
		Name:      "job_pods_creation_total",
		Help: "The number of Pods created by the Job controller labelled with a reason for the Pod creation.\n" +
			"This metric also distinguishes between Pods created using different PodReplacementPolicy settings.\n" +
			"Possible values of the \"reason\" label are:\n" +
			"\"new\", \"recreate_terminating_or_failed\", \"recreate_failed\".\n" +
			"Possible values of the \"status\" label are:\n" +
			"\"succeeded\", \"failed\".",
	}, []string{"reason", "status"})
	// JobByExternalControllerTotal counts Jobs that were created for another controller.
	JobByExternalControllerTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "jobs_by_external_controller_total",
		Help:           "The number of Jobs managed by an external controller",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller_name"})
	// StaleSyncSkips counts syncs that were put off because a cache was older than the Job's last write.
	StaleSyncSkips = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "stale_sync_skips_total",
		Help:           "Total number of Job syncs skipped due to a stale watch cache.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"group", "resource"})
)

// Register registers the collectors with the process's registry; calling it again does
// nothing.
var Register = sync.OnceFunc(func() {
	for _, c := range []metrics.Registerable{
		JobSyncDurationSeconds, JobSyncNum, JobFinishedNum, JobPodsFinished, PodFailuresHandledByFailurePolicy,
		TerminatedPodsTrackingFinalizerTotal, JobFinishedIndexesTotal, JobPodsCreationTotal,
		JobByExternalControllerTotal, StaleSyncSkips,
	} {
		// The process may hold upstream's own of that name; ours then count unseen.
		_ = legacyregistry.Register(c)
	}
})
