// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// Times of the tests, around the hour at which the schedule of newCronJob is due.
var (
	beforePriorHour = at("2026-05-19T08:59:58Z")
	priorHour       = at("2026-05-19T09:00:00Z")
	beforeHour      = at("2026-05-19T09:59:58Z")
	theHour         = at("2026-05-19T10:00:00Z")
	afterHour       = at("2026-05-19T10:01:00Z")
	weekAfter       = at("2026-05-26T10:00:00Z")
)

func newCronJob(changes ...func(*batch.CronJob)) *batch.CronJob {
	cj := &batch.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tick", UID: "tick-uid", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(beforePriorHour)},
		Spec: batch.CronJobSpec{
			Schedule:          "0 * * * ?",
			ConcurrencyPolicy: batch.AllowConcurrent,
			JobTemplate: batch.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}},
				Spec:       batch.JobSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}},
			},
		},
	}
	for _, change := range changes {
		change(cj)
	}
	return cj
}

func schedule(spec string) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Spec.Schedule = spec }
}
func zone(name string) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Spec.TimeZone = &name }
}
func policy(p batch.ConcurrencyPolicy) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Spec.ConcurrencyPolicy = p }
}
func deadline(seconds int64) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Spec.StartingDeadlineSeconds = &seconds }
}
func suspended(cj *batch.CronJob) { cj.Spec.Suspend = new(true) }
func created(t time.Time) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.CreationTimestamp = metav1.NewTime(t) }
}
func ran(t time.Time) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Status.LastScheduleTime = new(metav1.NewTime(t)) }
}
func limits(successful, failed int32) func(*batch.CronJob) {
	return func(cj *batch.CronJob) {
		cj.Spec.SuccessfulJobsHistoryLimit, cj.Spec.FailedJobsHistoryLimit = &successful, &failed
	}
}

// active puts the Job of a time into the status.
func active(t time.Time) func(*batch.CronJob) {
	return func(cj *batch.CronJob) { cj.Status.Active = append(cj.Status.Active, referenceTo(jobOf(cj, t))) }
}

// jobOf returns the Job of a scheduled time as the API server has it.
func jobOf(cj *batch.CronJob, scheduled time.Time, changes ...func(*batch.Job)) *batch.Job {
	job := newJob(cj, scheduled)
	job.UID = types.UID("uid-" + job.Name)
	job.Status.StartTime = new(metav1.NewTime(scheduled))
	for _, change := range changes {
		change(job)
	}
	return job
}

func finishedJob(as batch.JobConditionType, when time.Time) func(*batch.Job) {
	return func(job *batch.Job) {
		job.Status.Conditions = []batch.JobCondition{{Type: as, Status: v1.ConditionTrue}}
		if as == batch.JobComplete {
			job.Status.CompletionTime = new(metav1.NewTime(when))
		}
	}
}

func byHand(job *batch.Job) {
	job.Name, job.UID = "by-hand", "uid-by-hand"
	job.Annotations = map[string]string{instantiateAnnotation: "manual"}
}

func leaving(job *batch.Job) { job.DeletionTimestamp = new(metav1.NewTime(priorHour)) }

func (d decision) String() string {
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format("2 15:04:05")
	}
	text := fmt.Sprintf("run %s next %s", clock(d.run), clock(d.next))
	for _, ref := range d.replace {
		text += " replace " + ref.Name
	}
	for _, m := range d.events {
		text += " " + m.reason
	}
	return text
}

// Allow, Forbid and Replace.
var policies = map[string]batch.ConcurrencyPolicy{"A": batch.AllowConcurrent, "F": batch.ForbidConcurrent, "R": batch.ReplaceConcurrent}

