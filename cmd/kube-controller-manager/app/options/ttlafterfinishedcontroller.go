// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// TTLAfterFinishedControllerOptions holds the flags of the TTL-after-finished controller.
type TTLAfterFinishedControllerOptions struct {
	*v1alpha1.TTLAfterFinishedControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *TTLAfterFinishedControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentTTLSyncs, "concurrent-ttl-after-finished-syncs", o.ConcurrentTTLSyncs,
		"How many finished Jobs are checked for their time to live, and deleted, at the same time.")
}

// ApplyTo copies the flags into the configuration.
func (o *TTLAfterFinishedControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.TTLAfterFinishedController = *o.TTLAfterFinishedControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *TTLAfterFinishedControllerOptions) Validate() []error {
	return checkWorkers("concurrent-ttl-after-finished-syncs", o.ConcurrentTTLSyncs)
}
