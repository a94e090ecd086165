// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func cond(t apps.DeploymentConditionType, status v1.ConditionStatus, reason string, at time.Time) apps.DeploymentCondition {
	return apps.DeploymentCondition{Type: t, Status: status, Reason: reason, LastUpdateTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at)}
}

func TestGetDeploymentCondition(t *testing.T) {
	status := apps.DeploymentStatus{Conditions: []apps.DeploymentCondition{cond(apps.DeploymentProgressing, v1.ConditionFalse, "ForSomeReason", epoch)}}
	got := GetDeploymentCondition(status, apps.DeploymentProgressing)
	if got == nil || got.Reason != "ForSomeReason" {
		t.Fatalf("got %v", got)
	}
	if got.Reason = "changed"; status.Conditions[0].Reason != "ForSomeReason" {
		t.Error("what is returned is not a copy")
	}
	if GetDeploymentCondition(status, apps.DeploymentReplicaFailure) != nil {
		t.Error("found a condition that is not there")
	}
}

func TestSetDeploymentCondition(t *testing.T) {
	later := epoch.Add(time.Hour)
	available := cond(apps.DeploymentAvailable, v1.ConditionTrue, "AwesomeController", epoch)
	progressing := cond(apps.DeploymentProgressing, v1.ConditionFalse, "ForSomeReason", epoch)
	kept := cond(apps.DeploymentProgressing, v1.ConditionFalse, "Other", later)
	kept.LastTransitionTime = metav1.NewTime(epoch)
	cases := map[string]struct {
		have []apps.DeploymentCondition
		set  apps.DeploymentCondition
		want []apps.DeploymentCondition
	}{
		"the first":                 {nil, available, []apps.DeploymentCondition{available}},
		"another type":              {[]apps.DeploymentCondition{progressing}, available, []apps.DeploymentCondition{progressing, available}},
		"same status, same reason":  {[]apps.DeploymentCondition{progressing, available}, cond(apps.DeploymentProgressing, v1.ConditionFalse, "ForSomeReason", later), []apps.DeploymentCondition{progressing, available}},
		"same status, other reason": {[]apps.DeploymentCondition{progressing, available}, cond(apps.DeploymentProgressing, v1.ConditionFalse, "Other", later), []apps.DeploymentCondition{available, kept}},
		"other status": {[]apps.DeploymentCondition{progressing, available}, cond(apps.DeploymentProgressing, v1.ConditionTrue, "ForSomeReason", later),
			[]apps.DeploymentCondition{available, cond(apps.DeploymentProgressing, v1.ConditionTrue, "ForSomeReason", later)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shared := append([]apps.DeploymentCondition(nil), c.have...)
			status := apps.DeploymentStatus{Conditions: shared}
			SetDeploymentCondition(&status, c.set)
			if diff := cmp.Diff(c.want, status.Conditions); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.have, shared); c.have != nil && diff != "" {
				t.Error("the former slice, which a cache may share, was changed", diff)
			}
		})
	}
}

func TestRemoveDeploymentCondition(t *testing.T) {
	available := cond(apps.DeploymentAvailable, v1.ConditionTrue, "A", epoch)
	status := apps.DeploymentStatus{}
	RemoveDeploymentCondition(&status, apps.DeploymentAvailable)
	if len(status.Conditions) != 0 {
		t.Error("removing from an empty status added something")
	}
	status.Conditions = []apps.DeploymentCondition{available}
	RemoveDeploymentCondition(&status, apps.DeploymentProgressing)
	if len(status.Conditions) != 1 {
		t.Error("another condition was removed")
	}
	RemoveDeploymentCondition(&status, apps.DeploymentAvailable)
	if len(status.Conditions) != 0 {
		t.Error("not removed")
	}
}

func TestNewDeploymentCondition(t *testing.T) {
	c := NewDeploymentCondition(apps.DeploymentAvailable, v1.ConditionTrue, "R", "m")
	if c.Type != apps.DeploymentAvailable || c.Status != v1.ConditionTrue || c.Reason != "R" || c.Message != "m" ||
		c.LastUpdateTime.IsZero() || !c.LastUpdateTime.Equal(&c.LastTransitionTime) {
		t.Errorf("got %+v", c)
	}
}

