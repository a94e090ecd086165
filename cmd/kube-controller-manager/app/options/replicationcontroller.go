// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// ReplicationControllerOptions holds the flags of the replication controller.
type ReplicationControllerOptions struct {
	*v1alpha1.ReplicationControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *ReplicationControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentRCSyncs, "concurrent-rc-syncs", o.ConcurrentRCSyncs,
		"How many ReplicationControllers are worked on at the same time. More replaces and scales pods faster, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *ReplicationControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.ReplicationController = *o.ReplicationControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *ReplicationControllerOptions) Validate() []error {
	return checkWorkers("concurrent-rc-syncs", o.ConcurrentRCSyncs)
}
