// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// DeviceTaintEvictionControllerOptions holds the flags of the device taint eviction controller.
type DeviceTaintEvictionControllerOptions struct {
	*v1alpha1.DeviceTaintEvictionControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *DeviceTaintEvictionControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentSyncs, "concurrent-device-taint-eviction-syncs", o.ConcurrentSyncs,
		"How many pod evictions and DeviceTaintRule status updates run at the same time. More clears tainted devices faster, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *DeviceTaintEvictionControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.DeviceTaintEvictionController = *o.DeviceTaintEvictionControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *DeviceTaintEvictionControllerOptions) Validate() []error {
	return checkWorkers("concurrent-device-taint-eviction-syncs", o.ConcurrentSyncs)
}
