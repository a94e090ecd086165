// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"testing"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestResolveFenceposts(t *testing.T) {
	cases := map[string]struct {
		surge, unavailable         *intstr.IntOrString
		desired                    int32
		wantSurge, wantUnavailable int32
		fails                      bool
	}{
		"both 0 %":                     {ptr.To(intstr.FromString("0%")), ptr.To(intstr.FromString("0%")), 0, 0, 1, false},
		"both 39 %":                    {ptr.To(intstr.FromString("39%")), ptr.To(intstr.FromString("39%")), 10, 4, 3, false},
		"surge is no percentage":       {ptr.To(intstr.FromString("oops")), ptr.To(intstr.FromString("39%")), 10, 0, 0, true},
		"unavailable is no percentage": {ptr.To(intstr.FromString("55%")), ptr.To(intstr.FromString("urg")), 10, 0, 0, true},
		"surge unset":                  {nil, ptr.To(intstr.FromString("39%")), 10, 0, 3, false},
		"unavailable unset":            {ptr.To(intstr.FromString("39%")), nil, 10, 4, 0, false},
		"both unset":                   {nil, nil, 10, 0, 1, false},
		"numbers":                      {ptr.To(intstr.FromInt32(5)), ptr.To(intstr.FromInt32(1)), 7, 5, 1, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			surge, unavailable, err := ResolveFenceposts(c.surge, c.unavailable, c.desired)
			if surge != c.wantSurge || unavailable != c.wantUnavailable || (err != nil) != c.fails {
				t.Errorf("got %d, %d, %v", surge, unavailable, err)
			}
		})
	}
}

func TestMaxUnavailableAndMinAvailable(t *testing.T) {
	num, percent := intstr.FromInt32, intstr.FromString
	cases := map[string]struct {
		deployment                *apps.Deployment
		maxUnavailable, available int32
	}{
		"less than replicas":                  {rolling(10, num(0), num(5)), 5, 5},
		"equal to replicas":                   {rolling(10, num(0), num(10)), 10, 0},
		"more than replicas":                  {rolling(5, num(0), num(10)), 5, 0},
		"no replicas":                         {rolling(0, num(0), num(10)), 0, 0},
		"recreate":                            {recreate(10), 0, 0},
		"less than replicas, percentage":      {rolling(10, percent("0%"), percent("50%")), 5, 5},
		"equal to replicas, percentage":       {rolling(10, percent("0%"), percent("100%")), 10, 0},
		"more than replicas, percentage":      {rolling(5, percent("0%"), percent("200%")), 5, 0},
		"rounds down":                         {rolling(3, percent("25%"), percent("25%")), 0, 3},
		"one when both are none":              {rolling(3, num(0), num(0)), 1, 2},
		"a value that does not resolve":       {rolling(3, percent("x"), percent("25%")), 0, 3},
		"no rollingUpdate parameters":         {withoutParameters(rolling(3, num(1), num(0))), 1, 2},
		"unset replicas count as the default": {withoutReplicas(rolling(3, num(0), num(1))), 1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := MaxUnavailable(*c.deployment); got != c.maxUnavailable {
				t.Errorf("max unavailable: %d, want %d", got, c.maxUnavailable)
			}
			if got := MinAvailable(c.deployment); got != c.available {
				t.Errorf("min available: %d, want %d", got, c.available)
			}
		})
	}
}

func withoutParameters(d *apps.Deployment) *apps.Deployment {
	d.Spec.Strategy.RollingUpdate = nil
	return d
}

func withoutReplicas(d *apps.Deployment) *apps.Deployment {
	d.Spec.Replicas = nil
	return d
}

func TestMaxSurge(t *testing.T) {
	if got := MaxSurge(*rolling(3, intstr.FromString("25%"), intstr.FromInt32(0))); got != 1 {
		t.Errorf("rounded to %d, want 1", got)
	}
	if got := MaxSurge(*recreate(3)); got != 0 {
		t.Errorf("recreate: %d", got)
	}
}

