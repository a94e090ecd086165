// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
)

// argumentErrors is all that is wrong with a command line. The command prints "Error: " before the
// first; each further one is a line like it.
type argumentErrors []string

func (e argumentErrors) Error() string { return strings.Join(e, "\nError: ") }

// parseArgs parses the command's flags. Unlike pflag it goes on after a mistake, so that a user
// who has several to mend learns of all of them: those that validate finds in what could be parsed
// are among them. Without a mistake validate is not called.
func parseArgs(cmd *cobra.Command, args []string, validate func() error) error {
	flags := cmd.Flags()
	// What pflag itself has to say is that a flag is deprecated.
	flags.SetOutput(cmd.ErrOrStderr())
	var problems argumentErrors
	var positional, failed []string
	for len(args) > 0 {
		n := flagLength(flags, args)
		if n == 0 {
			rest := args[:1]
			if args[0] == "--" {
				rest, args = args[1:], args[len(args)-1:]
			}
			positional = append(positional, rest...)
			args = args[1:]
			continue
		}
		if err := flags.Parse(args[:n]); err != nil {
			problems = append(problems, err.Error())
			failed = append(failed, flagOf(err))
			if isUnknown(err) && n < len(args) && !strings.HasPrefix(args[n], "-") && !strings.Contains(args[0], "=") {
				n++ // Most likely the unknown flag's value.
			}
		}
		args = args[n:]
	}
	if help, err := flags.GetBool("help"); err == nil && help {
		return pflag.ErrHelp
	}
	positional = slices.DeleteFunc(positional, func(arg string) bool { return arg == "" })
	if len(positional) > 0 {
		problems = append(problems, fmt.Sprintf("%q does not take any arguments, got %q", cmd.CommandPath(), positional))
	}
	if len(problems) == 0 {
		return nil
	}
	for _, problem := range distinct(utilerrors.NewAggregate([]error{validate()})) {
		// A flag that could not be parsed holds a value that nobody gave.
		if !slices.ContainsFunc(failed, func(flag string) bool { return mentions(problem.Error(), flag) }) {
			problems = append(problems, problem.Error())
		}
	}
	return problems
}

// flagOf returns the name of the flag whose value an error of pflag is about; "" when there is none.
func flagOf(err error) string {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return invalid.GetFlag().Name
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return missing.GetFlag().Name
	}
	return ""
}

// mentions tells whether a problem names the flag, and not only one that begins like it.
func mentions(problem, flag string) bool {
	if flag == "" {
		return false
	}
	return regexp.MustCompile(`--` + regexp.QuoteMeta(flag) + `($|[^a-z0-9-])`).MatchString(problem)
}

// flagLength returns how many of args the flag at their beginning takes, its value included; 0
// when there is none.
func flagLength(flags *pflag.FlagSet, args []string) int {
	arg := args[0]
	if len(arg) < 2 || arg[0] != '-' || arg == "--" {
		return 0
	}
	var f *pflag.Flag
	if name, long := strings.CutPrefix(arg, "--"); long {
		f = flags.Lookup(name)
	} else if len(arg) == 2 {
		f = flags.ShorthandLookup(arg[1:])
	}
	takesNext := f != nil && f.NoOptDefVal == ""
	if takesNext && len(args) > 1 {
		return 2
	}
	return 1
}

func isUnknown(err error) bool {
	_, ok := err.(*pflag.NotExistError)
	return ok
}

// notAvailableUsage tells readers of --help which controllers they can name but not get yet.
func notAvailableUsage() string {
	missing := ControllersNotAvailable()
	if len(missing) == 0 {
		return ""
	}
	return "\nNot available in this release: " + strings.Join(missing, ", ")
}

// warnOfUnusedFlags says which of the flags given belong to controllers that this release lacks.
func warnOfUnusedFlags(logger klog.Logger, s *options.KubeControllerManagerOptions) {
	missing := ControllersNotAvailable()
	unused := s.UnusedFlags(func(name string) bool { return !slices.Contains(missing, name) })
	if len(unused) > 0 {
		logger.Info("Warning: flags have no effect, since their controllers are not available in this release", "flags", unused)
	}
}
