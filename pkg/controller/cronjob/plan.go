// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// manyMissed is how many missed times are told.
const manyMissed = 100

// instantiateAnnotation is on Jobs that a user has made from a CronJob, with kubectl say.
const instantiateAnnotation = "cronjob.kubernetes.io/instantiate"

// finishedAs returns the condition by which a Job has finished, "" when it has not.
func finishedAs(job *batch.Job) batch.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batch.JobComplete || c.Type == batch.JobFailed) && c.Status == v1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// jobName returns the name of the Job of a scheduled time. That the time is in it makes a second
// Job for one time impossible, whoever forgets what.
func jobName(cj *batch.CronJob, scheduled time.Time) string {
	return fmt.Sprintf("%s-%d", cj.Name, scheduled.Unix()/60)
}

// scheduledTime returns the time for which the controller has created this Job of the CronJob;
// false for Jobs that somebody else has made.
func scheduledTime(cj *batch.CronJob, job *batch.Job) (time.Time, bool) {
	suffix, ok := strings.CutPrefix(job.Name, cj.Name+"-")
	if _, byHand := job.Annotations[instantiateAnnotation]; !ok || byHand {
		return time.Time{}, false
	}
	minutes, err := strconv.ParseInt(suffix, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	exact, err := time.Parse(time.RFC3339, job.Annotations[batch.CronJobScheduledTimestampAnnotation])
	if err == nil && exact.Unix()/60 == minutes {
		return exact, true
	}
	return time.Unix(minutes*60, 0), true
}

// observation is what the CronJob's Jobs say about its status.
type observation struct {
	status batch.CronJobStatus
	events []message
	// missing are the active Jobs that the cache does not have.
	missing []v1.ObjectReference
}

// observe brings a CronJob's status up to what its Jobs say. The Jobs are those that the cache has
// with the CronJob as their controller. Those in deleted were deleted by the controller, which the
// cache may not show yet.
func observe(cj *batch.CronJob, jobs []*batch.Job, deleted sets.Set[types.UID], now time.Time) observation {
	o := observation{status: *cj.Status.DeepCopy()}
	children := make(map[types.UID]bool, len(jobs))
	for _, job := range jobs {
		children[job.UID] = true
		if deleted.Has(job.UID) {
			dropActive(&o.status, job.UID)
		}
		o.see(cj, job, deleted.Has(job.UID) || job.DeletionTimestamp != nil, now)
	}
	for _, ref := range o.status.Active {
		if !children[ref.UID] {
			o.missing = append(o.missing, ref)
		}
	}
	return o
}

func (o *observation) see(cj *batch.CronJob, job *batch.Job, leaving bool, now time.Time) {
	finished := finishedAs(job)
	active := isActive(&o.status, job.UID)
	scheduled, ours := scheduledTime(cj, job)
	// A time in the future is none of ours, or the clock went back: that it holds runs up would be worse.
	if ours && !scheduled.After(now) && (o.status.LastScheduleTime == nil || scheduled.After(o.status.LastScheduleTime.Time)) {
		// The controller ended between the Job's creation and the write of the status.
		o.status.LastScheduleTime = &metav1.Time{Time: scheduled}
	}
	switch {
	case finished == "" && leaving:
		// One that was replaced does not come back into the status; one that a user deletes stays there
		// until it is gone.
	case finished == "" && !active && ours:
		o.status.Active = append(o.status.Active, referenceTo(job))
	case finished == "" && !active:
		o.events = append(o.events, unexpectedJob(job))
	case finished != "" && active:
		dropActive(&o.status, job.UID)
		o.events = append(o.events, sawCompleted(job, finished))
	}
	if finished == batch.JobComplete && job.Status.CompletionTime != nil &&
		(o.status.LastSuccessfulTime == nil || o.status.LastSuccessfulTime.Before(job.Status.CompletionTime)) {
		o.status.LastSuccessfulTime = job.Status.CompletionTime.DeepCopy()
	}
}

func isActive(status *batch.CronJobStatus, uid types.UID) bool {
	return slices.ContainsFunc(status.Active, func(ref v1.ObjectReference) bool { return ref.UID == uid })
}

func dropActive(status *batch.CronJobStatus, uid types.UID) {
	status.Active = slices.DeleteFunc(status.Active, func(ref v1.ObjectReference) bool { return ref.UID == uid })
}

func referenceTo(job *batch.Job) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion: jobKind.GroupVersion().String(), Kind: jobKind.Kind,
		Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
	}
}

// excess returns the finished Jobs beyond the history limits, the oldest first.
//
// Jobs whose time is newer than the lastScheduleTime that is written are kept until it is: were it
// lost together with them, their time would be run again.
func excess(cj *batch.CronJob, jobs []*batch.Job) []*batch.Job {
	var complete, failed []*batch.Job
	for _, job := range jobs {
		if job.DeletionTimestamp != nil {
			continue
		}
		if scheduled, ours := scheduledTime(cj, job); ours && (cj.Status.LastScheduleTime == nil || scheduled.After(cj.Status.LastScheduleTime.Time)) {
			continue
		}
		switch finishedAs(job) {
		case batch.JobComplete:
			complete = append(complete, job)
		case batch.JobFailed:
			failed = append(failed, job)
		}
	}
	return append(oldestBeyond(complete, cj.Spec.SuccessfulJobsHistoryLimit), oldestBeyond(failed, cj.Spec.FailedJobsHistoryLimit)...)
}

