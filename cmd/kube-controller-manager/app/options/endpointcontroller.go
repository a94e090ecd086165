// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// EndpointControllerOptions holds the flags of the endpoints controller.
type EndpointControllerOptions struct {
	*v1alpha1.EndpointControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *EndpointControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentEndpointSyncs, "concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs,
		"How many Services get their Endpoints brought up to date at the same time. More is faster, at the cost of CPU and requests to the API server.")
	fs.DurationVar(&o.EndpointUpdatesBatchPeriod.Duration, "endpoint-updates-batch-period", o.EndpointUpdatesBatchPeriod.Duration,
		"How long to wait after a pod changed before its Service's Endpoints are written, so that further changes join the same write. Longer means fewer writes and later endpoints.")
}

// ApplyTo copies the flags into the configuration.
func (o *EndpointControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.EndpointController = *o.EndpointControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *EndpointControllerOptions) Validate() []error {
	return join(
		checkWorkers("concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs),
		checkNotNegative("endpoint-updates-batch-period", o.EndpointUpdatesBatchPeriod),
	)
}
