// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"
	"k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// GenericOptions holds the flags that any controller manager has: clients,
// leader election, which controllers run, profiling.
type GenericOptions struct {
	*cmconfigv1alpha1.GenericControllerManagerConfiguration
	// Standby is what the manager does while another one leads. The component configuration, which
	// is upstream's type, has no field for it.
	Standby config.StandbyMode

	// genericFlags is the set that AddFlags added to. Which of the client
	// limits were on the command line is asked of it after parsing.
	genericFlags *pflag.FlagSet
}

// AddFlags adds the flags of sections debugging, generic and misc, where
// controllers describes the values of --controllers.
func (o *GenericOptions) AddFlags(debugging, generic, misc *pflag.FlagSet, controllers string) {
	debugging.BoolVar(o.Debugging.EnableProfiling, "profiling", *o.Debugging.EnableProfiling,
		"Serve CPU, memory and other profiles at /debug/pprof/.")
	debugging.BoolVar(o.Debugging.EnableContentionProfiling, "contention-profiling", *o.Debugging.EnableContentionProfiling,
		"Record where goroutines block, for /debug/pprof/block. Needs --profiling.")

	generic.DurationVar(&o.MinResyncPeriod.Duration, "min-resync-period", o.MinResyncPeriod.Duration,
		"How often informers hand all objects to the controllers again without a change: a random period from this to twice this.")
	generic.DurationVar(&o.ControllerStartInterval.Duration, "controller-start-interval", o.ControllerStartInterval.Duration,
		"How long to wait before each controller starts: a random period from this to twice this.")
	generic.StringSliceVar(&o.Controllers, "controllers", o.Controllers, controllers)
	o.addClientFlags(generic)
	o.addLeaderElectionFlags(generic)

	misc.StringVar(&o.ClientConnection.Kubeconfig, "kubeconfig", o.ClientConnection.Kubeconfig,
		"Kubeconfig file that says where the API server is and who to be there. Empty, with --master empty too, uses the service account of the pod that this runs in.")
}

func (o *GenericOptions) addClientFlags(fs *pflag.FlagSet) {
	o.genericFlags = fs
	client := &o.ClientConnection
	fs.StringVar(&client.ContentType, "kube-api-content-type", client.ContentType,
		"Media type of requests to the API server.")
	fs.Float32Var(&client.QPS, "kube-api-qps", client.QPS,
		"How many requests per second each client may send to the API server. If neither this nor --kube-api-burst is given there is no fixed limit: clients then slow down when the API server asks them to or becomes slow.")
	fs.Int32Var(&client.Burst, "kube-api-burst", client.Burst,
		"How many requests each client may send at once before --kube-api-qps limits it. If neither this nor --kube-api-qps is given there is no fixed limit.")
}

func (o *GenericOptions) addLeaderElectionFlags(fs *pflag.FlagSet) {
	election := &o.LeaderElection
	fs.BoolVar(election.LeaderElect, "leader-elect", *election.LeaderElect,
		"Hold a lease before any controller runs, so that one of several managers is active. Turn off only where there is one manager.")
	fs.DurationVar(&election.LeaseDuration.Duration, "leader-elect-lease-duration", election.LeaseDuration.Duration,
		"How long others wait after the lease was last renewed before they take it: the longest time without a leader after one died.")
	fs.DurationVar(&election.RenewDeadline.Duration, "leader-elect-renew-deadline", election.RenewDeadline.Duration,
		"How long the leader tries to renew its lease before it stops leading. Less than --leader-elect-lease-duration.")
	fs.DurationVar(&election.RetryPeriod.Duration, "leader-elect-retry-period", election.RetryPeriod.Duration,
		"How long to wait between attempts to get or renew the lease.")
	fs.StringVar(&election.ResourceLock, "leader-elect-resource-lock", election.ResourceLock,
		"Kind of object that is the lock: 'leases' is the only one.")
	fs.StringVar(&election.ResourceName, "leader-elect-resource-name", election.ResourceName,
		"Name of the lease.")
	fs.StringVar(&election.ResourceNamespace, "leader-elect-resource-namespace", election.ResourceNamespace,
		"Namespace of the lease.")
	fs.StringVar((*string)(&o.Standby), "leader-elect-standby", string(o.Standby),
		"What this manager does while another one leads: 'warm' fills its caches, so that it works at once when it wins the lease; 'cold' keeps no caches, which saves their memory and watches until then.")
}

// ClientLimitsGiven says whether --kube-api-qps or --kube-api-burst was on the
// command line.
func (o *GenericOptions) ClientLimitsGiven() bool {
	return o.genericFlags != nil &&
		(o.genericFlags.Changed("kube-api-qps") || o.genericFlags.Changed("kube-api-burst"))
}

