// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Options are the inputs of a document.
type Options struct {
	// Version of the release, such as v1.37.2-kcm.1.
	Version string
	// Commit that the binaries were built from.
	Commit string
	// Date is the commit's.
	Date time.Time
	// Binaries of the release: at least one, all of one program.
	Binaries []Binary
	// Graph is the output of go mod graph.
	Graph string
}

// Binary is a file of the release.
type Binary struct {
	// Path is the file's; the document names its last part only.
	Path string
	Info *debug.BuildInfo
	SHA1 string
	// SHA256 is in hexadecimal, as SHA1.
	SHA256 string
}

const (
	productName = "kube-controller-manager"
	productID   = common.ElementID("Package-" + productName)
	repository  = "https://github.com/kcm-dev/kcm"
)

// Document returns the document, sorted.
func Document(o Options) (*v2_3.Document, error) {
	if len(o.Binaries) == 0 {
		return nil, errors.New("no binary is given")
	}
	modules, goVersion, err := modulesOf(o)
	if err != nil {
		return nil, err
	}
	doc := &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      productName + "-" + o.Version,
		DocumentNamespace: fmt.Sprintf("%s/releases/%s/sbom/%s", repository, o.Version, o.Binaries[0].SHA256),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: repository + "/build/sbom"}},
			Created:  o.Date.UTC().Format(time.RFC3339),
		},
		Packages:      []*v2_3.Package{productPackage(o)},
		Relationships: []*v2_3.Relationship{relationship("DOCUMENT", "DESCRIBES", productID)},
	}
	for _, b := range o.Binaries {
		f := binaryFile(b)
		doc.Files = append(doc.Files, f)
		doc.Relationships = append(doc.Relationships, relationship(productID, "CONTAINS", f.FileSPDXIdentifier))
	}
	standard := modulePackage("stdlib", strings.TrimPrefix(goVersion, "go"), "")
	doc.Packages = append(doc.Packages, standard)
	doc.Relationships = append(doc.Relationships, relationship(productID, "DEPENDS_ON", standard.PackageSPDXIdentifier))
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if path != mainModule(o) {
			doc.Packages = append(doc.Packages, modulePackage(path, modules[path].version, modules[path].sum))
		}
	}
	doc.Relationships = append(doc.Relationships, requirements(o, modules)...)
	return doc, nil
}

// module is one that is in a binary.
type module struct {
	version string
	sum     string
}

func mainModule(o Options) string { return o.Binaries[0].Info.Main.Path }

// modulesOf merges the binaries' modules: on one architecture there may be more than on another, but never another
// version.
func modulesOf(o Options) (modules map[string]module, goVersion string, err error) {
	goVersion = o.Binaries[0].Info.GoVersion
	modules = map[string]module{}
	for _, b := range o.Binaries {
		if b.Info.Main.Path != mainModule(o) {
			return nil, "", fmt.Errorf("%s is of the module %s, and %s of %s: give binaries of one program", b.Path, b.Info.Main.Path, o.Binaries[0].Path, mainModule(o))
		}
		if b.Info.GoVersion != goVersion {
			return nil, "", fmt.Errorf("%s was built by %s, and %s by %s", b.Path, b.Info.GoVersion, o.Binaries[0].Path, goVersion)
		}
		for _, d := range append([]*debug.Module{&b.Info.Main}, b.Info.Deps...) {
			m := selected(d, o.Version)
			if other, ok := modules[d.Path]; ok && other != m {
				return nil, "", fmt.Errorf("%s has %s %s, another binary has %s", b.Path, d.Path, m.version, other.version)
			}
			modules[d.Path] = m
		}
	}
	return modules, goVersion, nil
}

// selected is what is linked for a required module. The product's own modules have the release's version.
func selected(d *debug.Module, release string) module {
	if d.Replace != nil {
		d = d.Replace
	}
	if d.Version == "" || d.Version == "(devel)" {
		return module{version: release}
	}
	return module{version: d.Version, sum: d.Sum}
}

