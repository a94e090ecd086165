// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// ResourceClaimControllerOptions holds the flags of the resource claim controller.
type ResourceClaimControllerOptions struct {
	*v1alpha1.ResourceClaimControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *ResourceClaimControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentSyncs, "concurrent-resourceclaim-syncs", o.ConcurrentSyncs,
		"How many ResourceClaims are created, released or deleted at the same time. More starts pods with claims sooner, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *ResourceClaimControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.ResourceClaimController = *o.ResourceClaimControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *ResourceClaimControllerOptions) Validate() []error {
	return checkWorkers("concurrent-resourceclaim-syncs", o.ConcurrentSyncs)
}