func TestDeploymentComplete(t *testing.T) {
	cases := map[string]struct {
		want                        int32
		current, updated, available int32
		observed                    int64
		complete                    bool
	}{
		"minimum met, but not all available":     {5, 5, 5, 4, 1, false},
		"minimum not met":                        {5, 5, 5, 3, 1, false},
		"complete":                               {5, 5, 5, 5, 1, true},
		"all available, not all updated":         {5, 5, 4, 5, 1, false},
		"an old pod still runs":                  {1, 2, 1, 1, 1, false},
		"one replica that never comes up":        {1, 1, 1, 0, 1, false},
		"the status is of an earlier generation": {5, 5, 5, 5, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := rolling(c.want, intstr.FromInt32(1), intstr.FromInt32(1))
			d.Generation = 1
			status := &apps.DeploymentStatus{Replicas: c.current, UpdatedReplicas: c.updated, AvailableReplicas: c.available, ObservedGeneration: c.observed}
			if got := DeploymentComplete(d, status); got != c.complete {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDeploymentProgressing(t *testing.T) {
	status := func(current, updated, ready, available int32) apps.DeploymentStatus {
		return apps.DeploymentStatus{Replicas: current, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available}
	}
	cases := map[string]struct {
		old, new apps.DeploymentStatus
		want     bool
	}{
		"updated pods":                   {status(10, 4, 0, 0), status(10, 6, 0, 0), true},
		"nothing":                        {status(10, 4, 0, 0), status(10, 4, 0, 0), false},
		"old pods removed":               {status(10, 4, 0, 0), status(8, 4, 0, 0), true},
		"fewer new pods":                 {status(10, 7, 3, 0), status(10, 6, 3, 0), false},
		"fewer overall but more new":     {status(10, 4, 0, 0), status(8, 8, 0, 0), true},
		"more ready pods":                {status(10, 10, 9, 8), status(10, 10, 10, 8), true},
		"more available pods":            {status(10, 10, 10, 9), status(10, 10, 10, 10), true},
		"fewer ready and available pods": {status(10, 10, 10, 10), status(10, 10, 9, 9), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := rolling(10, intstr.FromInt32(1), intstr.FromInt32(1))
			d.Status = c.old
			if got := DeploymentProgressing(d, &c.new); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDeploymentTimedOut(t *testing.T) {
	now := epoch
	cases := map[string]struct {
		deadline *int32
		cond     *apps.DeploymentCondition
		want     bool
	}{
		"no deadline":          {nil, ptr.To(cond(apps.DeploymentProgressing, v1.ConditionTrue, "", now.Add(-time.Hour))), false},
		"infinite deadline":    {ptr.To[int32](math.MaxInt32), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionTrue, "", now.Add(-time.Hour))), false},
		"no condition":         {ptr.To[int32](10), nil, false},
		"11 s after":           {ptr.To[int32](10), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionTrue, "", now.Add(-11*time.Second))), true},
		"9 s after":            {ptr.To[int32](10), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionTrue, "", now.Add(-9*time.Second))), false},
		"resumed 9 s ago":      {ptr.To[int32](10), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionUnknown, ResumedDeployReason, now.Add(-9*time.Second))), false},
		"was complete":         {ptr.To[int32](10), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionTrue, NewRSAvailableReason, now.Add(-time.Hour))), false},
		"timed out before now": {ptr.To[int32](10), ptr.To(cond(apps.DeploymentProgressing, v1.ConditionFalse, TimedOutReason, now)), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(1))
			d.Spec.ProgressDeadlineSeconds = c.deadline
			status := &apps.DeploymentStatus{}
			if c.cond != nil {
				status.Conditions = append(status.Conditions, *c.cond)
			}
			if got := DeploymentTimedOut(d, status, now); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	d := rolling(1, intstr.FromInt32(1), intstr.FromInt32(1))
	for _, c := range []struct {
		value *int32
		want  bool
	}{{nil, false}, {ptr.To[int32](math.MaxInt32), false}, {ptr.To[int32](0), true}, {ptr.To[int32](600), true}} {
		d.Spec.ProgressDeadlineSeconds, d.Spec.RevisionHistoryLimit = c.value, c.value
		if HasProgressDeadline(d) != c.want || HasRevisionHistoryLimit(d) != c.want {
			t.Errorf("%v: want %v", c.value, c.want)
		}
	}
}

func TestReplicaSetToDeploymentCondition(t *testing.T) {
	got := ReplicaSetToDeploymentCondition(apps.ReplicaSetCondition{
		Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedCreate", Message: "quota", LastTransitionTime: metav1.NewTime(epoch),
	})
	want := cond(apps.DeploymentReplicaFailure, v1.ConditionTrue, "FailedCreate", epoch)
	want.Message = "quota"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