func TestDecide(t *testing.T) {
	type change = func(*batch.CronJob)
	tests := []struct {
		name     string
		policies string // one run each
		changes  []change
		now      time.Time
		want     string
	}{
		{"never ran, not valid schedule", "AFR", []change{schedule("obvious error schedule")}, beforeHour, "run - next - UnparseableSchedule"},
		{"never ran, not valid time zone", "A", []change{zone("bad time zone")}, beforeHour, "run - next - UnknownTimeZone"},
		{"never ran, not time", "AFR", []change{created(priorHour)}, beforeHour, "run - next 19 10:00:00"},
		{"never ran, not time in zone", "A", []change{created(priorHour), zone("Asia/Kolkata")}, beforeHour, "run 19 09:30:00 next 19 10:30:00"},
		{"never ran, is time", "AFR", nil, priorHour, "run 19 09:00:00 next 19 10:00:00"},
		{"never ran, is time in zone", "A", []change{zone("Europe/Berlin"), schedule("0 11 * * *")}, afterHour, "run 19 09:00:00 next 20 09:00:00"},
		{"never ran, is time in zone, but TZ is also set in schedule", "A", []change{zone("Asia/Kolkata"), schedule("TZ=UTC 0 * * * *")}, priorHour, "run 19 09:00:00 next 19 10:00:00 UnsupportedSchedule"},
		{"TZ in schedule alone", "A", []change{schedule("CRON_TZ=Asia/Kolkata 30 14 * * *")}, afterHour, "run 19 09:00:00 next 20 09:00:00 UnsupportedSchedule"},
		{"never ran, is time, suspended", "A", []change{suspended}, afterHour, "run - next -"},
		{"never ran, is time, past deadline", "A", []change{deadline(1), created(beforeHour)}, afterHour, "run - next 19 11:00:00 MissSchedule"},
		{"never ran, is time, not past deadline", "A", []change{deadline(600), created(beforeHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"prev ran but done, not time", "AFR", []change{ran(priorHour)}, beforeHour, "run - next 19 10:00:00"},
		{"prev ran but done, is time", "AFR", []change{ran(priorHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"prev ran but done, is time, suspended", "A", []change{ran(priorHour), suspended}, afterHour, "run - next -"},
		{"prev ran but done, is time, past deadline", "A", []change{ran(priorHour), deadline(1)}, afterHour, "run - next 19 11:00:00 MissSchedule"},
		{"prev ran but done, is time, not past deadline", "A", []change{ran(priorHour), deadline(600)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"just at the deadline", "A", []change{ran(priorHour), deadline(60)}, afterHour, "run - next 19 11:00:00 MissSchedule"},
		{"still active, not time", "AFR", []change{ran(priorHour), active(priorHour)}, beforeHour, "run - next 19 10:00:00"},
		{"still active, is time", "A", []change{ran(priorHour), active(priorHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"still active, is time", "F", []change{ran(priorHour), active(priorHour)}, afterHour, "run - next 19 11:00:00 JobAlreadyActive"},
		{"still active, is time", "R", []change{ran(priorHour), active(priorHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00 replace tick-29653020"},
		{"still active, is time, suspended", "A", []change{ran(priorHour), active(priorHour), suspended}, afterHour, "run - next -"},
		{"still active, is time, past deadline", "AF", []change{ran(priorHour), active(priorHour), deadline(1)}, afterHour, "run - next 19 11:00:00 MissSchedule"},
		{"still active, is time, not past deadline", "A", []change{ran(priorHour), active(priorHour), deadline(600)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"prev ran but done, long overdue, no deadline", "AFR", []change{ran(priorHour)}, weekAfter, "run 26 10:00:00 next 26 11:00:00 TooManyMissedTimes"},
		{"prev ran but done, long overdue, not past deadline", "AFR", []change{ran(priorHour), deadline(60 * 86400)}, weekAfter, "run 26 10:00:00 next 26 11:00:00 TooManyMissedTimes"},
		{"prev ran but done, long overdue, past medium deadline", "AFR", []change{ran(priorHour), deadline(60)}, weekAfter.Add(59 * time.Second), "run 26 10:00:00 next 26 11:00:00"},
		{"prev ran but done, long overdue, past short deadline", "AFR", []change{ran(priorHour), deadline(1)}, weekAfter.Add(time.Minute), "run - next 26 11:00:00 MissSchedule"},
		{"100 missed", "A", []change{ran(priorHour)}, priorHour.Add(100 * time.Hour), "run 23 13:00:00 next 23 14:00:00"},
		{"101 missed", "A", []change{ran(priorHour)}, priorHour.Add(101 * time.Hour), "run 23 14:00:00 next 23 15:00:00 TooManyMissedTimes"},
		{"this ran but done, time drifted back", "F", []change{ran(theHour)}, beforeHour, "run - next 19 11:00:00"},
		{"this ran, is in active", "AFR", []change{ran(priorHour), active(theHour)}, afterHour, "run - next 19 11:00:00"},
		{"in deletion", "A", []change{func(cj *batch.CronJob) { cj.DeletionTimestamp = new(metav1.Now()) }}, afterHour, "run - next -"},
		{"no such day", "A", []change{schedule("59 23 31 2 *")}, afterHour, "run - next - InvalidSchedule"},
		{"@every, never ran, not time", "A", []change{schedule("@every 1h")}, beforePriorHour.Add(59 * time.Minute), "run - next 19 09:59:58"},
		{"@every, never ran, is time", "A", []change{schedule("@every 1h")}, beforeHour, "run 19 09:59:58 next 19 10:59:58"},
		{"@every, never ran, is time, past deadline", "A", []change{schedule("@every 1h"), deadline(1)}, theHour, "run - next 19 10:59:58 MissSchedule"},
		{"@every, never ran, is time, not past deadline", "A", []change{schedule("@every 1h"), deadline(600)}, theHour, "run 19 09:59:58 next 19 10:59:58"},
		{"@every, prev ran but done, not time", "A", []change{schedule("@every 1h"), ran(priorHour)}, beforeHour, "run - next 19 10:00:00"},
		{"@every, prev ran but done, is time", "A", []change{schedule("@every 1h"), ran(priorHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"@every, prev ran but done, is time, past deadline", "A", []change{schedule("@every 1h"), ran(priorHour), deadline(1)}, afterHour, "run - next 19 11:00:00 MissSchedule"},
		{"@every, deadline shorter than the interval", "A", []change{schedule("@every 1h"), ran(priorHour), deadline(120)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"@every, still active, not time", "F", []change{schedule("@every 1h"), ran(priorHour), active(priorHour)}, beforeHour, "run - next 19 10:00:00"},
		{"@every, still active, is time", "F", []change{schedule("@every 1h"), ran(priorHour), active(priorHour)}, afterHour, "run - next 19 11:00:00 JobAlreadyActive"},
		{"@every, still active, is time", "A", []change{schedule("@every 1h"), ran(priorHour), active(priorHour)}, afterHour, "run 19 10:00:00 next 19 11:00:00"},
		{"@every, long overdue, no deadline", "A", []change{schedule("@every 1h"), ran(priorHour)}, weekAfter, "run 26 10:00:00 next 26 11:00:00 TooManyMissedTimes"},
		{"@every, long overdue, past deadline", "A", []change{schedule("@every 1h"), ran(priorHour), deadline(1)}, weekAfter.Add(time.Minute), "run - next 26 11:00:00 MissSchedule"},
		{"clocks go forward over it", "A", []change{schedule("30 2 * * *"), zone("Europe/Berlin"), ran(at("2026-03-28T01:30:00Z"))}, at("2026-03-29T12:00:00Z"), "run - next 30 00:30:00"},
		{"clocks go back over it", "A", []change{schedule("30 2 * * *"), zone("Europe/Berlin"), ran(at("2026-10-25T00:30:00Z"))}, at("2026-10-25T01:31:00Z"), "run 25 01:30:00 next 26 01:30:00"},
	}
	for _, tc := range tests {
		for _, p := range tc.policies {
			t.Run(tc.name+" "+string(p), func(t *testing.T) {
				cj := newCronJob(append(tc.changes, policy(policies[string(p)]))...)
				before := cj.DeepCopy()
				if got := decide(cj, &cj.Status, time.Time{}, tc.now).String(); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
				if fmt.Sprint(cj) != fmt.Sprint(before) {
					t.Error("changed its input")
				}
			})
		}
	}
}

// What a schedule that was edited starts (BC045).
func TestDecideAfterAnEdit(t *testing.T) {
	noon := at("2026-05-19T12:00:00Z")
	yesterday := at("2026-05-18T23:00:00Z")
	tests := []struct {
		name    string
		cj      *batch.CronJob
		changed time.Time
		now     time.Time
		want    string
	}{
		{"to an earlier time today", newCronJob(schedule("0 9 * * *"), ran(yesterday)), noon, noon.Add(time.Second), "run - next 20 09:00:00"},
		{"when that has come", newCronJob(schedule("0 9 * * *"), ran(yesterday)), noon, noon.Add(21 * time.Hour), "run 20 09:00:00 next 21 09:00:00"},
		{"with a deadline", newCronJob(schedule("0 9 * * *"), ran(yesterday), deadline(600)), noon, noon.Add(time.Second), "run - next 20 09:00:00"},
		{"not known, as after a restart", newCronJob(schedule("0 9 * * *"), ran(yesterday)), time.Time{}, noon, "run 19 09:00:00 next 20 09:00:00"},
		{"to each minute: only what was due since then is missed", newCronJob(schedule("* * * * *"), ran(yesterday)), noon, noon.Add(150 * time.Second), "run 19 12:02:00 next 19 12:03:00"},
		{"to a longer interval", newCronJob(schedule("@every 26h"), ran(yesterday)), noon, noon, "run - next 20 01:00:00"},
		{"to a shorter interval", newCronJob(schedule("@every 5h"), ran(yesterday)), noon, noon, "run - next 19 14:00:00"},
		{"to nonsense", newCronJob(schedule("nonsense")), noon, noon, "run - next - UnParseableCronJobSchedule"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := decide(tc.cj, &tc.cj.Status, tc.changed, tc.now).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	cj := func(changes ...func(*batch.CronJob)) *batch.CronJob { return newCronJob(changes...) }
	tests := []struct {
		name    string
		cj      *batch.CronJob
		jobs    func(cj *batch.CronJob) []*batch.Job
		deleted []types.UID
		active  string // names
		last    time.Time
		success time.Time
		events  string
		missing string
	}{
		{name: "nothing", cj: cj(ran(priorHour)), last: priorHour},
		{name: "active runs on", cj: cj(ran(priorHour), active(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, priorHour)} },
			active: "tick-29653020", last: priorHour},
		{name: "active completes", cj: cj(ran(priorHour), active(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, priorHour, finishedJob(batch.JobComplete, beforeHour))}
		}, last: priorHour, success: beforeHour, events: "SawCompletedJob: Saw completed job: tick-29653020, condition: Complete"},
		{name: "active fails", cj: cj(ran(priorHour), active(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, priorHour, finishedJob(batch.JobFailed, beforeHour))}
		}, last: priorHour, events: "SawCompletedJob: Saw completed job: tick-29653020, condition: Failed"},
		{name: "about to fail is not finished", cj: cj(ran(priorHour), active(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, priorHour, finishedJob(batch.JobFailureTarget, beforeHour))}
		}, active: "tick-29653020", last: priorHour},
		{name: "this started but is not in active", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, theHour)} },
			active: "tick-29653080", last: theHour},
		{name: "so did one without the annotation", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, theHour, func(job *batch.Job) { job.Annotations = nil })}
		}, active: "tick-29653080", last: theHour},
		{name: "it has finished since", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, theHour, finishedJob(batch.JobComplete, afterHour))}
		}, last: theHour, success: afterHour},
		{name: "it is being deleted", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, theHour, leaving)} }, last: theHour},
		{name: "it was just deleted", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, theHour)} },
			deleted: []types.UID{"uid-tick-29653080"}, last: theHour},
		{name: "seconds of @every", cj: cj(ran(priorHour), schedule("@every 90s")), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, priorHour.Add(90*time.Second))}
		}, active: "tick-29653021", last: priorHour.Add(90 * time.Second)},
		{name: "one of the future", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, weekAfter)} },
			active: "tick-29663160", last: priorHour},
		{name: "made by hand", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job { return []*batch.Job{jobOf(cj, theHour, byHand)} }, last: priorHour,
			events: "UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand"},
		{name: "made by hand, complete (BC052)", cj: cj(ran(priorHour)), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, theHour, byHand, finishedJob(batch.JobComplete, afterHour))}
		}, last: priorHour, success: afterHour},
		{name: "the newest success counts", cj: cj(ran(theHour), func(cj *batch.CronJob) { cj.Status.LastSuccessfulTime = new(metav1.NewTime(beforeHour)) }), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, theHour, finishedJob(batch.JobComplete, afterHour)), jobOf(cj, priorHour, finishedJob(batch.JobComplete, priorHour))}
		}, last: theHour, success: afterHour},
		{name: "an older success does not", cj: cj(ran(theHour), func(cj *batch.CronJob) { cj.Status.LastSuccessfulTime = new(metav1.NewTime(weekAfter)) }), jobs: func(cj *batch.CronJob) []*batch.Job {
			return []*batch.Job{jobOf(cj, theHour, finishedJob(batch.JobComplete, afterHour))}
		}, last: theHour, success: weekAfter},
		{name: "active went missing", cj: cj(ran(priorHour), active(priorHour)), active: "tick-29653020", missing: "tick-29653020", last: priorHour},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var jobs []*batch.Job
			if tc.jobs != nil {
				jobs = tc.jobs(tc.cj)
			}
			o := observe(tc.cj, jobs, sets.New(tc.deleted...), afterHour)
			if got := names(o.status.Active); got != tc.active {
				t.Errorf("active %q, want %q", got, tc.active)
			}
			if got := names(o.missing); got != tc.missing {
				t.Errorf("missing %q, want %q", got, tc.missing)
			}
			if !sameTime(o.status.LastScheduleTime, tc.last) || !sameTime(o.status.LastSuccessfulTime, tc.success) {
				t.Errorf("last scheduled %v, successful %v, want %v, %v", o.status.LastScheduleTime, o.status.LastSuccessfulTime, tc.last, tc.success)
			}
			var events []string
			for _, m := range o.events {
				events = append(events, m.reason+": "+m.text)
			}
			if got := strings.Join(events, "; "); got != tc.events {
				t.Errorf("events %q, want %q", got, tc.events)
			}
		})
	}
}