func oldestBeyond(jobs []*batch.Job, limit *int32) []*batch.Job {
	if limit == nil || len(jobs) <= int(*limit) {
		return nil
	}
	slices.SortFunc(jobs, byStartTime)
	return jobs[:len(jobs)-int(*limit)]
}

// byStartTime orders Jobs by when they started, those that have not last, then by name.
func byStartTime(a, b *batch.Job) int {
	started, other := a.Status.StartTime, b.Status.StartTime
	switch {
	case started == nil && other != nil:
		return 1
	case started != nil && other == nil:
		return -1
	case started != nil && !started.Equal(other):
		return started.Compare(other.Time)
	}
	return cmp.Compare(a.Name, b.Name)
}

// decision says what becomes of a CronJob now.
type decision struct {
	// run is the time for which a Job is to be created, zero for none.
	run time.Time
	// replace are the Jobs to be deleted before.
	replace []v1.ObjectReference
	// next is the first time after now, zero when none is to be waited for.
	next   time.Time
	events []message
}

// decide says whether it is time for a Job. status is the one that observe has brought up to date.
// changed is when the schedule or its zone was last seen to change, zero if it was not: a new
// schedule starts nothing for times before it was there.
func decide(cj *batch.CronJob, status *batch.CronJobStatus, changed, now time.Time) decision {
	if cj.DeletionTimestamp != nil {
		return decision{}
	}
	if zone := cj.Spec.TimeZone; zone != nil {
		if _, err := time.LoadLocation(*zone); err != nil {
			return decision{events: []message{unknownTimeZone(*zone, err)}}
		}
	}
	if cj.Spec.Suspend != nil && *cj.Spec.Suspend {
		return decision{}
	}
	schedule, err := parseSchedule(zonedSpec(cj))
	if err != nil {
		return decision{events: []message{unparseable(cj, err, !changed.IsZero())}}
	}
	var d decision
	if namesZone(cj.Spec.Schedule) {
		d.events = append(d.events, zoneInSchedule(cj))
	}
	earliest := cj.CreationTimestamp.Time
	if status.LastScheduleTime != nil {
		earliest = status.LastScheduleTime.Time
	}
	at, err := startsAround(schedule, earliest, now)
	if err != nil {
		d.events = append(d.events, invalidSchedule(cj, err))
		return d
	}
	d.next = at.next
	if at.last.IsZero() || !at.last.After(changed) {
		return d
	}
	from := maxTime(earliest, changed)
	if seconds := cj.Spec.StartingDeadlineSeconds; seconds != nil {
		from = maxTime(from, now.Add(-time.Duration(*seconds)*time.Second))
	}
	if !at.last.After(from) {
		d.events = append(d.events, missed(at.last))
		return d
	}
	if from.After(earliest) {
		if within, err := startsAround(schedule, from, now); err == nil {
			at.missed = within.missed
		}
	}
	if at.missed > manyMissed {
		d.events = append(d.events, tooManyMissed())
	}
	d.start(cj, status.Active, at.last)
	return d
}

// start decides about a time that has come.
func (d *decision) start(cj *batch.CronJob, active []v1.ObjectReference, at time.Time) {
	name := jobName(cj, at)
	switch {
	case slices.ContainsFunc(active, func(ref v1.ObjectReference) bool { return ref.Name == name }):
		return
	case cj.Spec.ConcurrencyPolicy == batch.ForbidConcurrent && len(active) > 0:
		d.events = append(d.events, stillActive(at))
		return
	case cj.Spec.ConcurrencyPolicy == batch.ReplaceConcurrent:
		d.replace = slices.Clone(active)
	}
	d.run = at
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// newJob returns the Job of a scheduled time.
func newJob(cj *batch.CronJob, scheduled time.Time) *batch.Job {
	annotations := maps.Clone(cj.Spec.JobTemplate.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[batch.CronJobScheduledTimestampAnnotation] = inZone(cj, scheduled).Format(time.RFC3339)
	return &batch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         cj.Namespace,
			Name:              jobName(cj, scheduled),
			Labels:            maps.Clone(cj.Spec.JobTemplate.Labels),
			Annotations:       annotations,
			CreationTimestamp: metav1.NewTime(scheduled),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(cj, controllerKind)},
		},
		Spec: *cj.Spec.JobTemplate.Spec.DeepCopy(),
	}
}

// inZone returns the time as the clocks of the CronJob's time zone show it.
func inZone(cj *batch.CronJob, t time.Time) time.Time {
	if cj.Spec.TimeZone == nil {
		return t
	}
	zone, err := time.LoadLocation(*cj.Spec.TimeZone)
	if err != nil {
		return t // decide has refused it
	}
	return t.In(zone)
}
