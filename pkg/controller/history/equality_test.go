// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

func rawRevision(data string) *apps.ControllerRevision {
	return &apps.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(data)}}
}

func TestSortControllerRevisions(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	revision := func(name string, number int64, age int) *apps.ControllerRevision {
		return &apps.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(age) * time.Second))},
			Revision:   number,
		}
	}
	sorted := []*apps.ControllerRevision{
		revision("z", 1, 9), revision("y", 2, 1), revision("a", 2, 2), revision("b", 2, 2), revision("c", 10, 0),
	}
	rapid.Check(t, func(t *rapid.T) {
		shuffled := rapid.Permutation(sorted).Draw(t, "order")
		SortControllerRevisions(shuffled)
		if !slices.Equal(shuffled, sorted) {
			t.Fatalf("sorted to %v", names(shuffled))
		}
	})
	if next := NextRevision(sorted); next != 11 {
		t.Errorf("next revision %d, want 11", next)
	}
	if next := NextRevision(nil); next != 1 {
		t.Errorf("first revision %d, want 1", next)
	}
}

func TestEqualRevision(t *testing.T) {
	object := func(name string) *apps.ControllerRevision {
		return &apps.ControllerRevision{Data: runtime.RawExtension{Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}}
	}
	for _, test := range []struct {
		name string
		a, b *apps.ControllerRevision
		want bool
	}{
		{"none", nil, nil, true},
		{"one", rawRevision("{}"), nil, false},
		{"same bytes", rawRevision(`{"a":1}`), rawRevision(`{"a":1}`), true},
		{"no JSON, same bytes", rawRevision("x"), rawRevision("x"), true},
		{"no JSON", rawRevision("x"), rawRevision("y"), false},
		{"empty", rawRevision(""), rawRevision("{}"), false},
		{"other order of keys", rawRevision(`{"a":1,"b":{"c":[1,2],"d":"e"}}`), rawRevision(`{ "b": {"d":"e","c":[1,2]}, "a":1 }`), true},
		{"other order in a list", rawRevision(`{"a":[1,2]}`), rawRevision(`{"a":[2,1]}`), false},
		{"large numbers are not rounded", rawRevision(`{"a":9007199254740993,"b":1}`), rawRevision(`{"b":1,"a":9007199254740992}`), false},
		{"other value", rawRevision(`{"a":1}`), rawRevision(`{"a":2}`), false},
		{"same object", object("p"), object("p"), true},
		{"other object", object("p"), object("q"), false},
	} {
		if got := EqualRevision(test.a, test.b); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
		if got := EqualRevision(test.b, test.a); got != test.want {
			t.Errorf("%s, turned around: %v", test.name, got)
		}
	}
}

func TestFindEqualRevisions(t *testing.T) {
	a, b, c := rawRevision(`{"a":1}`), rawRevision(`{"a":2}`), rawRevision(`{"a":1}`)
	if got := FindEqualRevisions([]*apps.ControllerRevision{a, b, c}, rawRevision(`{"a":1}`)); !slices.Equal(got, []*apps.ControllerRevision{a, c}) {
		t.Errorf("found %d", len(got))
	}
	if got := FindEqualRevisions(nil, a); len(got) != 0 {
		t.Errorf("found %d in none", len(got))
	}
}

// bareTemplate is what a user writes: nothing of it is a default.
func bareTemplate() *v1.PodTemplateSpec {
	return &v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{
			ServiceAccountName: "sa",
			InitContainers:     []v1.Container{{Name: "i", Image: "registry:5000/i"}},
			Containers: []v1.Container{{
				Name: "c", Image: "nginx:1",
				Ports:         []v1.ContainerPort{{ContainerPort: 80}},
				Env:           []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
				Resources:     v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}},
				LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{}}},
				StartupProbe:  &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: 1}}},
				Lifecycle:     &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{}}},
			}},
			Volumes: []v1.Volume{
				{Name: "none"},
				{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s"}}},
				{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
				{Name: "down", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{FieldRef: &v1.ObjectFieldSelector{}}}}}},
				{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
				{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{}}}}}},
				{Name: "eph", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}}},
				{Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "a@sha256:b"}}},
			},
		},
	}
}

