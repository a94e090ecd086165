// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"math"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// reportOf returns the Deployment as it is after the report.
func reportOf(t *testing.T, s snapshot, kind reportKind, created bool) (*apps.Deployment, report) {
	t.Helper()
	before := s.deployment.DeepCopy()
	r := makeReport(s, kind, outcome{family: s.family.clone(), created: created})
	mustEqual(t, "the deployment in the cache", before, s.deployment)
	if r.deployment == nil {
		return s.deployment, r
	}
	again := s
	again.deployment = r.deployment
	if kind != reportRollout { // the progress it reports is none any more when it is told again
		if r := makeReport(again, kind, outcome{family: s.family, created: created}); r.deployment != nil {
			t.Error("a second report says something else")
		}
	}
	return r.deployment, r
}

func progressing(status v1.ConditionStatus, reason string, at time.Time) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, condition(apps.DeploymentProgressing, status, reason, "", at))
	}
}

// TestJudgeProgress has upstream's cases of TestSyncRolloutStatus and some more.
func TestJudgeProgress(t *testing.T) {
	now := epoch.Add(time.Hour)
	noDeadline := func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }
	deadline := func(n int32) func(*apps.Deployment) {
		return func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = &n }
	}
	sets := func(rs ...*apps.ReplicaSet) []*apps.ReplicaSet { return rs }
	type want struct {
		status                  v1.ConditionStatus
		reason, message         string
		lastUpdate, lastTransit time.Time
	}
	cases := map[string]struct {
		d    *apps.Deployment
		sets []*apps.ReplicaSet
		want *want
	}{
		"no deadline: no condition": {
			deploymentOf(3, 1, 0, noDeadline, progressing(v1.ConditionTrue, util.ReplicaSetUpdatedReason, epoch)), sets(setOf("new", 1, 0, 3, 1)), nil},
		"complete before: not judged again": {
			deploymentOf(3, 1, 0, progressing(v1.ConditionTrue, util.NewRSAvailableReason, epoch)), sets(setOf("new", 3, 0, 3, 1, available(2))),
			&want{v1.ConditionTrue, util.NewRSAvailableReason, "", epoch, epoch}},
		"progressing: the transition stays": {
			deploymentOf(3, 1, 0, progressing(v1.ConditionTrue, util.ReplicaSetUpdatedReason, epoch)), sets(setOf("new", 1, 0, 3, 1)),
			&want{v1.ConditionTrue, util.ReplicaSetUpdatedReason, `ReplicaSet "new" is progressing.`, now, epoch}},
		"progressing after a failure: all is new": {
			deploymentOf(3, 1, 0, progressing(v1.ConditionFalse, util.TimedOutReason, epoch)), sets(setOf("new", 1, 0, 3, 1)),
			&want{v1.ConditionTrue, util.ReplicaSetUpdatedReason, `ReplicaSet "new" is progressing.`, now, now}},
		"progressing without a new one": {
			deploymentOf(3, 1, 0, progressing(v1.ConditionTrue, util.ReplicaSetUpdatedReason, epoch)), sets(setOf("old", 1, 0, 3, 1)),
			&want{v1.ConditionTrue, util.ReplicaSetUpdatedReason, `Deployment "web" is progressing.`, now, epoch}},
		"complete: the transition stays": {
			deploymentOf(1, 1, 0, progressing(v1.ConditionTrue, util.ReplicaSetUpdatedReason, epoch)), sets(setOf("new", 1, 0, 1, 1)),
			&want{v1.ConditionTrue, util.NewRSAvailableReason, `ReplicaSet "new" has successfully progressed.`, now, epoch}},
		"complete after a failure: all is new": {
			deploymentOf(1, 1, 0, progressing(v1.ConditionFalse, util.TimedOutReason, epoch)), sets(setOf("new", 1, 0, 1, 1)),
			&want{v1.ConditionTrue, util.NewRSAvailableReason, `ReplicaSet "new" has successfully progressed.`, now, now}},
		"complete without a new one": {
			deploymentOf(0, 1, 0), nil,
			&want{v1.ConditionTrue, util.NewRSAvailableReason, `Deployment "web" has successfully progressed.`, now, now}},
		"timed out": {
			deploymentOf(1, 1, 0, deadline(9), progressing(v1.ConditionTrue, util.NewReplicaSetReason, now.Add(-10*time.Second))), sets(setOf("new", 1, 0, 1, 1, running(0), available(0))),
			&want{v1.ConditionFalse, util.TimedOutReason, `ReplicaSet "new" has timed out progressing.`, now, now}},
		"timed out without a new one": {
			deploymentOf(1, 1, 0, deadline(9), progressing(v1.ConditionTrue, util.NewReplicaSetReason, now.Add(-10*time.Second))), nil,
			&want{v1.ConditionFalse, util.TimedOutReason, `Deployment "web" has timed out progressing.`, now, now}},
		"not timed out yet": {
			deploymentOf(1, 1, 0, deadline(11), progressing(v1.ConditionTrue, util.NewReplicaSetReason, now.Add(-10*time.Second))), sets(setOf("new", 1, 0, 1, 1, running(0), available(0))),
			&want{v1.ConditionTrue, util.NewReplicaSetReason, "", now.Add(-10 * time.Second), now.Add(-10 * time.Second)}},
		"timed out before: as it was": {
			deploymentOf(1, 1, 0, deadline(9), progressing(v1.ConditionFalse, util.TimedOutReason, epoch)), sets(setOf("new", 1, 0, 1, 1, running(0), available(0))),
			&want{v1.ConditionFalse, util.TimedOutReason, "", epoch, epoch}},
		"resumed: the deadline counts from there (BC022)": {
			deploymentOf(1, 1, 0, deadline(9), progressing(v1.ConditionUnknown, util.PausedDeployReason, epoch)), sets(setOf("new", 1, 0, 1, 1, running(0), available(0))),
			&want{v1.ConditionUnknown, util.ResumedDeployReason, "Deployment is resumed", now, epoch}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := reportOf(t, snapshotOf(c.d, c.sets...), reportRollout, false)
			got := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
			if c.want == nil {
				if got != nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			mustEqual(t, "condition", &apps.DeploymentCondition{Type: apps.DeploymentProgressing, Status: c.want.status, Reason: c.want.reason, Message: c.want.message,
				LastUpdateTime: metav1.NewTime(c.want.lastUpdate), LastTransitionTime: metav1.NewTime(c.want.lastTransit)}, got)
		})
	}
}