func TestNewRSNewReplicas(t *testing.T) {
	num := intstr.FromInt32
	cases := map[string]struct {
		deployment *apps.Deployment
		old, have  int32
		want       int32
	}{
		"no room above the surge":                {rolling(10, num(1), num(0)), 11, 0, 0},
		"more than the surge allows is there":    {rolling(5, num(1), num(0)), 10, 2, 2},
		"as far as the surge goes":               {rolling(10, num(2), num(0)), 10, 0, 2},
		"not beyond what is wanted":              {rolling(10, num(5), num(0)), 0, 8, 10},
		"recreate: all":                          {recreate(7), 0, 2, 7},
		"no surge and no room":                   {rolling(10, num(0), num(1)), 10, 0, 0},
		"no surge, in the room that is left":     {rolling(10, num(0), num(1)), 7, 1, 3},
		"never fewer when the deployment shrank": {rolling(2, num(0), num(1)), 0, 4, 4},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			newRS := replicaSet("new", "b", c.have, 1)
			got, err := NewRSNewReplicas(c.deployment, []*apps.ReplicaSet{replicaSet("old", "a", c.old, 0), newRS}, newRS)
			if err != nil || got != c.want {
				t.Errorf("got %d, %v, want %d", got, err, c.want)
			}
		})
	}
	unknown := rolling(1, num(1), num(0))
	unknown.Spec.Strategy.Type = "Magic"
	if _, err := NewRSNewReplicas(unknown, nil, replicaSet("new", "b", 0, 0)); err == nil {
		t.Error("an unknown strategy has a size")
	}
}

func TestGetReplicaSetFraction(t *testing.T) {
	status := func(d *apps.Deployment, replicas int32) *apps.Deployment {
		d.Status.Replicas = replicas
		return d
	}
	zero := intstr.FromInt32(0)
	cases := map[string]struct {
		deployment *apps.Deployment
		rs         *apps.ReplicaSet
		want       int32
	}{
		"a deployment without pods scales to 0":              {status(rolling(0, zero, zero), 10), replicaSet("rs", "a", 5, 0), -5},
		"one that never had pods does not scale":             {status(rolling(10, zero, zero), 0), replicaSet("rs", "a", 5, 0), 0},
		"the same with an annotation of 0":                   {status(rolling(10, zero, zero), 0), annotated(replicaSet("rs", "a", 5, 0), MaxReplicasAnnotation, 0), 0},
		"up by 1/5 without annotation":                       {status(rolling(120, zero, zero), 100), replicaSet("rs", "a", 50, 0), 10},
		"up by 1/5 with an annotation of 0":                  {status(rolling(120, zero, zero), 100), annotated(replicaSet("rs", "a", 50, 0), MaxReplicasAnnotation, 0), 10},
		"up by 1/5":                                          {status(rolling(120, zero, zero), 100), annotated(replicaSet("rs", "a", 50, 0), MaxReplicasAnnotation, 100), 10},
		"up by 1/5 with surge":                               {status(rolling(120, intstr.FromInt32(10), zero), 100), annotated(replicaSet("rs", "a", 50, 0), MaxReplicasAnnotation, 110), 9},
		"down by 1/6":                                        {status(rolling(100, zero, zero), 120), annotated(replicaSet("rs", "a", 60, 0), MaxReplicasAnnotation, 120), -10},
		"down by 1/6 with surge":                             {status(rolling(100, intstr.FromInt32(10), zero), 120), annotated(replicaSet("rs", "a", 60, 0), MaxReplicasAnnotation, 130), -9},
		"sizes whose product does not fit 32 bits are exact": {status(rolling(100000, zero, zero), 50000), annotated(replicaSet("rs", "a", 50000, 0), MaxReplicasAnnotation, 50000), 50000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := GetReplicaSetFraction(c.rs, c.deployment); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestIsSaturated(t *testing.T) {
	d := rolling(5, intstr.FromInt32(0), intstr.FromInt32(1))
	saturated := func(change func(*apps.ReplicaSet)) *apps.ReplicaSet {
		rs := annotated(replicaSet("rs", "a", 5, 0), DesiredReplicasAnnotation, 5)
		rs.Status.AvailableReplicas = 5
		change(rs)
		return rs
	}
	cases := map[string]struct {
		rs   *apps.ReplicaSet
		want bool
	}{
		"nil":                    {nil, false},
		"saturated":              {saturated(func(*apps.ReplicaSet) {}), true},
		"another size wanted":    {saturated(func(rs *apps.ReplicaSet) { rs.Spec.Replicas = ptr.To[int32](4) }), false},
		"not available":          {saturated(func(rs *apps.ReplicaSet) { rs.Status.AvailableReplicas = 4 }), false},
		"scaled at another size": {saturated(func(rs *apps.ReplicaSet) { rs.Annotations[DesiredReplicasAnnotation] = "4" }), false},
		"does not say":           {saturated(func(rs *apps.ReplicaSet) { rs.Annotations = nil }), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsSaturated(d, c.rs); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
