// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// DisruptionControllerOptions holds the flags of the disruption controller.
type DisruptionControllerOptions struct {
	*v1alpha1.DisruptionControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *DisruptionControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentDisruptionSyncs, "concurrent-disruption-syncs", o.ConcurrentDisruptionSyncs,
		"How many PodDisruptionBudgets are worked on at the same time. More keeps the allowed disruptions fresher when many pods change, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *DisruptionControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.DisruptionController = *o.DisruptionControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *DisruptionControllerOptions) Validate() []error {
	return checkWorkers("concurrent-disruption-syncs", o.ConcurrentDisruptionSyncs)
}
