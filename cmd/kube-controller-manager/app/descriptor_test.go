// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// controllerFacts is a line of testdata/controllers.tsv.
type controllerFacts struct {
	Name    string
	Aliases string
	Default string
	Gates   string
}

func readFacts(t *testing.T) []controllerFacts {
	t.Helper()
	data, err := os.ReadFile("testdata/controllers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var facts []controllerFacts
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || f[0] == "name" {
			continue
		}
		facts = append(facts, controllerFacts{Name: f[0], Aliases: f[1], Default: f[2], Gates: f[3]})
	}
	return facts
}

func TestDescriptorTable(t *testing.T) {
	want := readFacts(t)
	if len(want) != 49 {
		t.Fatalf("testdata lists %d controllers, want 49", len(want))
	}
	orDash := func(list []string) string {
		if len(list) == 0 {
			return "-"
		}
		return strings.Join(list, ",")
	}
	var got []controllerFacts
	for _, d := range NewControllerDescriptors() {
		var gates []string
		for _, gate := range d.FeatureGates {
			gates = append(gates, string(gate))
		}
		f := controllerFacts{Name: d.Name, Aliases: orDash(d.Aliases), Default: "on", Gates: orDash(gates)}
		if d.DisabledByDefault {
			f.Default = "off"
		}
		got = append(got, f)
	}
	byName := func(a, b controllerFacts) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("descriptor table differs from upstream's (-want +got):\n%s", diff)
	}
}

func TestDescriptorNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, d := range NewControllerDescriptors() {
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			if owner, ok := seen[name]; ok {
				t.Errorf("%q names both %s and %s", name, owner, d.Name)
			}
			seen[name] = d.Name
		}
	}
}

func TestOnlyTheTokenControllerIsSpecial(t *testing.T) {
	for i, d := range NewControllerDescriptors() {
		if d.SpecialHandling != (d.Name == "serviceaccount-token-controller") {
			t.Errorf("%s (number %d): special handling = %t", d.Name, i, d.SpecialHandling)
		}
	}
}

func TestWatchedResourcesHaveTypedInformers(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for _, d := range NewControllerDescriptors() {
		if watches := len(d.Watches) > 0 || d.Discovers != nil; d.Available() != watches {
			t.Errorf("%s: available = %t, but watches %v", d.Name, d.Available(), d.Watches)
		}
		for _, gvr := range d.Watches {
			if _, err := factory.ForResource(gvr); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	}
}

func TestNameLists(t *testing.T) {
	if got, want := ControllersDisabledByDefault(), []string{"bootstrap-signer-controller", "selinux-warning-controller", "token-cleaner-controller"}; !slices.Equal(got, want) {
		t.Errorf("ControllersDisabledByDefault() = %v, want %v", got, want)
	}
	known := KnownControllers()
	if len(known) != 49 || !slices.IsSorted(known) {
		t.Errorf("KnownControllers() has %d names, sorted = %t; want 49, sorted", len(known), slices.IsSorted(known))
	}
	for alias, name := range ControllerAliases() {
		if !slices.Contains(known, name) {
			t.Errorf("alias %q stands for %q, which is not known", alias, name)
		}
	}
	if got := ControllerAliases()["svm"]; got != "storage-version-migrator-controller" {
		t.Errorf(`ControllerAliases()["svm"] = %q`, got)
	}
}
