// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Reasons and messages of the condition Suspended; its events carry the messages.
const (
	reasonJobSuspended  = "JobSuspended"
	reasonJobResumed    = "JobResumed"
	messageJobSuspended = "Job suspended"
	messageJobResumed   = "Job resumed"
)

// Reasons of events. Those on the creation and deletion of Pods are the pod control's.
const (
	eventSuspended             = "Suspended"
	eventResumed               = "Resumed"
	eventCompleted             = "Completed"
	eventTooManySucceeded      = "TooManySucceededPods"
	eventUnknownCompletionMode = "UnknownCompletionMode"
)

func reportUnknownCompletionMode(r record.EventRecorder, job *batch.Job) {
	r.Event(job, v1.EventTypeWarning, eventUnknownCompletionMode, "Skipped Job sync because completion mode is unknown")
}

// reportSuspension tells once, after the condition has been stored.
func reportSuspension(r record.EventRecorder, job *batch.Job, t *tracking) {
	if t.suspended {
		r.Event(job, v1.EventTypeNormal, eventSuspended, messageJobSuspended)
	}
	if t.resumed {
		r.Event(job, v1.EventTypeNormal, eventResumed, messageJobResumed)
	}
}

// reportEnd tells that the Job has ended, after that has been stored.
func reportEnd(r record.EventRecorder, job *batch.Job, v *verdict, succeeded int32) {
	if v.failed() {
		r.Event(job, v1.EventTypeWarning, v.reason, v.message)
		return
	}
	if job.Spec.Completions != nil && succeeded > *job.Spec.Completions {
		r.Event(job, v1.EventTypeWarning, eventTooManySucceeded, "Too many succeeded pods running after completion count reached")
	}
	r.Event(job, v1.EventTypeNormal, eventCompleted, "Job completed")
}
