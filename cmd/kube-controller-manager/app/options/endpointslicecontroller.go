// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// Upper bounds that the two EndpointSlice controllers share. An EndpointSlice
// with more than 1000 endpoints is refused by the API server.
const (
	maxEndpointSliceWorkers = 50
	maxEndpointsPerSlice    = 1000
)

// EndpointSliceControllerOptions holds the flags of the EndpointSlice controller.
type EndpointSliceControllerOptions struct {
	*v1alpha1.EndpointSliceControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *EndpointSliceControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentServiceEndpointSyncs, "concurrent-service-endpoint-syncs", o.ConcurrentServiceEndpointSyncs,
		"How many Services get their EndpointSlices brought up to date at the same time, 1 to 50. More is faster, at the cost of CPU and requests to the API server.")
	fs.Int32Var(&o.MaxEndpointsPerSlice, "max-endpoints-per-slice", o.MaxEndpointsPerSlice,
		"How many endpoints an EndpointSlice holds at most, 1 to 1000. More means fewer but larger objects, and more bytes sent to every node when one endpoint changes.")
	fs.DurationVar(&o.EndpointUpdatesBatchPeriod.Duration, "endpointslice-updates-batch-period", o.EndpointUpdatesBatchPeriod.Duration,
		"How long to wait after a pod changed before its Service's EndpointSlices are written, so that further changes join the same write. Longer means fewer writes and later endpoints.")
}

// ApplyTo copies the flags into the configuration.
func (o *EndpointSliceControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.EndpointSliceController = *o.EndpointSliceControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *EndpointSliceControllerOptions) Validate() []error {
	return join(
		checkRange("concurrent-service-endpoint-syncs", o.ConcurrentServiceEndpointSyncs, 1, maxEndpointSliceWorkers),
		checkRange("max-endpoints-per-slice", o.MaxEndpointsPerSlice, 1, maxEndpointsPerSlice),
		checkNotNegative("endpointslice-updates-batch-period", o.EndpointUpdatesBatchPeriod),
	)
}
