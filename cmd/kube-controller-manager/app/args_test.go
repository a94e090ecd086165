// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestParseArgs(t *testing.T) {
	tests := []struct {
		name string
		args []string
		// set is what the flags are afterwards: name, wait, controllers, on, v.
		set    []string
		errors []string
	}{
		{name: "nothing", set: []string{"", "0s", "", "false", "0"}},
		{name: "both ways to give a value", args: []string{"--name=a", "--wait", "3s", "--on", "-v", "4"}, set: []string{"a", "3s", "", "true", "4"}},
		{name: "short with its value attached", args: []string{"-v=4", "--name", "-x"}, set: []string{"-x", "0s", "", "false", "4"}},
		{name: "a list given twice", args: []string{"--controllers=a,b", "--controllers=c"}, set: []string{"", "0s", "a,b,c", "false", "0"}},
		{name: "empty positional arguments are nothing", args: []string{"", "--name=a", ""}, set: []string{"a", "0s", "", "false", "0"}},
		{name: "a switch does not take the next argument", args: []string{"--on", "false"}, errors: []string{`"kcm" does not take any arguments, got ["false"]`}},
		{name: "unknown flag", args: []string{"--nmae=a"}, errors: []string{"unknown flag: --nmae"}},
		{name: "unknown flag with its value apart", args: []string{"--nmae", "a", "--on"}, errors: []string{"unknown flag: --nmae"}},
		{name: "unknown short flag", args: []string{"-q"}, errors: []string{"unknown shorthand flag: 'q' in -q"}},
		{name: "no value", args: []string{"--name"}, errors: []string{"flag needs an argument: --name"}},
		{name: "bad value", args: []string{"--wait=soon"}, errors: []string{`invalid argument "soon" for "--wait" flag: time: invalid duration "soon"`}},
		{name: "after --", args: []string{"--", "--name=a"}, errors: []string{`"kcm" does not take any arguments, got ["--name=a"]`}},
		{name: "everything at once", args: []string{"--wait=soon", "x", "--nmae=a", "-v=many", "y"}, errors: []string{
			`invalid argument "soon" for "--wait" flag: time: invalid duration "soon"`,
			"unknown flag: --nmae",
			`invalid argument "many" for "-v, --v" flag: strconv.ParseInt: parsing "many": invalid syntax`,
			`"kcm" does not take any arguments, got ["x" "y"]`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd := &cobra.Command{Use: "kcm"}
			flags := cmd.Flags()
			name := flags.String("name", "", "")
			wait := flags.Duration("wait", 0, "")
			controllers := flags.StringSlice("controllers", nil, "")
			flags.Bool("on", false, "")
			flags.IntP("v", "v", 0, "")

			err := parseArgs(cmd, test.args, func() error { return nil })
			if len(test.errors) > 0 {
				if want := strings.Join(test.errors, "\nError: "); err == nil || err.Error() != want {
					t.Errorf("error:\n%v\nwant:\n%s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{*name, (*wait).Round(time.Second).String(), strings.Join(*controllers, ","), flags.Lookup("on").Value.String(), flags.Lookup("v").Value.String()}
			if diff := cmp.Diff(test.set, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseArgsHelpWinsOverMistakes(t *testing.T) {
	cmd := &cobra.Command{Use: "kcm"}
	cmd.Flags().BoolP("help", "h", false, "")
	if err := parseArgs(cmd, []string{"--nmae", "-h"}, func() error { return errors.New("also wrong") }); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("parseArgs() = %v, want %v", err, pflag.ErrHelp)
	}
}

func TestParseArgsGoesOnToValidateAfterAMistake(t *testing.T) {
	newCommand := func() *cobra.Command {
		cmd := &cobra.Command{Use: "kcm"}
		cmd.Flags().Duration("wait", time.Second, "")
		cmd.Flags().Duration("wait-more", time.Second, "")
		return cmd
	}
	validate := func() error {
		return utilerrors.NewAggregate([]error{
			errors.New("--wait=0s: must not be 0"),
			errors.New("--other=1s: must be longer than --wait"),
			utilerrors.NewAggregate([]error{errors.New("--wait-more=1s: is too much"), errors.New("--wait-more=1s: is too much")}),
		})
	}
	// What a flag that did not parse was left with is not the user's doing.
	err := parseArgs(newCommand(), []string{"--wait=soon"}, validate)
	want := `invalid argument "soon" for "--wait" flag: time: invalid duration "soon"` + "\nError: --wait-more=1s: is too much"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
	if err := parseArgs(newCommand(), []string{"--wait=3s"}, validate); err != nil {
		t.Errorf("parseArgs() = %v without a mistake: validation is the command's", err)
	}
}