// clientLimits returns the client-side limits for rest.Config. Without flags
// there is none: a fixed limit of 20 a second slows large clusters down for no
// one's good, since API priority and fairness protects the API server.
func (o *GenericOptions) clientLimits() (qps float32, burst int) {
	if !o.ClientLimitsGiven() {
		return -1, 0
	}
	return o.ClientConnection.QPS, int(o.ClientConnection.Burst)
}

// ApplyTo copies the flags into the configuration, with controllers by their
// canonical names.
func (o *GenericOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration, aliases map[string]string) {
	c.Generic = *o.DeepCopy()
	c.Generic.Controllers = canonicalNames(o.Controllers, aliases)
}

// canonicalNames returns the entries of --controllers with aliases replaced.
func canonicalNames(entries []string, aliases map[string]string) []string {
	canonical := make([]string, 0, len(entries))
	for _, entry := range entries {
		name, off := strings.CutPrefix(entry, "-")
		if target, ok := aliases[name]; ok {
			name = target
		}
		if off {
			name = "-" + name
		}
		canonical = append(canonical, name)
	}
	return canonical
}

// Validate returns what is wrong with the flags, where all are the canonical
// names of all controllers.
func (o *GenericOptions) Validate(all []string, aliases map[string]string) []error {
	return join(
		o.validateControllers(all, aliases),
		o.validateLeaderElection(),
		o.validateStandby(),
		o.validateClientLimits(),
		checkNotNegative("min-resync-period", o.MinResyncPeriod),
		checkNotNegative("controller-start-interval", o.ControllerStartInterval),
	)
}

// validateControllers checks each entry of --controllers: "*", a name or an
// alias, or one of the latter two after a "-".
func (o *GenericOptions) validateControllers(all []string, aliases map[string]string) []error {
	var errs []error
	for _, entry := range o.Controllers {
		if entry == "*" {
			continue
		}
		name := strings.TrimPrefix(entry, "-")
		if _, ok := aliases[name]; ok || slices.Contains(all, name) {
			continue
		}
		errs = append(errs, fmt.Errorf("--controllers: %q is not in the list of known controllers, --help shows it", name))
	}
	return errs
}

// validateLeaderElection checks the relations that an elector needs: a leader
// must give up before others take over, and must be able to try more than once
// until then.
func (o *GenericOptions) validateLeaderElection() []error {
	election := &o.LeaderElection
	if !*election.LeaderElect {
		return nil
	}
	lease, renew, retry := election.LeaseDuration, election.RenewDeadline, election.RetryPeriod
	errs := join(
		checkPositive("leader-elect-lease-duration", lease),
		checkPositive("leader-elect-renew-deadline", renew),
		checkPositive("leader-elect-retry-period", retry),
	)
	if len(errs) == 0 {
		if lease.Duration <= renew.Duration {
			errs = append(errs, invalid("leader-elect-lease-duration", lease.Duration,
				fmt.Sprintf("must be longer than --leader-elect-renew-deadline=%v", renew.Duration)))
		}
		if least := float64(retry.Duration) * leaderelection.JitterFactor; float64(renew.Duration) <= least {
			errs = append(errs, invalid("leader-elect-renew-deadline", renew.Duration,
				fmt.Sprintf("must be longer than %v times --leader-elect-retry-period=%v", leaderelection.JitterFactor, retry.Duration)))
		}
	}
	if err := resourcelock.CheckType(election.ResourceLock); err != nil {
		errs = append(errs, invalid("leader-elect-resource-lock", election.ResourceLock, err.Error()))
	}
	if election.ResourceName == "" {
		errs = append(errs, invalid("leader-elect-resource-name", election.ResourceName, "must not be empty"))
	}
	if election.ResourceNamespace == "" {
		errs = append(errs, invalid("leader-elect-resource-namespace", election.ResourceNamespace, "must not be empty"))
	}
	return errs
}

func (o *GenericOptions) validateStandby() []error {
	modes := config.StandbyModes()
	if slices.Contains(modes, o.Standby) {
		return nil
	}
	return []error{invalid("leader-elect-standby", string(o.Standby), fmt.Sprintf("must be one of %q", modes))}
}

// validateClientLimits refuses a limit that lets nothing through. A negative
// rate means none.
func (o *GenericOptions) validateClientLimits() []error {
	client := &o.ClientConnection
	if client.QPS > 0 && client.Burst < 1 {
		return []error{invalid("kube-api-burst", client.Burst, fmt.Sprintf("must be greater than 0 with --kube-api-qps=%v", client.QPS))}
	}
	return nil
}
