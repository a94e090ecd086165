// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/controller-manager/config/v1alpha1"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "migration.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const body = `
leaderName: x
controllerLeaders:
- name: a
  component: "*"
- name: b
  component: kube-controller-manager
`

func header(version string) string {
	return "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/" + version
}

func TestRead(t *testing.T) {
	leaders := []v1alpha1.ControllerLeaderConfiguration{{Name: "a", Component: "*"}, {Name: "b", Component: "kube-controller-manager"}}
	for _, tc := range []struct {
		name, content string
		lock          string // of the result
		wantErr       string
	}{
		{"v1alpha1", header("v1alpha1") + body + "resourceLock: endpoints", "endpoints", ""},
		{"v1beta1", header("v1beta1") + body + "resourceLock: leases", "leases", ""},
		{"v1beta1 without a lock is read as it is", header("v1beta1") + body, "", ""},
		{"v1 locks by a lease", header("v1") + body, "leases", ""},
		{"v1 knows no resourceLock", header("v1") + body + "resourceLock: leases", "", `strict decoding error: unknown field "resourceLock"`},
		{"unknown field", header("v1alpha1") + body + "foo: 1", "", `strict decoding error: unknown field "foo"`},
		{"repeated field", header("v1") + body + "leaderName: y", "", "leaderName"},
		{"unknown version", header("v2") + body, "", `no kind "LeaderMigrationConfiguration" is registered for version "controllermanager.config.k8s.io/v2"`},
		{"another kind", "kind: Pod\napiVersion: v1", "", `no kind "Pod" is registered for version "v1"`},
		{"the internal version", header("__internal") + "\nLeaderName: x", "", "v1alpha1, v1beta1 or v1"},
		{"a list", "- a", "", "cannot unmarshal"},
		{"empty", "", "", "Object 'Kind' is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := write(t, tc.content)
			got, err := ReadLeaderMigrationConfiguration(path)
			if tc.wantErr != "" {
				prefix := `unable to parse leader migration configuration from "` + path + `": `
				if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %s…%s", err, prefix, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := &v1alpha1.LeaderMigrationConfiguration{LeaderName: "x", ResourceLock: tc.lock, ControllerLeaders: leaders}
			got.TypeMeta = want.TypeMeta
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := ReadLeaderMigrationConfiguration("/nowhere/x.yaml"); err == nil || err.Error() != `unable to read leader migration configuration from "/nowhere/x.yaml": open /nowhere/x.yaml: no such file or directory` {
		t.Errorf("missing file: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.LeaderMigrationConfiguration)
		want   []string
	}{
		{"default", func(*v1alpha1.LeaderMigrationConfiguration) {}, nil},
		{"endpoints", func(c *v1alpha1.LeaderMigrationConfiguration) { c.ResourceLock = "endpoints" }, nil},
		{"no controllers", func(c *v1alpha1.LeaderMigrationConfiguration) { c.ControllerLeaders = nil }, nil},
		{"nothing set", func(c *v1alpha1.LeaderMigrationConfiguration) {
			*c = v1alpha1.LeaderMigrationConfiguration{ControllerLeaders: []v1alpha1.ControllerLeaderConfiguration{{}}}
		}, []string{
			"leaderName: Required value: leaderName must be set for LeaderMigrationConfiguration",
			`resourceLock: Invalid value: "": resource Lock must be one of 'leases' or 'endpoints'`,
			"controllerLeaders[0].component: Required value: component must be set",
			"controllerLeaders[0].name: Required value: name must be set",
		}},
		{"another lock", func(c *v1alpha1.LeaderMigrationConfiguration) { c.ResourceLock = "configmaps" },
			[]string{`resourceLock: Invalid value: "configmaps": resource Lock must be one of 'leases' or 'endpoints'`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := DefaultLeaderMigrationConfiguration()
			tc.change(c)
			var got []string
			for _, problem := range ValidateLeaderMigrationConfiguration(c) {
				got = append(got, problem.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	want := &v1alpha1.LeaderMigrationConfiguration{
		LeaderName: "cloud-provider-extraction-migration", ResourceLock: "leases",
		ControllerLeaders: []v1alpha1.ControllerLeaderConfiguration{
			{Name: "route-controller", Component: "*"}, {Name: "service-controller", Component: "*"}, {Name: "cloud-node-lifecycle-controller", Component: "*"},
		},
	}
	if diff := cmp.Diff(want, DefaultLeaderMigrationConfiguration()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
