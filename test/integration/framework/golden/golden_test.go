// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kcm-dev/kcm/test/integration/framework/golden"
)

// run is what a run leaves behind: a ReplicaSet with two pods, whose names, UIDs and times are the run's own.
func run(t *testing.T, seed string, image string) []unstructured.Unstructured {
	t.Helper()
	uid := func(n int) string { return fmt.Sprintf("%s0000000-0000-0000-0000-00000000000%d", seed, n) }
	pod := func(n int, suffix, ip, created, phase string) string {
		return `
kind: Pod
metadata:
  name: web-` + seed + suffix + `
  generateName: web-
  uid: ` + uid(n) + `
  resourceVersion: "` + seed + `"
  creationTimestamp: "` + created + `"
  managedFields: [{manager: ` + seed + `}]
  ownerReferences: [{kind: ReplicaSet, name: web, uid: ` + uid(1) + `}, {kind: Other, name: x, uid: ` + uid(9) + `}]
spec:
  image: ` + image + `
  volumes: [{name: kube-api-access-` + seed + `bcde}]
status: {phase: ` + phase + `, podIP: ` + ip + `, startTime: "` + created + `"}
`
	}
	documents := []string{
		pod(2, "aaaa", "10.0.0."+seed, "2026-01-0"+seed+"T00:00:02Z", "Pending"),
		pod(3, "bbbb", "10.0.1."+seed, "2026-01-0"+seed+"T00:00:01Z", "Running"),
		`
kind: ReplicaSet
metadata: {name: web, uid: ` + uid(1) + `}
status: {message: created web-` + seed + `aaaa at 10.0.0.` + seed + `}
`,
	}
	var objects []unstructured.Unstructured
	for _, d := range documents {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(d), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func TestDiffOfTwoRuns(t *testing.T) {
	if diff := golden.Diff(run(t, "1", "x"), run(t, "2", "x")); diff != "" {
		t.Errorf("two runs that left the same differ:\n%s", diff)
	}
	if diff := golden.Diff(run(t, "1", "x"), run(t, "2", "other")); !strings.Contains(diff, "image: other") {
		t.Errorf("a real difference is not shown:\n%s", diff)
	}
}

func TestNormalizeNamesThings(t *testing.T) {
	got := golden.Document(golden.Normalize(run(t, "1", "x")))
	for _, want := range []string{
		"name: web-<2>", // the younger pod
		"uid: <uid of ReplicaSet web>",
		"uid: <uid>",
		"message: created web-<2> at <podIP>",
		"startTime: <time>",
		"name: kube-api-access-<>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from:\n%s", want, got)
		}
	}
	for _, word := range []string{"resourceVersion", "managedFields", "creationTimestamp", "0000-0000"} {
		if strings.Contains(got, word) {
			t.Errorf("%q is left in:\n%s", word, got)
		}
	}
}

func TestNormalizeLeavesItsInputAlone(t *testing.T) {
	objects := run(t, "1", "x")
	before := golden.Document(objects)
	golden.Normalize(objects)
	if after := golden.Document(objects); after != before {
		t.Errorf("input was changed:\n%s", after)
	}
}

func TestCheckWritesAndCompares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "want.yaml")
	t.Setenv("KCM_UPDATE_GOLDEN", "1")
	golden.Check(t, path, run(t, "1", "x"))
	t.Setenv("KCM_UPDATE_GOLDEN", "")
	golden.Check(t, path, run(t, "2", "x"))
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed := &recorder{TB: t}
	golden.Check(failed, path, run(t, "2", "x"))
	if !failed.failed {
		t.Error("a difference was not reported")
	}
}

// recorder takes the failures of a check that should fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