func TestProgressCheckAfter(t *testing.T) {
	now := epoch
	cases := map[string]struct {
		deadline *int32
		reason   string
		age      time.Duration
		complete bool
		want     time.Duration
	}{
		"no deadline":                   {nil, util.NewReplicaSetReason, 0, false, 0},
		"infinite deadline":             {new(int32(math.MaxInt32)), util.NewReplicaSetReason, 0, false, 0},
		"no condition":                  {new(int32(60)), "", 0, false, 0},
		"complete":                      {new(int32(60)), util.NewReplicaSetReason, 0, true, 0},
		"timed out":                     {new(int32(60)), util.TimedOutReason, 0, false, 0},
		"was complete, lost pods since": {new(int32(60)), util.NewRSAvailableReason, time.Hour, false, 0},
		"30 s left":                     {new(int32(60)), util.NewReplicaSetReason, 30 * time.Second, false, 31 * time.Second},
		"1 s left":                      {new(int32(60)), util.NewReplicaSetReason, 59 * time.Second, false, 2 * time.Second},
		"less than a second left":       {new(int32(60)), util.NewReplicaSetReason, 59*time.Second + 600*time.Millisecond, false, 410 * time.Millisecond},
		"now":                           {new(int32(60)), util.NewReplicaSetReason, 60 * time.Second, false, soon},
		"1 s ago":                       {new(int32(60)), util.NewReplicaSetReason, 61 * time.Second, false, soon},
		"60 s ago":                      {new(int32(60)), util.NewReplicaSetReason, 120 * time.Second, false, soon},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := deploymentOf(4, 1, 0)
			d.Spec.ProgressDeadlineSeconds = c.deadline
			d.Status = apps.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, AvailableReplicas: 3, ObservedGeneration: 1}
			if c.complete {
				d.Status.AvailableReplicas = 4
			}
			if c.reason != "" {
				progressing(v1.ConditionTrue, c.reason, now.Add(-c.age))(d)
			}
			if got := progressCheckAfter(d, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestCheckAfterOnlyWhenNothingIsWritten: a write brings the Deployment back by its event.
func TestCheckAfterOnlyWhenNothingIsWritten(t *testing.T) {
	stuck := []*apps.ReplicaSet{setOf("new", 1, 0, 1, 1, available(0))}
	s := snapshotOf(deploymentOf(1, 1, 0, progressing(v1.ConditionTrue, util.NewReplicaSetReason, epoch.Add(time.Hour-time.Minute))), stuck...)
	d, r := reportOf(t, s, reportRollout, false)
	if r.deployment == nil || r.checkAfter != 0 {
		t.Fatalf("first report: %+v", r)
	}
	s.deployment = d
	if _, r = reportOf(t, s, reportRollout, false); r.deployment != nil || r.checkAfter != 601*time.Second {
		t.Errorf("second report: %+v", r)
	}
	if _, r = reportOf(t, s, reportStatus, false); r.checkAfter != 0 {
		t.Errorf("a report without judgement asks for %s", r.checkAfter)
	}
}

func TestStatusCounts(t *testing.T) {
	s := snapshotOf(deploymentOf(5, 1, 1, annotation(util.RevisionAnnotation, "1")),
		setOf("new", 3, 1, 5, 1, running(2), available(1), func(rs *apps.ReplicaSet) { rs.Status.ReadyReplicas, rs.Status.TerminatingReplicas = 2, new(int32(1)) }),
		setOf("old", 2, 0, 5, 1, running(3), func(rs *apps.ReplicaSet) { rs.Status.TerminatingReplicas = new(int32(2)) }))
	s.deployment.Status.CollisionCount = new(int32(2))
	d, _ := reportOf(t, s, reportStatus, false)
	got := d.Status
	got.Conditions = nil
	mustEqual(t, "status", apps.DeploymentStatus{ObservedGeneration: 1, Replicas: 5, UpdatedReplicas: 2, ReadyReplicas: 4, AvailableReplicas: 3,
		UnavailableReplicas: 2, TerminatingReplicas: new(int32(3)), CollisionCount: new(int32(2))}, got)
	mustEqual(t, "annotations", map[string]string{util.RevisionAnnotation: "2"}, d.Annotations)

	s.terminatingReplicas = false
	if d, _ = reportOf(t, s, reportStatus, false); d.Status.TerminatingReplicas != nil {
		t.Error("terminating pods are counted although the gate is off")
	}
	s = snapshotOf(deploymentOf(1, 1, 0), setOf("new", 0, 1, 5, 1, available(2)))
	if d, _ = reportOf(t, s, reportStatus, false); d.Status.UnavailableReplicas != 0 {
		t.Errorf("unavailable: %d", d.Status.UnavailableReplicas)
	}
}

func TestAvailableCondition(t *testing.T) {
	cases := map[string]struct {
		d         *apps.Deployment
		available int32
		want      v1.ConditionStatus
		reason    string
		message   string
	}{
		"enough":             {deploymentOf(3, 0, 1), 2, v1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability."},
		"too few":            {deploymentOf(3, 0, 1), 1, v1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."},
		"recreate needs all": {deploymentOf(3, 0, 1, recreating), 2, v1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."},
		"none are wanted":    {deploymentOf(0, 0, 1), 0, v1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := reportOf(t, snapshotOf(c.d, setOf("new", 3, 0, 3, 0, available(c.available))), reportStatus, false)
			got := util.GetDeploymentCondition(d.Status, apps.DeploymentAvailable)
			mustEqual(t, "condition", []string{string(c.want), c.reason, c.message}, []string{string(got.Status), got.Reason, got.Message})
		})
	}
}

func TestPausedAndResumed(t *testing.T) {
	now := epoch.Add(time.Hour)
	noDeadline := func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }
	deleted := func(d *apps.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(epoch)) }
	cases := map[string]struct {
		d      *apps.Deployment
		reason string
		at     time.Time
	}{
		"paused":                           {deploymentOf(1, 1, 0, paused, complete), util.PausedDeployReason, now},
		"paused without a condition":       {deploymentOf(1, 1, 0, paused), util.PausedDeployReason, now},
		"paused still":                     {deploymentOf(1, 1, 0, paused, progressing(v1.ConditionUnknown, util.PausedDeployReason, epoch)), util.PausedDeployReason, epoch},
		"resumed":                          {deploymentOf(1, 1, 0, progressing(v1.ConditionUnknown, util.PausedDeployReason, epoch)), util.ResumedDeployReason, now},
		"paused after it timed out":        {deploymentOf(1, 1, 0, paused, progressing(v1.ConditionFalse, util.TimedOutReason, epoch)), util.TimedOutReason, epoch},
		"paused without a deadline":        {deploymentOf(1, 1, 0, paused, noDeadline), "", now},
		"paused while it is being deleted": {deploymentOf(1, 1, 0, paused, deleted, progressing(v1.ConditionTrue, "x", epoch)), "x", epoch},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := reportOf(t, snapshotOf(c.d), reportStatus, false)
			got := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
			if c.reason == "" {
				if got != nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got == nil || got.Reason != c.reason || !got.LastUpdateTime.Time.Equal(c.at) {
				t.Errorf("got %+v", got)
			}
			if (c.reason == util.PausedDeployReason || c.reason == util.ResumedDeployReason) && got.Status != v1.ConditionUnknown {
				t.Errorf("status %s", got.Status)
			}
		})
	}
}

func TestFoundAndCreated(t *testing.T) {
	noDeadline := func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }
	cases := map[string]struct {
		d               *apps.Deployment
		created         bool
		reason, message string
	}{
		"created":                     {deploymentOf(1, 1, 0), true, "NewReplicaSetCreated", `Created new replica set "new"`},
		"created after a completion":  {deploymentOf(1, 1, 0, complete), true, "NewReplicaSetCreated", `Created new replica set "new"`},
		"found":                       {deploymentOf(1, 1, 0), false, "FoundNewReplicaSet", `Found new replica set "new"`},
		"found, but progress is told": {deploymentOf(1, 1, 0, progressing(v1.ConditionTrue, "x", epoch)), false, "x", ""},
		"no deadline":                 {deploymentOf(1, 1, 0, noDeadline), true, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(c.d, setOf("new", 1, 0, 1, 1, running(0), available(0)))
			d, _ := reportOf(t, s, reportStatus, c.created)
			got := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
			if c.reason == "" {
				if got != nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got.Reason != c.reason || got.Message != c.message || got.Status != v1.ConditionTrue {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestReplicaFailure(t *testing.T) {
	failing := func(reason string) func(*apps.ReplicaSet) {
		return func(rs *apps.ReplicaSet) {
			rs.Status.Conditions = append(rs.Status.Conditions, apps.ReplicaSetCondition{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: reason})
		}
	}
	stale := func(d *apps.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, condition(apps.DeploymentReplicaFailure, v1.ConditionTrue, "stale", "", epoch))
	}
	cases := map[string]struct {
		sets []*apps.ReplicaSet
		want string
	}{
		"the new one's": {[]*apps.ReplicaSet{setOf("old", 1, 0, 1, 1, failing("old")), setOf("new", 1, 1, 1, 1, failing("new"))}, "new"},
		"an old one's":  {[]*apps.ReplicaSet{setOf("old", 1, 0, 1, 1, failing("old")), setOf("new", 1, 1, 1, 1)}, "old"},
		"none":          {[]*apps.ReplicaSet{setOf("old", 1, 0, 1, 1), setOf("new", 1, 1, 1, 1)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := reportOf(t, snapshotOf(deploymentOf(1, 1, 0, stale), c.sets...), reportRollout, false)
			got := util.GetDeploymentCondition(d.Status, apps.DeploymentReplicaFailure)
			if (got == nil) != (c.want == "") || got != nil && got.Reason != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestCreateFailureReport(t *testing.T) {
	s := snapshotOf(deploymentOf(1, 1, 0))
	r := reportCreateFailure(s, "text")
	if r.deployment == nil || r.deployment.Status.ObservedGeneration != 0 || len(r.deployment.Status.Conditions) != 1 {
		t.Fatalf("got %+v", r.deployment)
	}
	got := r.deployment.Status.Conditions[0]
	mustEqual(t, "condition", condition(apps.DeploymentProgressing, v1.ConditionFalse, "ReplicaSetCreateError", "text", s.now), got)
	s.deployment = r.deployment
	if r = reportCreateFailure(s, "another text"); r.deployment != nil {
		t.Error("the same failure is told twice")
	}
	s = snapshotOf(deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }))
	if r = reportCreateFailure(s, "text"); r.deployment != nil {
		t.Error("told although progress is not watched")
	}
}

func TestCollisionReport(t *testing.T) {
	s := snapshotOf(deploymentOf(1, 1, 0))
	r := reportCollision(s)
	if *r.deployment.Status.CollisionCount != 1 || s.deployment.Status.CollisionCount != nil {
		t.Errorf("got %+v", r.deployment.Status)
	}
	s.deployment = r.deployment
	if r = reportCollision(s); *r.deployment.Status.CollisionCount != 2 || *s.deployment.Status.CollisionCount != 1 {
		t.Errorf("got %+v", r.deployment.Status)
	}
}

func TestObservedReport(t *testing.T) {
	s := snapshotOf(deploymentOf(1, 1, 0))
	d, _ := reportOf(t, s, reportObserved, false)
	mustEqual(t, "status", apps.DeploymentStatus{ObservedGeneration: 1}, d.Status)
}