func revisionOf(t *testing.T, template *v1.PodTemplateSpec) *apps.ControllerRevision {
	t.Helper()
	patch, err := TemplatePatch(template)
	if err != nil {
		t.Fatal(err)
	}
	return &apps.ControllerRevision{Data: runtime.RawExtension{Raw: patch}}
}

func TestSameTemplate(t *testing.T) {
	defaulted := bareTemplate()
	setTemplateDefaults(defaulted)
	for _, revised := range []*v1.PodTemplateSpec{bareTemplate(), defaulted} {
		for _, wanted := range []*v1.PodTemplateSpec{bareTemplate(), defaulted} {
			before := wanted.DeepCopy()
			if !SameTemplate(revisionOf(t, revised), wanted) {
				t.Errorf("a default makes a difference")
			}
			if !same(t, before, wanted) {
				t.Errorf("the template was changed")
			}
		}
	}

	// As upstream wrote it up to 1.33.
	old := revisionOf(t, defaulted)
	old.Data.Raw = []byte(strings.Replace(string(old.Data.Raw), `"metadata":{"labels"`, `"metadata":{"creationTimestamp":null,"labels"`, 1))
	if EqualRevision(old, revisionOf(t, defaulted)) {
		t.Fatal("the old encoding is the new one")
	}
	if !SameTemplate(old, defaulted) {
		t.Error("an empty creation timestamp makes a difference")
	}

	for name, change := range map[string]func(*v1.PodTemplateSpec){
		"image":      func(p *v1.PodTemplateSpec) { p.Spec.Containers[0].Image = "nginx:2" },
		"label":      func(p *v1.PodTemplateSpec) { p.Labels["x"] = "y" },
		"annotation": func(p *v1.PodTemplateSpec) { p.Annotations = map[string]string{"a": "b"} },
		"policy":     func(p *v1.PodTemplateSpec) { p.Spec.DNSPolicy = v1.DNSDefault },
		"grace":      func(p *v1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = new(int64(0)) },
		"request": func(p *v1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("2")
		},
		"volume":         func(p *v1.PodTemplateSpec) { p.Spec.Volumes = p.Spec.Volumes[1:] },
		"host network":   func(p *v1.PodTemplateSpec) { p.Spec.HostNetwork = true },
		"pull of no tag": func(p *v1.PodTemplateSpec) { p.Spec.InitContainers[0].ImagePullPolicy = v1.PullNever },
	} {
		changed := defaulted.DeepCopy()
		change(changed)
		if SameTemplate(revisionOf(t, defaulted), changed) {
			t.Errorf("a changed %s makes no difference", name)
		}
	}
	for _, malformed := range []string{"", "{", `{"spec":{}}`, `{"spec":{"template":[]}}`} {
		if SameTemplate(rawRevision(malformed), defaulted) {
			t.Errorf("%q holds the template", malformed)
		}
	}
}

func TestSameTemplateVectors(t *testing.T) {
	for _, v := range vectors(t) {
		revision := &apps.ControllerRevision{Data: runtime.RawExtension{Raw: v.Data}}
		for _, w := range vectors(t) {
			if got, want := SameTemplate(revision, &w.Template), same(t, &v.Template, &w.Template); got != want {
				t.Errorf("%s and %s: %v", v.Name, w.Name, got)
			}
		}
	}
}

func TestIsLatest(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx": true, "nginx:latest": true, "nginx:1": false, "host:5000/nginx": true, "host:5000/a/nginx:1": false, "nginx@sha256:0": false,
	} {
		if got := isLatest(image); got != want {
			t.Errorf("%s: %v", image, got)
		}
	}
}

func same(t *testing.T, a, b *v1.PodTemplateSpec) bool {
	t.Helper()
	encoded := func(p *v1.PodTemplateSpec) string {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return encoded(a) == encoded(b)
}
