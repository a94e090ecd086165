// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batch "k8s.io/api/batch/v1"
)

// errTooDense is the error of a schedule between whose times no second lies; one that has no times
// at all, such as the 31st of February, looks the same. The words are upstream's.
var errTooDense = errors.New("time difference between two schedules is less than 1 second")

// parseSchedule parses a schedule as cron.ParseStandard does, but for the panics: there are
// schedules, such as "TZ=0", that it does not survive.
func parseSchedule(spec string) (schedule cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			schedule, err = nil, fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	return cron.ParseStandard(spec)
}

// namesZone says whether the schedule itself tells its time zone, which is not supported but works.
func namesZone(schedule string) bool { return strings.Contains(schedule, "TZ") }

// zonedSpec returns the CronJob's schedule with its time zone as cron's parser wants it. A zone in
// the schedule goes before the field timeZone.
func zonedSpec(cj *batch.CronJob) string {
	if cj.Spec.TimeZone == nil || namesZone(cj.Spec.Schedule) {
		return cj.Spec.Schedule
	}
	return fmt.Sprintf("TZ=%s %s", *cj.Spec.TimeZone, cj.Spec.Schedule)
}

// starts is what a schedule says about a moment.
type starts struct {
	// last is the latest time in (after, now], zero when there is none.
	last time.Time
	// next is the first time after now, zero when there is none.
	next time.Time
	// missed estimates how many times there are in (after, now], from the distance of the first
	// two as upstream does.
	missed int64
}

// startsAround asks the schedule for its times around now, looking back to after. It does not walk
// through the times in between: there may be years of them.
//
// The times of "@every" have no place of their own on the clock: they lie on the grid that begins
// at after.
func startsAround(schedule cron.Schedule, after, now time.Time) (starts, error) {
	first := schedule.Next(after)
	if first.IsZero() {
		return starts{}, errTooDense
	}
	if first.After(now) {
		return starts{next: first}, nil
	}
	second := schedule.Next(first)
	if second.IsZero() {
		return starts{last: first, missed: 1}, nil
	}
	if second.After(now) {
		return starts{last: first, next: second, missed: 1}, nil
	}
	period := second.Sub(first).Round(time.Second)
	if period < time.Second {
		return starts{}, errTooDense
	}
	found := starts{missed: int64(now.Sub(first)/period) + 1}
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		found.last = first.Add(now.Sub(first) / every.Delay * every.Delay)
	} else {
		found.last = latest(schedule, after, now)
	}
	found.next = schedule.Next(found.last)
	return found, nil
}

// latest returns the latest time of a schedule in (after, now]; there must be one. The times are
// whole seconds, and Next never goes back when its argument does not: so the last second whose
// next time is not after now can be bisected for.
func latest(schedule cron.Schedule, after, now time.Time) time.Time {
	past := func(second int64) bool {
		next := schedule.Next(time.Unix(second, 0).In(after.Location()))
		return !next.IsZero() && !next.After(now)
	}
	// Gallop back from now: usually the time that is looked for is near.
	future := now.Unix()
	low := after.Unix()
	for step := int64(60); future-step > low; step *= 2 {
		if past(now.Unix() - step) {
			low = now.Unix() - step
			break
		}
		future = now.Unix() - step
	}
	for future-low > 1 {
		middle := low + (future-low)/2
		if past(middle) {
			low = middle
		} else {
			future = middle
		}
	}
	return schedule.Next(time.Unix(low, 0).In(after.Location()))
}
