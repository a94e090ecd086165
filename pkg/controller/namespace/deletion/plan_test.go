// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func TestPlanTargets(t *testing.T) {
	lists := []*metav1.APIResourceList{
		nil,
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Verbs: metav1.Verbs{"list", "delete", "deletecollection"}},
			{Name: "pods/eviction", Verbs: metav1.Verbs{"create", "delete"}},
			{Name: "services", Verbs: metav1.Verbs{"list", "delete"}},
			{Name: "bindings", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "one/two/three", APIResources: []metav1.APIResource{{Name: "x", Verbs: metav1.Verbs{"delete"}}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Verbs: metav1.Verbs{"delete", "deletecollection"}},
			{Name: "deployments", Verbs: metav1.Verbs{"delete", "list"}},
		}},
	}
	got, err := planTargets(lists)
	want := []target{
		{gvr: podsResource, list: true, deleteCollection: true},
		{gvr: schema.GroupVersionResource{Version: "v1", Resource: "services"}, list: true},
		{gvr: deployments, deleteCollection: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if err == nil || err.Error() != "unexpected GroupVersion string: one/two/three" {
		t.Errorf("error %v", err)
	}
}

func TestSplitPods(t *testing.T) {
	pods, web := target{gvr: podsResource, list: true}, target{gvr: deployments}
	tests := map[string]struct {
		targets            []target
		complete           bool
		wantPods, wantRest int
	}{
		"discovered":             {[]target{web, pods}, true, 1, 1},
		"discovered, incomplete": {[]target{web, pods}, false, 1, 1},
		"missed, incomplete":     {[]target{web}, false, 1, 1},
		"not served":             {[]target{web}, true, 0, 1},
		"nothing known":          {nil, false, 1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pods, rest := splitPods(tc.targets, tc.complete)
			if len(pods) != tc.wantPods || len(rest) != tc.wantRest {
				t.Errorf("got %v and %v", pods, rest)
			}
			for _, p := range pods {
				if p.gvr != podsResource || !p.list {
					t.Errorf("pods are %v", p)
				}
			}
		})
	}
}

