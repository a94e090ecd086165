// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"

	"github.com/kcm-dev/kcm/pkg/quota/v1/install"
)

func list(pairs ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for _, pair := range pairs {
		name, quantity, _ := strings.Cut(pair, "=")
		l[v1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

func text(l v1.ResourceList) string {
	var all []string
	for name, quantity := range l {
		all = append(all, string(name)+"="+quantity.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func newQuota(hard v1.ResourceList, status v1.ResourceQuotaStatus) *v1.ResourceQuota {
	return &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "uid", ResourceVersion: "1"},
		Spec:       v1.ResourceQuotaSpec{Hard: hard}, Status: status,
	}
}

// Which quotas go first (TestAddQuota of upstream).
func TestIsUrgent(t *testing.T) {
	evaluators := install.NewQuotaConfigurationForControllers(nil, nil).Evaluators()
	tests := []struct {
		name   string
		hard   v1.ResourceList
		status v1.ResourceQuotaStatus
		want   bool
	}{
		{"no status", list("cpu=4"), v1.ResourceQuotaStatus{}, true},
		{"status, no usage", list("cpu=4"), v1.ResourceQuotaStatus{Hard: list("cpu=4")}, true},
		{"status, no usage of an extended resource", list("requests.example/foobars=4"), v1.ResourceQuotaStatus{Hard: list("requests.example/foobars=4")}, true},
		{"status, mismatch", list("cpu=4"), v1.ResourceQuotaStatus{Hard: list("cpu=6"), Used: list("cpu=0")}, true},
		{"status, missing usage, but nobody counts it", list("count/foobars.example.com=4"), v1.ResourceQuotaStatus{Hard: list("count/foobars.example.com=4")}, false},
		{"one of two missing", list("cpu=4", "pods=2"), v1.ResourceQuotaStatus{Hard: list("cpu=4", "pods=2"), Used: list("cpu=1")}, true},
		{"ready", list("cpu=4"), v1.ResourceQuotaStatus{Hard: list("cpu=4"), Used: list("cpu=0")}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := isUrgent(newQuota(tc.hard, tc.status), evaluators); got != tc.want {
				t.Errorf("urgent: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNewStatus(t *testing.T) {
	tests := []struct {
		name     string
		hard     v1.ResourceList
		before   v1.ResourceQuotaStatus
		counted  v1.ResourceList
		used     string
		upToDate bool
	}{
		{"never counted", list("cpu=4"), v1.ResourceQuotaStatus{}, list("cpu=1"), "cpu=1", false},
		{"nothing could be counted", list("cpu=4"), v1.ResourceQuotaStatus{}, nil, "", false},
		{"still the same", list("cpu=4"), v1.ResourceQuotaStatus{Hard: list("cpu=4"), Used: list("cpu=1")}, list("cpu=1000m"), "cpu=1", true},
		{"another value", list("cpu=4"), v1.ResourceQuotaStatus{Hard: list("cpu=4"), Used: list("cpu=1")}, list("cpu=2"), "cpu=2", false},
		{"hard was updated", list("cpu=5"), v1.ResourceQuotaStatus{Hard: list("cpu=4"), Used: list("cpu=1")}, list("cpu=1"), "cpu=1", false},
		{"what failed keeps its value", list("cpu=4", "pods=2"), v1.ResourceQuotaStatus{Hard: list("cpu=4", "pods=2"), Used: list("cpu=1", "pods=1")}, list("pods=2"), "cpu=1 pods=2", false},
		{"a name that is gone", list("pods=2"), v1.ResourceQuotaStatus{Hard: list("pods=2", "cpu=4"), Used: list("cpu=1", "pods=1")}, list("pods=1"), "pods=1", false},
		{"more was counted than is asked for", list("pods=2"), v1.ResourceQuotaStatus{Hard: list("pods=2"), Used: list("pods=1")}, list("pods=1", "cpu=3"), "pods=1", true},
		{"used was never written", list(), v1.ResourceQuotaStatus{Hard: list()}, list(), "", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			q := newQuota(tc.hard, tc.before)
			status := newStatus(q, tc.counted)
			if text(status.Used) != tc.used || text(status.Hard) != text(tc.hard) || status.Used == nil {
				t.Errorf("status %+v, want %s used", status, tc.used)
			}
			if got := isUpToDate(q, status); got != tc.upToDate {
				t.Errorf("up to date: %t", got)
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	evaluators := install.NewQuotaConfigurationForControllers(nil, nil).Evaluators()
	hard := list("cpu=1", "services=1", "requests.example.com/gpu=1", "count/no.such=1")
	waiting := func(names ...string) func(schema.GroupResource) string {
		return func(r schema.GroupResource) string {
			if slices.Contains(names, r.Resource) {
				return r.Resource + " is slow"
			}
			return ""
		}
	}
	for _, tc := range []struct {
		waiting []string
		want    string
	}{
		{nil, ""},
		{[]string{"pods"}, "cpu,requests.example.com/gpu"},
		{[]string{"resourceclaims"}, "requests.example.com/gpu"}, // one of the two that count under it
		{[]string{"services"}, "services"},
		{[]string{"widgets"}, ""},
	} {
		unknown := unknownNames(hard, evaluators, waiting(tc.waiting...))
		if got := namesOf(unknown); got != tc.want {
			t.Errorf("waiting for %v: unknown %s, want %s", tc.waiting, got, tc.want)
		}
		if left := without(hard, unknown); len(left)+len(unknown) != len(hard) {
			t.Errorf("left %v of %v", left, hard)
		}
	}
	if got := usageUnknown(unknownNames(hard, evaluators, waiting("services", "resourceclaims"))); got != "Could not count what is used, keeping the last values. requests.example.com/gpu: resourceclaims is slow; services: services is slow" {
		t.Error(got)
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		before, after v1.ResourceList
		changed       string
		lowered       bool
	}{
		{nil, list("pods=1"), "", false},
		{list("pods=1"), list("pods=1"), "", false},
		{list("pods=1", "cpu=1"), list("pods=2", "cpu=1000m"), "pods", false},
		{list("pods=2", "cpu=1"), list("pods=1", "cpu=2"), "cpu,pods", true},
		{list("pods=2"), list(), "", false},
	} {
		d := compare(tc.before, tc.after)
		var names []string
		for _, name := range d.changed {
			names = append(names, string(name))
		}
		if strings.Join(names, ",") != tc.changed || d.lowered != tc.lowered {
			t.Errorf("%v to %v: %+v", tc.before, tc.after, d)
		}
	}
}

func TestCounts(t *testing.T) {
	pods := generic.NewObjectCountEvaluator(schema.GroupResource{Resource: "pods"}, nil, "pods")
	if !counts(newQuota(list("pods=1"), v1.ResourceQuotaStatus{}), pods) || !counts(newQuota(nil, v1.ResourceQuotaStatus{Hard: list("count/pods=1")}), pods) ||
		counts(newQuota(list("cpu=1"), v1.ResourceQuotaStatus{Hard: list("cpu=1")}), pods) {
		t.Error("which quotas a resource concerns")
	}
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// What is known stays while discovery says nothing about it.
func TestKeepKnown(t *testing.T) {
	pods, widgets, gadgets, newWidgets := gvr("", "v1", "pods"), gvr("a.com", "v1", "widgets"), gvr("b.com", "v1", "gadgets"), gvr("a.com", "v2", "widgets")
	partial := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{widgets.GroupVersion(): errors.New("down")}}
	tests := []struct {
		name  string
		found []schema.GroupVersionResource
		err   error
		want  []schema.GroupVersionResource
	}{
		{"all is well", []schema.GroupVersionResource{pods}, nil, []schema.GroupVersionResource{pods}},
		{"one group fails", []schema.GroupVersionResource{pods}, partial, []schema.GroupVersionResource{pods, widgets}},
		{"one group fails, and it is there in another version", []schema.GroupVersionResource{pods, newWidgets}, partial, []schema.GroupVersionResource{pods, newWidgets}},
		{"all fails", nil, errors.New("down"), []schema.GroupVersionResource{pods, widgets, gadgets}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			found := map[schema.GroupVersionResource]struct{}{}
			for _, r := range tc.found {
				found[r] = struct{}{}
			}
			keepKnown(found, []schema.GroupVersionResource{pods, widgets, gadgets}, tc.err)
			want := map[schema.GroupVersionResource]struct{}{}
			for _, r := range tc.want {
				want[r] = struct{}{}
			}
			if !maps.Equal(found, want) {
				t.Errorf("found %v, want %v", found, want)
			}
		})
	}
}

func TestGetQuotableResources(t *testing.T) {
	all := []string{"create", "delete", "get", "list", "watch"}
	found, err := GetQuotableResources(func() ([]*metav1.APIResourceList, error) {
		return []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Verbs: all}, {Name: "bindings", Namespaced: true, Verbs: []string{"create"}}}},
			{GroupVersion: "metrics/v1", APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Verbs: []string{"get", "list"}}}},
			{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "x", Namespaced: true, Verbs: all}}},
		}, errors.New("one is down")
	})
	if len(found) != 1 || err == nil || !strings.Contains(err.Error(), "one is down") || !strings.Contains(err.Error(), "a/b/c") {
		t.Errorf("found %v, %v", found, err)
	}
}