// requirements turns the lines "module@version required@version" of go mod graph into relationships of what is linked.
// What only an older version required is left out; what nothing seems to require belongs to the product.
func requirements(o Options, modules map[string]module) []*v2_3.Relationship {
	edges := map[[2]string]bool{}
	required := map[string]bool{mainModule(o): true}
	for line := range strings.Lines(o.Graph) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " ")
		fromPath, fromVersion, _ := strings.Cut(from, "@")
		toPath, _, _ := strings.Cut(to, "@")
		requirer, linked := modules[fromPath]
		if _, toLinked := modules[toPath]; !ok || !linked || !toLinked || fromVersion != "" && fromVersion != requirer.version {
			continue
		}
		edges[[2]string{fromPath, toPath}] = true
		required[toPath] = true
	}
	for path := range modules {
		if !required[path] {
			edges[[2]string{mainModule(o), path}] = true
		}
	}
	var out []*v2_3.Relationship
	for _, edge := range slices.SortedFunc(maps.Keys(edges), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		ids := [2]common.ElementID{}
		for i, path := range edge {
			ids[i] = moduleID(path)
			if path == mainModule(o) {
				ids[i] = productID
			}
		}
		out = append(out, relationship(ids[0], "DEPENDS_ON", ids[1]))
	}
	return out
}

func productPackage(o Options) *v2_3.Package {
	return &v2_3.Package{
		PackageName:               productName,
		PackageSPDXIdentifier:     productID,
		PackageVersion:            o.Version,
		PackageDownloadLocation:   "git+" + repository + "@" + o.Commit,
		PackageLicenseConcluded:   "Apache-2.0",
		PackageLicenseDeclared:    "Apache-2.0",
		PackageCopyrightText:      "Copyright The kcm Authors.",
		PackageHomePage:           repository,
		PackageExternalReferences: []*v2_3.PackageExternalReference{purl(mainModule(o), o.Version)},
		PrimaryPackagePurpose:     "APPLICATION",
	}
}

func modulePackage(path, version, sum string) *v2_3.Package {
	p := &v2_3.Package{
		PackageName:               path,
		PackageSPDXIdentifier:     moduleID(path),
		PackageVersion:            version,
		PackageDownloadLocation:   "NOASSERTION",
		PackageLicenseConcluded:   "NOASSERTION",
		PackageLicenseDeclared:    "NOASSERTION",
		PackageCopyrightText:      "NOASSERTION",
		PackageExternalReferences: []*v2_3.PackageExternalReference{purl(path, version)},
		PrimaryPackagePurpose:     "LIBRARY",
	}
	if sum != "" {
		p.PackageComment = "go.sum: " + sum
	}
	return p
}

func binaryFile(b Binary) *v2_3.File {
	name := filepath.Base(b.Path)
	return &v2_3.File{
		FileName:           "./" + name,
		FileSPDXIdentifier: common.ElementID("File-" + identifier(name)),
		FileTypes:          []string{"BINARY"},
		Checksums: []common.Checksum{
			{Algorithm: common.SHA1, Value: b.SHA1},
			{Algorithm: common.SHA256, Value: b.SHA256},
		},
		LicenseConcluded:   "NOASSERTION",
		LicenseInfoInFiles: []string{"NOASSERTION"},
		FileCopyrightText:  "NOASSERTION",
	}
}

func purl(path, version string) *v2_3.PackageExternalReference {
	// A "+" of a version is a space to readers that take the locator for a query.
	return &v2_3.PackageExternalReference{
		Category: common.CategoryPackageManager,
		RefType:  common.TypePackageManagerPURL,
		Locator:  "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
	}
}

func relationship(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA:         common.DocElementID{ElementRefID: from},
		RefB:         common.DocElementID{ElementRefID: to},
		Relationship: kind,
	}
}

func moduleID(path string) common.ElementID {
	return common.ElementID("Module-" + identifier(path))
}

var notInIdentifier = regexp.MustCompile(`[^A-Za-z0-9.]`)

// identifier maps a name to what SPDX allows in identifiers. Two names stay two: "-" is only what was none.
func identifier(name string) string {
	return notInIdentifier.ReplaceAllStringFunc(name, func(s string) string {
		if s == "/" {
			return "-"
		}
		return fmt.Sprintf("-%x-", s)
	})
}
