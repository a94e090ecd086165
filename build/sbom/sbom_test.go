// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

const kcm = "github.com/kcm-dev/kcm"

func testOptions() Options {
	info := func(deps ...*debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: kcm, Version: "(devel)"}, Deps: deps}
	}
	cobra := &debug.Module{Path: "github.com/spf13/cobra", Version: "v1.10.2", Sum: "h1:cobra="}
	pflag := &debug.Module{Path: "github.com/spf13/pflag", Version: "v1.0.10", Sum: "h1:pflag="}
	staging := &debug.Module{Path: kcm + "/staging", Version: "(devel)"}
	forked := &debug.Module{Path: "example.com/forked", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:fork="}}
	return Options{
		Version: "v1.37.2+kcm.1",
		Commit:  "0123456789abcdef",
		Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Binaries: []Binary{
			{Path: "out/kcm-linux-amd64", Info: info(cobra, pflag, staging), SHA1: strings.Repeat("1", 40), SHA256: strings.Repeat("a", 64)},
			{Path: "out/kcm-linux-arm64", Info: info(cobra, pflag, staging, forked), SHA1: strings.Repeat("2", 40), SHA256: strings.Repeat("b", 64)},
		},
		Graph: strings.Join([]string{
			kcm + " github.com/spf13/cobra@v1.10.2",
			kcm + " " + kcm + "/staging@v0.0.0",
			kcm + " example.com/of-a-test@v1.0.0",
			kcm + "/staging github.com/spf13/cobra@v1.9.0",
			"github.com/spf13/cobra@v1.10.2 github.com/spf13/pflag@v1.0.9",
			"github.com/spf13/cobra@v1.9.0 " + kcm + "/staging@v0.0.0",
			"",
		}, "\n"),
	}
}

func mustDocument(t *testing.T, o Options) *v2_3.Document {
	t.Helper()
	doc, err := Document(o)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestModulesAndRelationships(t *testing.T) {
	doc := mustDocument(t, testOptions())
	var packages []string
	for _, p := range doc.Packages {
		packages = append(packages, p.PackageName+" "+p.PackageVersion+" "+p.PackageComment)
	}
	want := []string{
		"kube-controller-manager v1.37.2+kcm.1 ",
		"stdlib 1.26.8 ",
		"example.com/forked v1.0.1 go.sum: h1:fork=",
		"github.com/kcm-dev/kcm/staging v1.37.2+kcm.1 ",
		"github.com/spf13/cobra v1.10.2 go.sum: h1:cobra=",
		"github.com/spf13/pflag v1.0.10 go.sum: h1:pflag=",
	}
	if diff := cmp.Diff(want, packages); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	var relationships []string
	for _, r := range doc.Relationships {
		relationships = append(relationships, string(r.RefA.ElementRefID)+" "+r.Relationship+" "+string(r.RefB.ElementRefID))
	}
	want = []string{
		"DOCUMENT DESCRIBES Package-kube-controller-manager",
		"Package-kube-controller-manager CONTAINS File-kcm-2d-linux-2d-amd64",
		"Package-kube-controller-manager CONTAINS File-kcm-2d-linux-2d-arm64",
		"Package-kube-controller-manager DEPENDS_ON Module-stdlib",
		// Only replaced on one architecture, and in no graph: the product's.
		"Package-kube-controller-manager DEPENDS_ON Module-example.com-forked",
		"Package-kube-controller-manager DEPENDS_ON Module-github.com-kcm-2d-dev-kcm-staging",
		"Package-kube-controller-manager DEPENDS_ON Module-github.com-spf13-cobra",
		"Module-github.com-kcm-2d-dev-kcm-staging DEPENDS_ON Module-github.com-spf13-cobra",
		"Module-github.com-spf13-cobra DEPENDS_ON Module-github.com-spf13-pflag",
	}
	if diff := cmp.Diff(want, relationships); diff != "" {
		t.Errorf("relationships (-want +got):\n%s", diff)
	}
}

// What is written is what a reader of SPDX takes: all references lead somewhere, and the mandatory fields are there.
func TestDocumentIsValid(t *testing.T) {
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := json.Write(mustDocument(t, testOptions()), out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the second document differs")
	}
	doc, err := json.Read(&first)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	if doc.CreationInfo.Created != "2026-01-02T03:04:05Z" || doc.DataLicense != "CC0-1.0" {
		t.Errorf("created %s, license %s", doc.CreationInfo.Created, doc.DataLicense)
	}
	ids := map[string]bool{}
	for _, p := range doc.Packages {
		ids[string(p.PackageSPDXIdentifier)] = true
		if !slices.ContainsFunc(p.PackageExternalReferences, func(r *v2_3.PackageExternalReference) bool {
			return r.RefType == "purl" && strings.HasPrefix(r.Locator, "pkg:golang/") && !strings.Contains(r.Locator, "+")
		}) {
			t.Errorf("%s has no purl: %v", p.PackageName, p.PackageExternalReferences)
		}
		if p.PackageDownloadLocation == "" {
			t.Errorf("%s has no download location", p.PackageName)
		}
	}
	if len(ids) != len(doc.Packages) {
		t.Errorf("%d identifiers for %d packages", len(ids), len(doc.Packages))
	}
}

func TestBinariesThatDoNotBelongTogether(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"none":            {func(o *Options) { o.Binaries = nil }, "no binary"},
		"another program": {func(o *Options) { o.Binaries[1].Info.Main.Path = "example.com/x" }, "of one program"},
		"another Go":      {func(o *Options) { o.Binaries[1].Info.GoVersion = "go1.25.0" }, "was built by go1.25.0"},
		"another version": {func(o *Options) {
			o.Binaries[1].Info.Deps[0] = &debug.Module{Path: "github.com/spf13/cobra", Version: "v1.9.0"}
		},
			"has github.com/spf13/cobra v1.9.0, another binary has v1.10.2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions()
			c.change(&o)
			if _, err := Document(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestReadBinary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBinary(file); err == nil || !strings.Contains(err.Error(), "does not name its modules") {
		t.Errorf("a text file: %v", err)
	}
	if _, err := ReadBinary(file + ".missing"); err == nil {
		t.Error("a missing file was read")
	}
}
