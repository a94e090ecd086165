// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"errors"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newJob returns a Job that became complete or failed at a time (nil: never), with a TTL
// in seconds (negative: none).
func newJob(condition batch.JobConditionType, at *time.Time, ttl int32, changes ...func(*batch.Job)) *batch.Job {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job", UID: "uid", ResourceVersion: "1"}}
	if at != nil {
		job.Status.Conditions = []batch.JobCondition{
			{Type: batch.JobSuspended, Status: v1.ConditionFalse},
			{Type: condition, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(*at)},
		}
	}
	if ttl >= 0 {
		job.Spec.TTLSecondsAfterFinished = &ttl
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

func TestTimeLeft(t *testing.T) {
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	const none = "not finished, without TTL or in deletion"
	tests := []struct {
		name    string
		job     *batch.Job
		want    time.Duration
		wantErr string
	}{
		{"job unfinished", newJob(batch.JobComplete, nil, 100), 0, none},
		{"job completed now, no TTL", newJob(batch.JobComplete, ago(0), -1), 0, none},
		{"job completed now, 0s TTL", newJob(batch.JobComplete, ago(0), 0), 0, ""},
		{"job completed now, 10s TTL", newJob(batch.JobComplete, ago(0), 10), 10 * time.Second, ""},
		{"job completed 10s ago, 15s TTL", newJob(batch.JobComplete, ago(10*time.Second), 15), 5 * time.Second, ""},
		{"job failed now, no TTL", newJob(batch.JobFailed, ago(0), -1), 0, none},
		{"job failed now, 0s TTL", newJob(batch.JobFailed, ago(0), 0), 0, ""},
		{"job failed now, 10s TTL", newJob(batch.JobFailed, ago(0), 10), 10 * time.Second, ""},
		{"job failed 10s ago, 15s TTL", newJob(batch.JobFailed, ago(10*time.Second), 15), 5 * time.Second, ""},
		{"expired", newJob(batch.JobComplete, ago(time.Minute), 15), -45 * time.Second, ""},
		{"finished in the future", newJob(batch.JobComplete, ago(-time.Minute), 15), 75 * time.Second, ""},
		{"longest TTL", newJob(batch.JobComplete, ago(0), 1<<31-1), (1<<31 - 1) * time.Second, ""},
		{"job in deletion", newJob(batch.JobComplete, ago(0), 0, func(j *batch.Job) { j.DeletionTimestamp = new(metav1.NewTime(now)) }), 0, none},
		{"condition is false", newJob(batch.JobComplete, ago(0), 0, func(j *batch.Job) { j.Status.Conditions[1].Status = v1.ConditionFalse }), 0, none},
		{"about to fail", newJob(batch.JobFailureTarget, ago(0), 0), 0, none},
		{"about to be complete", newJob(batch.JobSuccessCriteriaMet, ago(0), 0), 0, none},
		{"finished at no time", newJob(batch.JobComplete, &time.Time{}, 0), 0, "unable to find the time when the Job default/job finished"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			life, err := lifetimeOf(tc.job)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if got := needsCleanup(tc.job); got == errors.Is(err, errNoTimeOut) {
				t.Errorf("needs cleanup = %t with error %v", got, err)
			}
			if err == nil && life.left(now) != tc.want {
				t.Errorf("%s left, want %s", life.left(now), tc.want)
			}
		})
	}
}
