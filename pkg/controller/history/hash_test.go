// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// vector is a revision that upstream's manager made: the pod template of its set as the
// API server stored it, and what came of it.
type vector struct {
	Set, Kind, Name string
	Template        v1.PodTemplateSpec
	Labels          map[string]string
	Data            json.RawMessage
}

func vectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/revisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 18 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

func TestRevisionVectors(t *testing.T) {
	for _, v := range vectors(t) {
		patch, err := TemplatePatch(&v.Template)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, v.Data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(patch, want.Bytes()) {
			t.Errorf("%s: data\n%s, want\n%s", v.Name, patch, want.Bytes())
		}
		if v.Kind != "statefulset" {
			continue // daemon sets hash otherwise
		}
		set := &apps.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: v.Set, UID: "u"}}
		made := NewControllerRevision(set, parentKind, v.Template.Labels, runtime.RawExtension{Raw: patch}, 1, new(int32(0)))
		if made.Name != v.Name {
			t.Errorf("name %s, want %s", made.Name, v.Name)
		}
		if !maps.Equal(made.Labels, v.Labels) {
			t.Errorf("%s: labels %v, want %v", v.Name, made.Labels, v.Labels)
		}
		if owner := metav1.GetControllerOf(made); owner == nil || owner.UID != "u" || owner.Kind != "StatefulSet" {
			t.Errorf("%s: owned by %v", v.Name, owner)
		}
	}
}

func TestTemplatePatchNumbers(t *testing.T) {
	template := podTemplate("i:1")
	template.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1000660000))}
	patch, err := TemplatePatch(template)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(patch, []byte(`"runAsUser":1000660000}`)) {
		t.Errorf("a large number is written in another way: %s", patch)
	}
}

func TestControllerRevisionName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, test := range []struct{ prefix, want string }{
		{"web", "web-h"},
		{long[:223], long[:223] + "-h"},
		{long, long[:223] + "-h"},
	} {
		if got := ControllerRevisionName(test.prefix, "h"); got != test.want {
			t.Errorf("prefix of %d: %s", len(test.prefix), got)
		}
	}
}

func TestHashControllerRevision(t *testing.T) {
	raw := &apps.ControllerRevision{Data: runtime.RawExtension{Raw: []byte("a")}}
	object := &apps.ControllerRevision{Data: runtime.RawExtension{Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}}}
	other := &apps.ControllerRevision{Data: runtime.RawExtension{Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q"}}}}
	hashes := map[string]string{}
	for name, hash := range map[string]string{
		"raw":               HashControllerRevision(raw, nil),
		"raw, collision 0":  HashControllerRevision(raw, new(int32(0))),
		"raw, collision 1":  HashControllerRevision(raw, new(int32(1))),
		"raw, collision -1": HashControllerRevision(raw, new(int32(-1))),
		"object":            HashControllerRevision(object, nil),
		"other object":      HashControllerRevision(other, nil),
	} {
		if same, ok := hashes[hash]; ok {
			t.Errorf("%s and %s have the same hash %s", name, same, hash)
		}
		hashes[hash] = name
	}
}
