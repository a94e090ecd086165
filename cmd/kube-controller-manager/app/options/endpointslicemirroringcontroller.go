// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// EndpointSliceMirroringControllerOptions holds the flags of the EndpointSlice
// mirroring controller.
type EndpointSliceMirroringControllerOptions struct {
	*v1alpha1.EndpointSliceMirroringControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *EndpointSliceMirroringControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.MirroringConcurrentServiceEndpointSyncs, "mirroring-concurrent-service-endpoint-syncs", o.MirroringConcurrentServiceEndpointSyncs,
		"How many Endpoints objects without a selector are mirrored to EndpointSlices at the same time, 1 to 50. More is faster, at the cost of CPU and requests to the API server.")
	fs.Int32Var(&o.MirroringMaxEndpointsPerSubset, "mirroring-max-endpoints-per-subset", o.MirroringMaxEndpointsPerSubset,
		"How many addresses of one Endpoints subset are mirrored at most, 1 to 1000; the rest is left out.")
	fs.DurationVar(&o.MirroringEndpointUpdatesBatchPeriod.Duration, "mirroring-endpointslice-updates-batch-period", o.MirroringEndpointUpdatesBatchPeriod.Duration,
		"How long to wait after an Endpoints object changed before its mirror is written, so that further changes join the same write. Longer means fewer writes and later endpoints.")
}

// ApplyTo copies the flags into the configuration.
func (o *EndpointSliceMirroringControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.EndpointSliceMirroringController = *o.EndpointSliceMirroringControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *EndpointSliceMirroringControllerOptions) Validate() []error {
	return join(
		checkRange("mirroring-concurrent-service-endpoint-syncs", o.MirroringConcurrentServiceEndpointSyncs, 1, maxEndpointSliceWorkers),
		checkRange("mirroring-max-endpoints-per-subset", o.MirroringMaxEndpointsPerSubset, 1, maxEndpointsPerSlice),
		checkNotNegative("mirroring-endpointslice-updates-batch-period", o.MirroringEndpointUpdatesBatchPeriod),
	)
}
