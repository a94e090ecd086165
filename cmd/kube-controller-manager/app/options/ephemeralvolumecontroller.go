// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// EphemeralVolumeControllerOptions holds the flags of the ephemeral volume controller.
type EphemeralVolumeControllerOptions struct {
	*v1alpha1.EphemeralVolumeControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *EphemeralVolumeControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentEphemeralVolumeSyncs, "concurrent-ephemeralvolume-syncs", o.ConcurrentEphemeralVolumeSyncs,
		"How many pods get claims for their ephemeral volumes at the same time. More starts such pods sooner, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *EphemeralVolumeControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.EphemeralVolumeController = *o.EphemeralVolumeControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *EphemeralVolumeControllerOptions) Validate() []error {
	return checkWorkers("concurrent-ephemeralvolume-syncs", o.ConcurrentEphemeralVolumeSyncs)
}
