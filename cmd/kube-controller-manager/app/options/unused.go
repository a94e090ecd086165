// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	"github.com/spf13/pflag"
)

// UnusedFlags returns the names, sorted and with their dashes, of the flags on
// the command line that have no effect because none of the controllers that
// read them is in this build.
func (s *KubeControllerManagerOptions) UnusedFlags(built func(controllerName string) bool) []string {
	if s.ParsedFlags == nil {
		return nil
	}
	var unused []string
	controllers := map[string]bool{}
	for _, section := range s.sections() {
		controllers[section.controller] = true
	}
	for title, fs := range s.ParsedFlags.FlagSets {
		fs.VisitAll(func(flag *pflag.Flag) {
			if !flag.Changed {
				return
			}
			users := flagUsers[flag.Name]
			if users == nil && controllers[title] {
				users = []string{title}
			}
			if users != nil && !slices.ContainsFunc(users, built) {
				unused = append(unused, "--"+flag.Name)
			}
		})
	}
	slices.Sort(unused)
	return unused
}