func sameTime(got *metav1.Time, want time.Time) bool {
	return got == nil && want.IsZero() || got != nil && got.Time.Equal(want)
}

func names(refs []v1.ObjectReference) string {
	var all []string
	for _, ref := range refs {
		all = append(all, ref.Name)
	}
	return strings.Join(all, ",")
}

func TestExcess(t *testing.T) {
	hour := func(h int) time.Time { return priorHour.Add(time.Duration(h-9) * time.Hour) }
	cj := newCronJob(limits(1, 1), ran(hour(15)))
	complete, failed := finishedJob(batch.JobComplete, afterHour), finishedJob(batch.JobFailed, afterHour)
	notStarted := func(job *batch.Job) { job.Status.StartTime = nil }
	jobs := []*batch.Job{
		jobOf(cj, hour(9), complete), jobOf(cj, hour(12), failed), jobOf(cj, hour(11), complete), jobOf(cj, hour(10), failed),
		jobOf(cj, hour(13)), jobOf(cj, hour(8), complete, leaving), jobOf(cj, hour(7), complete, notStarted), jobOf(cj, hour(16), complete),
	}
	jobs[1].Labels = map[string]string{"other": "labels than the template's (BC050)"}
	tests := []struct {
		name string
		cj   *batch.CronJob
		want string
	}{
		{"limit 1: the one that has not started is the newest", cj, "09 11 10"},
		{"limit 0, but not of a time that is not written down", newCronJob(limits(0, 0), ran(hour(15))), "09 11 07 10 12"},
		{"not reached", newCronJob(limits(3, 2), ran(hour(15))), ""},
		{"no limits", newCronJob(ran(hour(15))), ""},
		{"one limit", newCronJob(ran(hour(15)), func(cj *batch.CronJob) { cj.Spec.FailedJobsHistoryLimit = new(int32(0)) }), "10 12"},
		{"nothing written down", newCronJob(limits(0, 0)), ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, job := range excess(tc.cj, jobs) {
				scheduled, _ := scheduledTime(tc.cj, job)
				got = append(got, scheduled.UTC().Format("15"))
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func TestByStartTime(t *testing.T) {
	cj := newCronJob()
	start := func(at *time.Time) func(*batch.Job) {
		return func(job *batch.Job) {
			job.Status.StartTime = nil
			if at != nil {
				job.Status.StartTime = new(metav1.NewTime(*at))
			}
		}
	}
	early, late := start(&priorHour), start(&theHour)
	tests := []struct {
		name string
		a, b func(*batch.Job)
		want int
	}{
		{"both have nil start times", start(nil), start(nil), -1},
		{"only the first has a nil start time", start(nil), early, 1},
		{"only the second has a nil start time", early, start(nil), -1},
		{"both have non-nil, equal start time", early, early, -1},
		{"both have non-nil, different start time", late, early, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b := jobOf(cj, priorHour, tc.a), jobOf(cj, theHour, tc.b)
			if got, back := byStartTime(a, b), byStartTime(b, a); got != tc.want || back != -tc.want {
				t.Errorf("got %d and %d, want %d and %d", got, back, tc.want, -tc.want)
			}
		})
	}
}

func TestNewJob(t *testing.T) {
	tests := []struct {
		name        string
		cj          *batch.CronJob
		annotations map[string]string
	}{
		{"UTC timezone and one annotation", newCronJob(zone("UTC")), map[string]string{"x": "y", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-05-19T10:00:00Z"}},
		{"nil timezone and one annotation", newCronJob(), map[string]string{"x": "y", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-05-19T10:00:00Z"}},
		{"another timezone and several annotations", newCronJob(zone("Europe/Berlin"), func(cj *batch.CronJob) { cj.Spec.JobTemplate.Annotations["z"] = "w" }),
			map[string]string{"x": "y", "z": "w", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-05-19T12:00:00+02:00"}},
		{"no annotations", newCronJob(func(cj *batch.CronJob) { cj.Spec.JobTemplate.Annotations = nil }),
			map[string]string{"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-05-19T10:00:00Z"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			template := tc.cj.Spec.JobTemplate.DeepCopy()
			job := newJob(tc.cj, theHour)
			if job.Name != "tick-29653080" || job.Namespace != "ns" || !job.CreationTimestamp.Time.Equal(theHour) {
				t.Errorf("metadata %+v", job.ObjectMeta)
			}
			if !maps.Equal(job.Annotations, tc.annotations) || !maps.Equal(job.Labels, map[string]string{"a": "b"}) {
				t.Errorf("annotations %v, labels %v", job.Annotations, job.Labels)
			}
			want := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "tick", UID: "tick-uid", Controller: new(true), BlockOwnerDeletion: new(true)}
			if len(job.OwnerReferences) != 1 || fmt.Sprint(job.OwnerReferences[0].String()) != want.String() {
				t.Errorf("owners %v", job.OwnerReferences)
			}
			job.Labels["changed"], job.Annotations["changed"], job.Spec.Template.Spec.Containers[0].Image = "1", "1", "changed"
			if fmt.Sprint(template) != fmt.Sprint(&tc.cj.Spec.JobTemplate) {
				t.Error("the Job shares memory with the template")
			}
			if got, ours := scheduledTime(tc.cj, job); !ours || !got.Equal(theHour) {
				t.Errorf("scheduled time %s, %t", got, ours)
			}
		})
	}
}

func TestScheduledTimeOfOtherJobs(t *testing.T) {
	cj := newCronJob()
	for _, name := range []string{"tick", "tick-", "tick-abc", "tick-1x", "tock-29653080", "tick-x-29653080"} {
		if at, ours := scheduledTime(cj, &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}); ours {
			t.Errorf("job %s: scheduled at %s", name, at)
		}
	}
	if _, ours := scheduledTime(cj, jobOf(cj, theHour, func(job *batch.Job) { job.Annotations[instantiateAnnotation] = "manual" })); ours {
		t.Error("a job made by hand was scheduled")
	}
}

// However often the controller looks and forgets, whatever happens to its writes: no two Jobs for
// one time, each run is for the latest time, and with Forbid no two Jobs at a time.
func TestRunsOncePerTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cj := newCronJob(
			schedule(rapid.SampledFrom([]string{"* * * * *", "*/3 * * * *", "@every 90s", "@every 2m"}).Draw(t, "schedule")),
			policy(rapid.SampledFrom(slices.Collect(maps.Values(policies))).Draw(t, "policy")),
			limits(rapid.Int32Range(0, 2).Draw(t, "successful"), rapid.Int32Range(0, 2).Draw(t, "failed")))
		sched := mustParseRapid(t, cj.Spec.Schedule)
		now := cj.CreationTimestamp.Time
		ran := map[string]bool{}
		var jobs []*batch.Job
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 200).Draw(t, "seconds")) * time.Second)
			if len(jobs) > 0 && rapid.Bool().Draw(t, "finish one") {
				finishedJob(rapid.SampledFrom([]batch.JobConditionType{batch.JobComplete, batch.JobFailed}).Draw(t, "as"), now)(rapid.SampledFrom(jobs).Draw(t, "job"))
			}
			deleted := sets.New[types.UID]()
			for _, job := range excess(cj, slices.Clone(jobs)) {
				deleted.Insert(job.UID)
				jobs = slices.DeleteFunc(jobs, func(other *batch.Job) bool { return other == job })
			}
			o := observe(cj, jobs, deleted, now)
			for _, ref := range o.missing {
				dropActive(&o.status, ref.UID)
			}
			d := decide(cj, &o.status, time.Time{}, now)
			for _, ref := range d.replace {
				jobs = slices.DeleteFunc(jobs, func(job *batch.Job) bool { return job.UID == ref.UID })
				dropActive(&o.status, ref.UID)
			}
			if !d.run.IsZero() {
				name := jobName(cj, d.run)
				exists := slices.ContainsFunc(jobs, func(job *batch.Job) bool { return job.Name == name })
				if ran[name+d.run.String()] && !exists {
					t.Fatalf("a second job for %s", d.run)
				}
				if d.run.After(now) || !sched.Next(d.run).After(now) {
					t.Fatalf("ran %s at %s", d.run, now)
				}
				ran[name+d.run.String()] = true
				if !exists {
					jobs = append(jobs, jobOf(cj, d.run))
				}
				o.status.LastScheduleTime = new(metav1.NewTime(d.run))
				if job := jobs[len(jobs)-1]; !exists {
					o.status.Active = append(o.status.Active, referenceTo(job))
				}
			}
			running := 0
			for _, job := range jobs {
				if finishedAs(job) == "" {
					running++
				}
			}
			if running > 1 && cj.Spec.ConcurrencyPolicy != batch.AllowConcurrent {
				t.Fatalf("%d jobs run with policy %s", running, cj.Spec.ConcurrencyPolicy)
			}
			if rapid.Bool().Draw(t, "status is written") {
				cj.Status = o.status
			}
		}
	})
}
