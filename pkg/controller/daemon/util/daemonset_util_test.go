// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func labelled(labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Labels: labels}}
}

func TestIsPodUpdated(t *testing.T) {
	both := map[string]string{"pod-template-generation": "12345", "controller-revision-hash": "55"}
	tests := map[string]struct {
		labels     map[string]string
		hash       string
		generation *int64
		want       bool
	}{
		"both match":                {both, "55", new(int64(12345)), true},
		"hash matches":              {map[string]string{"pod-template-generation": "12", "controller-revision-hash": "55"}, "55", new(int64(12345)), true},
		"generation matches":        {map[string]string{"pod-template-generation": "12345", "controller-revision-hash": "66"}, "55", new(int64(12345)), true},
		"nothing matches":           {map[string]string{"pod-template-generation": "12", "controller-revision-hash": "66"}, "55", new(int64(12345)), false},
		"no labels":                 {nil, "55", new(int64(12345)), false},
		"no hash asked for":         {both, "", nil, false},
		"empty hash of an old pod":  {map[string]string{"controller-revision-hash": ""}, "", nil, false},
		"generation not counted":    {map[string]string{"pod-template-generation": "12345"}, "55", nil, false},
		"hash and not counted":      {map[string]string{"controller-revision-hash": "55"}, "55", nil, true},
		"generation, hash label no": {map[string]string{"pod-template-generation": "12345"}, "55", new(int64(12345)), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsPodUpdated(labelled(tc.labels), tc.hash, tc.generation); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCreatePodTemplate(t *testing.T) {
	given := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}}
	made := CreatePodTemplate(given, new(int64(7)), "h")
	want := map[string]string{"app": "x", "pod-template-generation": "7", "controller-revision-hash": "h"}
	if diff := cmp.Diff(want, made.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if len(given.Labels) != 1 || len(given.Spec.Tolerations) != 0 {
		t.Errorf("the given template was changed: %+v", given)
	}
	if bare := CreatePodTemplate(v1.PodTemplateSpec{}, nil, ""); len(bare.Labels) != 0 {
		t.Errorf("labels %v of a template without a hash", bare.Labels)
	}
}

func TestTolerations(t *testing.T) {
	own := v1.Toleration{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}
	spec := v1.PodSpec{Tolerations: []v1.Toleration{own, {Key: "mine"}}}
	AddOrUpdateDaemonPodTolerations(&spec)
	if len(spec.Tolerations) != 7 {
		t.Errorf("%d tolerations, want the five others added: %v", len(spec.Tolerations), spec.Tolerations)
	}
	spec.HostNetwork = true
	AddOrUpdateDaemonPodTolerations(&spec)
	if len(spec.Tolerations) != 8 || spec.Tolerations[7].Key != v1.TaintNodeNetworkUnavailable {
		t.Errorf("tolerations on the host's network: %v", spec.Tolerations)
	}
}

func nodeAffinity(required *v1.NodeSelector, preferred ...v1.PreferredSchedulingTerm) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
	}}
}

func byName(names ...string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: names},
	}}}}
}

func TestReplaceNodeAffinity(t *testing.T) {
	preferred := v1.PreferredSchedulingTerm{Weight: 3}
	other := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{}, {}}}
	for name, tc := range map[string]struct{ given, want *v1.Affinity }{
		"none":               {nil, nodeAffinity(byName("n1"))},
		"no node affinity":   {&v1.Affinity{PodAffinity: &v1.PodAffinity{}}, &v1.Affinity{PodAffinity: &v1.PodAffinity{}, NodeAffinity: nodeAffinity(byName("n1")).NodeAffinity}},
		"required replaced":  {nodeAffinity(other), nodeAffinity(byName("n1"))},
		"preferences stay":   {nodeAffinity(other, preferred), nodeAffinity(byName("n1"), preferred)},
		"only a preference":  {nodeAffinity(nil, preferred), nodeAffinity(byName("n1"), preferred)},
		"bound to another":   {nodeAffinity(byName("n2")), nodeAffinity(byName("n1"))},
		"empty requirements": {nodeAffinity(&v1.NodeSelector{}), nodeAffinity(byName("n1"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ReplaceDaemonSetPodNodeNameNodeAffinity(tc.given, "n1")); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetTargetNodeName(t *testing.T) {
	pod := func(node string, affinity *v1.Affinity) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{NodeName: node, Affinity: affinity}}
	}
	notIn := byName("n1")
	notIn.NodeSelectorTerms[0].MatchFields[0].Operator = v1.NodeSelectorOpNotIn
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"on a node":          {pod("n1", nil), "n1"},
		"on it, bound to it": {pod("n1", nodeAffinity(byName("n1"))), "n1"},
		"bound to it":        {pod("", nodeAffinity(byName("n1"))), "n1"},
		"bound to several":   {pod("", nodeAffinity(byName("n1", "n2"))), ""},
		"bound away":         {pod("", nodeAffinity(notIn)), ""},
		"no terms":           {pod("", nodeAffinity(&v1.NodeSelector{})), ""},
		"not bound":          {pod("", nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := GetTargetNodeName(tc.pod)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestGetTemplateGeneration(t *testing.T) {
	ds := &apps.DaemonSet{}
	if g, err := GetTemplateGeneration(ds); g != nil || err != nil {
		t.Errorf("without: %v, %v", g, err)
	}
	ds.Annotations = map[string]string{apps.DeprecatedTemplateGeneration: "42"}
	if g, err := GetTemplateGeneration(ds); err != nil || g == nil || *g != 42 {
		t.Errorf("got %v, %v", g, err)
	}
	ds.Annotations[apps.DeprecatedTemplateGeneration] = "many"
	if _, err := GetTemplateGeneration(ds); err == nil {
		t.Error("no error")
	}
}
