// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// ResourceQuotaControllerOptions holds the flags of the resource quota
// controller.
type ResourceQuotaControllerOptions struct {
	*v1alpha1.ResourceQuotaControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *ResourceQuotaControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.ResourceQuotaSyncPeriod.Duration, "resource-quota-sync-period", o.ResourceQuotaSyncPeriod.Duration,
		"How often the usage of every ResourceQuota is counted anew without a change.")
	fs.Int32Var(&o.ConcurrentResourceQuotaSyncs, "concurrent-resource-quota-syncs", o.ConcurrentResourceQuotaSyncs,
		"How many ResourceQuotas are counted at the same time. More frees quota sooner, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *ResourceQuotaControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.ResourceQuotaController = *o.ResourceQuotaControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *ResourceQuotaControllerOptions) Validate() []error {
	return join(
		checkNotNegative("resource-quota-sync-period", o.ResourceQuotaSyncPeriod),
		checkWorkers("concurrent-resource-quota-syncs", o.ConcurrentResourceQuotaSyncs),
	)
}
