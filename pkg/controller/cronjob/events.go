// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// message is an event on the CronJob. Users and tools match reasons and texts, so they are
// upstream's to the letter.
//
// A message with a topic is told once: again only when its once-text changes, or after a sync to
// which it did not apply. The others tell of something that has just happened.
type message struct {
	eventType, reason, text string
	topic, once             string
}

func normal(reason, format string, args ...any) message {
	return message{eventType: v1.EventTypeNormal, reason: reason, text: fmt.Sprintf(format, args...)}
}

func warning(reason, format string, args ...any) message {
	return message{eventType: v1.EventTypeWarning, reason: reason, text: fmt.Sprintf(format, args...)}
}

func (m message) toldOnce(topic, once string) message {
	m.topic, m.once = topic, once
	return m
}

func jobDeleted(name string) message { return normal("SuccessfulDelete", "Deleted job %v", name) }

func jobNotDeleted(err error) message { return warning("FailedDelete", "Deleted job: %v", err) }

func jobCreated(name string) message { return normal("SuccessfulCreate", "Created job %v", name) }

func jobNotCreated(err error) message { return warning("FailedCreate", "Error creating job: %v", err) }

func nameTaken(name string) message {
	return warning("FailedCreate", "Error creating job: jobs.batch %q already exists and is controlled by something else", name)
}

func unexpectedJob(job *batch.Job) message {
	return warning("UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", job.Name).toldOnce("unexpected/"+string(job.UID), "")
}

func sawCompleted(job *batch.Job, as batch.JobConditionType) message {
	return normal("SawCompletedJob", "Saw completed job: %s, condition: %v", job.Name, as)
}

func missingJob(name string) message {
	return normal("MissingJob", "Active job went missing: %v", name)
}

func unknownTimeZone(zone string, err error) message {
	return warning("UnknownTimeZone", "invalid timeZone: %q: %s", zone, err).toldOnce("zone", zone)
}

// unparseable has another reason and text when the schedule was changed to this one while the
// controller ran.
func unparseable(cj *batch.CronJob, err error, changed bool) message {
	m := warning("UnparseableSchedule", "unparseable schedule: %q : %s", cj.Spec.Schedule, err)
	if changed {
		m = warning("UnParseableCronJobSchedule", "unparseable schedule for cronjob: %s", cj.Spec.Schedule)
	}
	return m.toldOnce("schedule", zonedSpec(cj))
}

func zoneInSchedule(cj *batch.CronJob) message {
	return warning("UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", cj.Spec.Schedule).
		toldOnce("unsupported", cj.Spec.Schedule)
}

func invalidSchedule(cj *batch.CronJob, err error) message {
	return warning("InvalidSchedule", "invalid schedule: %s : %s", cj.Spec.Schedule, err).toldOnce("schedule", zonedSpec(cj))
}

func tooManyMissed() message {
	return warning("TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew").toldOnce("many", "")
}

func missed(scheduled time.Time) message {
	return warning("MissSchedule", "Missed scheduled time to start a job: %s", scheduled.UTC().Format(time.RFC1123Z)).toldOnce("missed", scheduled.String())
}

func stillActive(scheduled time.Time) message {
	return normal("JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid").toldOnce("active", scheduled.String())
}
