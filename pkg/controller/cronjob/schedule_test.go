// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	batch "k8s.io/api/batch/v1"
	"pgregory.net/rapid"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

func mustParse(t testing.TB, spec string) cron.Schedule {
	t.Helper()
	schedule, err := parseSchedule(spec)
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}

func TestParseSchedule(t *testing.T) {
	for _, good := range []string{"0 * * * ?", "@every 90s", "@hourly", "*/5 6-16/4 * * mon-fri", "TZ=Europe/Berlin 0 9 * * *", "CRON_TZ=UTC 0 9 * * *"} {
		if _, err := parseSchedule(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	// The last ones make the parser panic.
	for _, bad := range []string{"", "obvious error schedule", "* * * *", "61 * * * *", "@never", "@every x", "TZ=Mars/Base 0 * * * *", "TZ=0", "CRON_TZ=Europe/Berlin"} {
		if s, err := parseSchedule(bad); err == nil || s != nil {
			t.Errorf("%q: %v, %v, want an error alone", bad, s, err)
		}
	}
}

func TestZonedSpec(t *testing.T) {
	tests := []struct {
		schedule string
		zone     *string
		want     string
	}{
		{"0 * * * *", nil, "0 * * * *"},
		{"0 * * * *", new("Asia/Tokyo"), "TZ=Asia/Tokyo 0 * * * *"},
		{"TZ=UTC 0 * * * *", new("Asia/Tokyo"), "TZ=UTC 0 * * * *"},
		{"CRON_TZ=UTC 0 * * * *", nil, "CRON_TZ=UTC 0 * * * *"},
		{"@every 5m", new("Asia/Tokyo"), "TZ=Asia/Tokyo @every 5m"},
	}
	for _, tc := range tests {
		cj := &batch.CronJob{Spec: batch.CronJobSpec{Schedule: tc.schedule, TimeZone: tc.zone}}
		if got := zonedSpec(cj); got != tc.want {
			t.Errorf("%q in %v: %q, want %q", tc.schedule, tc.zone, got, tc.want)
		}
	}
}

func TestStartsAround(t *testing.T) {
	const hourly = "0 * * * *"
	tests := []struct {
		name, spec, after, now string
		last, next             string // "" for none
		missed                 int64
		err                    error
	}{
		{name: "now before next schedule", spec: hourly, after: "2026-05-19T09:58:00Z", now: "2026-05-19T09:59:59.9Z", next: "2026-05-19T10:00:00Z"},
		{name: "now just after next schedule", spec: hourly, after: "2026-05-19T09:58:00Z", now: "2026-05-19T10:00:01Z", last: "2026-05-19T10:00:00Z", next: "2026-05-19T11:00:00Z", missed: 1},
		{name: "now at next schedule", spec: hourly, after: "2026-05-19T09:58:00Z", now: "2026-05-19T10:00:00Z", last: "2026-05-19T10:00:00Z", next: "2026-05-19T11:00:00Z", missed: 1},
		{name: "the last one itself does not count", spec: hourly, after: "2026-05-19T10:00:00Z", now: "2026-05-19T10:30:00Z", next: "2026-05-19T11:00:00Z"},
		{name: "missed 5 schedules", spec: hourly, after: "2026-05-19T10:00:01Z", now: "2026-05-19T15:00:01Z", last: "2026-05-19T15:00:00Z", next: "2026-05-19T16:00:00Z", missed: 5},
		{name: "complex schedule", spec: "30 6-16/4 * * 1-5", after: "2026-05-18T06:30:00Z", now: "2026-05-20T15:00:00Z", last: "2026-05-20T14:30:00Z", next: "2026-05-21T06:30:00Z", missed: 14},
		{name: "complex schedule, over the weekend", spec: "30 6-16/4 * * 1-5", after: "2026-05-15T06:30:00Z", now: "2026-05-18T05:00:00Z", last: "2026-05-15T14:30:00Z", next: "2026-05-18T06:30:00Z", missed: 17},
		{name: "longer difference between the first two", spec: "0 5,17 * * 6", after: "2026-05-16T18:00:00Z", now: "2026-05-24T12:00:00Z", last: "2026-05-23T17:00:00Z", next: "2026-05-30T05:00:00Z", missed: 3},
		{name: "shorter difference between the first two", spec: "50,59 12 * * *", after: "2026-05-18T12:45:00Z", now: "2026-05-19T12:55:00Z", last: "2026-05-19T12:50:00Z", next: "2026-05-19T12:59:00Z", missed: 161},
		{name: "once a week, missed two", spec: "0 12 * * 4", after: "2026-05-07T13:00:00Z", now: "2026-05-22T00:00:00Z", last: "2026-05-21T12:00:00Z", next: "2026-05-28T12:00:00Z", missed: 2},
		{name: "@every", spec: "@every 1h", after: "2026-05-19T09:10:17Z", now: "2026-05-19T14:00:00Z", last: "2026-05-19T13:10:17Z", next: "2026-05-19T14:10:17Z", missed: 4},
		{name: "@every, not due", spec: "@every 90s", after: "2026-05-19T09:10:17Z", now: "2026-05-19T09:11:46.9Z", next: "2026-05-19T09:11:47Z"},
		{name: "rogue cronjob", spec: "59 23 31 2 *", after: "2026-05-19T09:10:00Z", now: "2026-05-19T10:00:00Z", err: errTooDense},
		{name: "leap days", spec: "0 0 29 2 *", after: "2021-05-19T09:10:00Z", now: "2026-05-19T10:00:00Z", last: "2024-02-29T00:00:00Z", next: "2028-02-29T00:00:00Z", missed: 1},
		{name: "no next one within five years", spec: "0 0 29 2 *", after: "2095-01-01T00:00:00Z", now: "2096-03-01T00:00:00Z", last: "2096-02-29T00:00:00Z", missed: 1},
		{name: "thirty years of minutes", spec: "* * * * *", after: "1996-01-01T00:00:00Z", now: "2026-05-19T10:00:30Z", last: "2026-05-19T10:00:00Z", next: "2026-05-19T10:01:00Z", missed: 15978840},
		// The clock goes from 2 to 3 on March 29th, and from 3 to 2 on October 25th.
		{name: "an hour that does not exist", spec: "TZ=Europe/Berlin 30 2 * * *", after: "2026-03-28T12:00:00Z", now: "2026-03-29T12:00:00Z", next: "2026-03-30T00:30:00Z"},
		{name: "an hour that comes twice", spec: "TZ=Europe/Berlin 30 2 * * *", after: "2026-10-24T12:00:00Z", now: "2026-10-25T01:00:00Z", last: "2026-10-25T00:30:00Z", next: "2026-10-25T01:30:00Z", missed: 1},
		{name: "in zone", spec: "TZ=Asia/Kolkata 0 9 * * *", after: "2026-05-19T00:00:00Z", now: "2026-05-19T04:00:00Z", last: "2026-05-19T03:30:00Z", next: "2026-05-20T03:30:00Z", missed: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := startsAround(mustParse(t, tc.spec), at(tc.after), at(tc.now))
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			text := func(t time.Time) string {
				if t.IsZero() {
					return ""
				}
				return t.Format(time.RFC3339Nano)
			}
			if text(got.last) != tc.last || text(got.next) != tc.next || got.missed != tc.missed {
				t.Errorf("last %s, next %s, missed %d, want %s, %s, %d", text(got.last), text(got.next), got.missed, tc.last, tc.next, tc.missed)
			}
		})
	}
}

// countingSchedule counts how often it is asked.
type countingSchedule struct {
	cron.Schedule
	calls int
}

func (c *countingSchedule) Next(t time.Time) time.Time {
	c.calls++
	return c.Schedule.Next(t)
}

// dense is a schedule that the parser makes no longer.
type dense struct{}

func (dense) Next(t time.Time) time.Time { return t.Add(300 * time.Millisecond) }

func TestTooDenseSchedule(t *testing.T) {
	after := at("2026-05-19T10:00:00Z")
	if got, err := startsAround(dense{}, after, after.Add(time.Hour)); !errors.Is(err, errTooDense) {
		t.Errorf("%+v (%v)", got, err)
	}
}

// Whatever the schedule and the zone, the last and the next time are those that a walk through all
// of them finds, in a number of steps that hardly grows with their number.
func TestStartsAroundFindsWhatAWalkFinds(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia"}
	specs := []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "30 6-16/4 * * 1-5", "0 5,17 * * 6",
		"50,59 12 * * *", "0 0 1 * *", "15 3 29 2 *", "0 12 13 * 5", "@every 90s", "@every 7h", "@weekly"}
	rapid.Check(t, func(t *rapid.T) {
		spec := "TZ=" + rapid.SampledFrom(zones).Draw(t, "zone") + " " + rapid.SampledFrom(specs).Draw(t, "spec")
		schedule, err := parseSchedule(spec)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(1.3e9, 1.9e9).Draw(t, "after"), 0).UTC()
		now := after.Add(time.Duration(rapid.Int64Range(0, 40*24*3600*1000).Draw(t, "milliseconds")) * time.Millisecond)
		var want time.Time
		next := schedule.Next(after)
		for ; !next.After(now); next = schedule.Next(next) {
			want = next
		}
		counted := &countingSchedule{Schedule: schedule}
		var asked cron.Schedule = counted
		if _, ok := schedule.(cron.ConstantDelaySchedule); ok {
			asked = schedule
		}
		got, err := startsAround(asked, after, now)
		if err != nil {
			t.Fatal(err)
		}
		if schedule.Next(want).After(got.last) && schedule.Next(got.last.Add(-time.Second)).Equal(got.last) && got.last.After(want) {
			// The walk is wrong: where the clocks were set back by half an hour, robfig/cron steps over
			// a time that it names when it is asked from any other moment.
			t.Skip("the library contradicts itself")
		}
		if !got.last.Equal(want) || !got.next.Equal(next) {
			t.Fatalf("%s from %s to %s: last %s, next %s; a walk finds %s, %s", spec, after, now, got.last, got.next, want, next)
		}
		if counted.calls > 60 {
			t.Fatalf("asked %d times", counted.calls)
		}
	})
}

func mustParseRapid(t *rapid.T, spec string) cron.Schedule {
	schedule, err := parseSchedule(spec)
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}
