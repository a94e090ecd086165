// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// DaemonSetControllerOptions holds the flags of the daemon set controller.
type DaemonSetControllerOptions struct {
	*v1alpha1.DaemonSetControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *DaemonSetControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentDaemonSetSyncs, "concurrent-daemonset-syncs", o.ConcurrentDaemonSetSyncs,
		"How many DaemonSets are worked on at the same time. More reacts faster when nodes come and go, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *DaemonSetControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.DaemonSetController = *o.DaemonSetControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *DaemonSetControllerOptions) Validate() []error {
	return checkWorkers("concurrent-daemonset-syncs", o.ConcurrentDaemonSetSyncs)
}
