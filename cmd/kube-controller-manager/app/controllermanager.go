// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
)

const longDescription = `The Kubernetes controller manager runs the control loops that bring a cluster to
the state that its objects describe: each controller watches its objects through the API server
and makes the changes that are missing. Of several managers in a cluster one leads, and the
others stand by.`

// NewControllerManagerCommand returns the kube-controller-manager command with the default
// options. It runs until the command's context is done; whoever executes it decides which
// signals end that context.
func NewControllerManagerCommand() *cobra.Command {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return &cobra.Command{Use: managerName, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("setting up the command's options: %w", err)
		}}
	}
	cmd := &cobra.Command{
		Use:  managerName,
		Long: longDescription,
		// A mistake gets a line that names it, not two screens of usage.
		SilenceUsage: true,
		// parseArgs parses the flags, to report all that is wrong with them at once.
		DisableFlagParsing: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return parseArgs(cmd, args, func() error {
				return utilerrors.NewAggregate([]error{s.SetGlobals(), validate(s)})
			})
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			err := s.SetGlobals()
			if err == nil {
				return nil
			}
			// The other flags need no gates to be judged by: the user learns of all mistakes at once.
			return onePerLine(utilerrors.NewAggregate([]error{err, validate(s)}))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd) {
				return nil
			}
			return runCommand(cmd, s)
		},
	}
	addFlags(cmd, s)
	return cmd
}

// validate returns all that is wrong with the values of the flags.
func validate(s *options.KubeControllerManagerOptions) error {
	return s.Validate(KnownControllers(), ControllersDisabledByDefault(), ControllerAliases())
}

func addFlags(cmd *cobra.Command, s *options.KubeControllerManagerOptions) {
	named := s.Flags(KnownControllers(), ControllersDisabledByDefault(), ControllerAliases())
	global := named.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, cmd.Name(), logs.SkipLoggingConfigurationFlags())
	if f := named.FlagSet("generic").Lookup("controllers"); f != nil {
		f.Usage += notAvailableUsage()
	}
	for _, f := range named.FlagSets {
		cmd.Flags().AddFlagSet(f)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, named, columns)
}

// printVersion answers --version and --version=raw.
func printVersion(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("version")
	if f == nil {
		return false
	}
	switch f.Value.String() {
	case string(verflag.VersionTrue):
		fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", version.Get())
	case string(verflag.VersionRaw):
		fmt.Fprintf(cmd.OutOrStdout(), "%#v\n", version.Get())
	default:
		return false
	}
	return true
}

func runCommand(cmd *cobra.Command, s *options.KubeControllerManagerOptions) error {
	ctx := cmd.Context()
	gates := s.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	logsErr := logsapi.ValidateAndApply(s.Logs, gates)
	if logsErr == nil {
		cliflag.PrintFlags(cmd.Flags())
	}

	// What the configuration starts (the event broadcaster) must survive the signal to stop: the
	// last events are sent while the controllers wind up.
	c, err := s.Config(context.WithoutCancel(ctx), KnownControllers(), ControllersDisabledByDefault(), ControllerAliases())
	if err := cmp.Or(err, logsErr); err != nil { // err names the logging flags too, with all others
		return onePerLine(err)
	}
	warnOfUnusedFlags(klog.FromContext(ctx), s)

	if m, ok := gates.(featuregate.MutableFeatureGate); ok {
		m.AddMetrics()
	}
	s.ComponentGlobalsRegistry.AddMetrics()
	return Run(ctx, c.Complete())
}

// onePerLine makes each problem of an aggregate a line of its own, and each of them only one.
func onePerLine(err error) error {
	var aggregate utilerrors.Aggregate
	if !errors.As(err, &aggregate) {
		return err
	}
	return errors.Join(distinct(aggregate)...)
}

// distinct returns the problems of an aggregate, and of those within it, each once.
func distinct(aggregate utilerrors.Aggregate) []error {
	if aggregate == nil {
		return nil
	}
	seen := sets.New[string]()
	var problems []error
	for _, problem := range utilerrors.Flatten(aggregate).Errors() {
		if !seen.Has(problem.Error()) {
			seen.Insert(problem.Error())
			problems = append(problems, problem)
		}
	}
	return problems
}

// Run runs the manager until ctx is done, and then returns nil once the controllers have stopped
// and the lease is given back. It returns an error when it cannot serve, when a controller cannot
// be built, when the lease is lost, or when controllers are still running at the shutdown
// time-out. No goroutine of Run's is left but those that overstayed that time-out.
func Run(ctx context.Context, c *config.CompletedConfig) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Get())
	logger.Info("Golang settings", "GOGC", os.Getenv("GOGC"), "GOMAXPROCS", os.Getenv("GOMAXPROCS"), "GOTRACEBACK", os.Getenv("GOTRACEBACK"), "procs", runtime.GOMAXPROCS(0))

	return newManager(ctx, c).run(ctx)
}
