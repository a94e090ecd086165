// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the tables of docs/flags.md anew")

const (
	flagsDoc    = "../../../../docs/flags.md"
	tablesStart = "<!-- tables start: written by go test ./cmd/kube-controller-manager/app/options -run TestFlagsDoc -update -->\n"
)

// libraryHelp are the sections and flags whose help is a library's: --help has
// it, the document only lists them.
func libraryHelp(section, flag string) bool {
	return slices.Contains([]string{"secure serving", "authentication", "authorization", "metrics", "logs"}, section) ||
		slices.Contains([]string{"emulated-version", "feature-gates", "min-compatibility-version"}, flag)
}

// flagTables writes a table for each section.
func flagTables(s *KubeControllerManagerOptions) string {
	var doc strings.Builder
	fss := s.Flags(nil, nil, nil)
	for _, section := range fss.Order {
		fmt.Fprintf(&doc, "\n### %s\n\n| flag | type | default | meaning |\n|---|---|---|---|\n", section)
		fss.FlagSets[section].VisitAll(func(f *pflag.Flag) {
			typ, usage := pflag.UnquoteUsage(f)
			if typ == "" {
				typ = f.Value.Type()
			}
			usage, _, _ = strings.Cut(usage, "\n")
			if libraryHelp(section, f.Name) {
				usage = ""
			}
			if f.Deprecated != "" {
				usage = strings.TrimSpace("Deprecated: " + f.Deprecated + ". " + usage)
			}
			def := f.DefValue
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(&doc, "| `--%s` | %s | %s | %s |\n", f.Name, typ, def, strings.ReplaceAll(usage, "|", "\\|"))
		})
	}
	return doc.String()
}

func TestFlagsDoc(t *testing.T) {
	data, err := os.ReadFile(flagsDoc)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("docs/flags.md is not part of the sandbox that this test runs in")
	}
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(data), tablesStart)
	if !found {
		t.Fatalf("no line %q", tablesStart)
	}
	want := flagTables(newTestOptions(t))
	if *update {
		if err := os.WriteFile(flagsDoc, []byte(prose+tablesStart+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("docs/flags.md is out of date, run this test with -update (-want +got):\n%s", diff)
	}
}