func TestDeleteHelps(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"not terminating":                        {metav1.ObjectMeta{}, true},
		"not terminating, with finalizer":        {metav1.ObjectMeta{Finalizers: []string{"x"}}, true},
		"grace period runs":                      {metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](30)}, false},
		"grace period runs, with a GC finalizer": {metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](30), Finalizers: []string{metav1.FinalizerDeleteDependents}}, false},
		"held by a finalizer":                    {metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](0), Finalizers: []string{"x"}}, false},
		"held by foreground deletion":            {metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](0), Finalizers: []string{"x", metav1.FinalizerDeleteDependents}}, true},
		"held by orphaning":                      {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{metav1.FinalizerOrphanDependents}}, true},
		"half deleted: nothing holds it":         {metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](0)}, true},
		"half deleted, without any grace period": {metav1.ObjectMeta{DeletionTimestamp: &now}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := deleteHelps(&metav1.PartialObjectMetadata{ObjectMeta: tc.meta}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestSurveyWait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	held := map[string]int{"x": 1}
	tests := map[string]struct {
		survey  survey
		want    int64
		wantErr bool
	}{
		"nothing left":                       {survey{}, 0, false},
		"grace period":                       {survey{count: 1, due: now.Add(20 * time.Second)}, 20, false},
		"grace period, rounded up":           {survey{count: 1, due: now.Add(1500 * time.Millisecond)}, 2, false},
		"grace period before finalizer":      {survey{count: 1, due: now.Add(40 * time.Second), finalizers: held}, 40, false},
		"grace period over, but a finalizer": {survey{count: 1, due: now, finalizers: held}, finalizerEstimateSeconds, false},
		"finalizer":                          {survey{count: 2, finalizers: held}, finalizerEstimateSeconds, false},
		"grace period over":                  {survey{count: 1, due: now}, 0, true},
		"no reason":                          {survey{count: 1}, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.survey.wait(deployments, nsName, now)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("got %d and %v, want %d and error %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	o := &outcome{}
	if !o.empty() {
		t.Error("an outcome without anything is not empty")
	}
	o.include(deployments, survey{count: 2, finalizers: map[string]int{"a": 2, "b": 1}}, 15, nil)
	o.include(configMaps, survey{count: 1, finalizers: map[string]int{"a": 1}}, 3, errors.New("refused"))
	if diff := cmp.Diff(map[string]int{"a": 3, "b": 1}, o.finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[schema.GroupVersionResource]int{deployments: 2, configMaps: 1}, o.remaining); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	if o.estimate != 15 || o.empty() || o.err() == nil {
		t.Errorf("outcome %+v", o)
	}
	for name, o := range map[string]*outcome{
		"discovery": {discoveryErr: errors.New("x")},
		"parsing":   {parseErr: errors.New("x")},
		"content":   {contentErrs: []error{errors.New("x")}},
		"estimate":  {estimate: 1},
		"remaining": {remaining: map[schema.GroupVersionResource]int{deployments: 1}},
	} {
		if o.empty() {
			t.Errorf("an outcome with %s is empty", name)
		}
	}
}

// TestRandomNamespaces drives rounds over random content until the namespace is gone. Whatever the
// content, its finalizers, grace periods and the API's faults:
//   - nothing but pods is deleted while a pod is left;
//   - the namespace is never let go while anything is left, nor on incomplete discovery;
//   - while something is left, the conditions say that;
//   - once faults have ended and finalizers are released, it does go.
func TestRandomNamespaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newFakeCluster()
		c.pageSize = rapid.IntRange(1, 4).Draw(t, "page size")
		all := []schema.GroupVersionResource{podsResource, configMaps, deployments, widgets}
		if rapid.Bool().Draw(t, "no collection deletes of config maps") {
			c.lists[0].APIResources[1].Verbs = metav1.Verbs{"list", "delete"}
		}
		c.grace[podsResource] = time.Duration(rapid.IntRange(0, 40).Draw(t, "grace seconds")) * time.Second
		for _, gvr := range all {
			for i := range rapid.IntRange(0, 6).Draw(t, "objects of "+gvr.Resource) {
				c.put(gvr, fmt.Sprint(gvr.Resource, i), rapid.SampledFrom([][]string{
					nil, nil, {"example.com/hold"}, {metav1.FinalizerDeleteDependents}, {"example.com/hold", metav1.FinalizerOrphanDependents},
				}).Draw(t, "finalizers")...)
			}
		}
		d := c.deleter()
		faults := []string{"discover", "list pods", "list widgets", "deletecollection pods", "deletecollection deployments", "update status", "finalize", "get namespace"}
		for range rapid.IntRange(0, 12).Draw(t, "faulty rounds") {
			clear(c.fail)
			for _, f := range rapid.SliceOfN(rapid.SampledFrom(faults), 0, 3).Draw(t, "faults") {
				c.fail[f] = errors.New(f + " failed")
			}
			round(t, c, d, all)
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0:
				c.release(rapid.SampledFrom(all).Draw(t, "released"))
			case 1:
				c.tick(time.Minute)
			default:
				c.tick(2 * time.Second)
			}
		}

		clear(c.fail)
		for range 4 {
			if c.namespace == nil {
				return
			}
			for _, gvr := range all {
				c.release(gvr)
			}
			c.tick(time.Minute)
			round(t, c, d, all)
		}
		if c.namespace != nil {
			t.Fatalf("the namespace is still there: %v", c.namespace.Status.Conditions)
		}
	})
}

// round runs one round and checks what must hold in each.
func round(t *rapid.T, c *fakeCluster, d *namespacedResourcesDeleter, all []schema.GroupVersionResource) {
	podsBefore, gone := c.count(podsResource), c.namespace == nil
	err := d.Delete(t.Context(), nsName)
	requests := c.taken()

	left := 0
	for _, gvr := range all {
		left += c.count(gvr)
	}
	if c.namespace == nil && !gone && left > 0 {
		t.Fatalf("the namespace was let go with %d objects in it", left)
	}
	if err == nil && c.namespace != nil {
		t.Fatal("no error and no wait although the namespace is still there")
	}
	if c.count(podsResource) > 0 {
		for _, r := range requests {
			if strings.HasPrefix(r, "delete") && !isOf(r, podsResource) {
				t.Fatalf("%q with %d pods left (of %d)", r, c.count(podsResource), podsBefore)
			}
		}
	}
	var waits *ResourcesRemainingError
	if errors.As(err, &waits) {
		if waits.Estimate <= 0 {
			t.Fatalf("estimate %d", waits.Estimate)
		}
		if c.fail["update status"] == nil && !slices.ContainsFunc(conditionTexts(c), func(s string) bool { return strings.HasPrefix(s, "Some resources are remaining") }) {
			t.Fatalf("objects are left, the conditions do not say so: %v", conditionTexts(c))
		}
	}
}

func conditionTexts(c *fakeCluster) []string {
	var texts []string
	for _, cond := range c.namespace.Status.Conditions {
		texts = append(texts, cond.Message)
	}
	return texts
}
