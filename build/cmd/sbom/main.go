// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the SPDX document of a release, as JSON: hack/release.sh calls it.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spf13/cobra"

	"github.com/kcm-dev/kcm/build/sbom"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o sbom.Options
	var date string
	cmd := &cobra.Command{
		Use:           "sbom BINARY...",
		Short:         "Write what binaries are made of as an SPDX document; standard input is the output of go mod graph",
		Args:          cobra.MinimumNArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Date, err = time.Parse(time.RFC3339, date); err != nil {
				return fmt.Errorf("--date is %q, want a date such as 2026-01-02T15:04:05Z", date)
			}
			return write(o, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.Version, "version", "", "version of the release")
	cmd.Flags().StringVar(&o.Commit, "commit", "", "commit that the binaries were built from")
	cmd.Flags().StringVar(&date, "date", "", "date of the commit")
	for _, name := range []string{"version", "commit", "date"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func write(o sbom.Options, binaries []string, graph io.Reader, out io.Writer) error {
	lines, err := io.ReadAll(graph)
	if err != nil {
		return fmt.Errorf("reading the module graph: %w", err)
	}
	o.Graph = string(lines)
	for _, path := range binaries {
		b, err := sbom.ReadBinary(path)
		if err != nil {
			return err
		}
		o.Binaries = append(o.Binaries, b)
	}
	doc, err := sbom.Document(o)
	if err != nil {
		return err
	}
	return json.Write(doc, out, json.Indent("  "))
}
