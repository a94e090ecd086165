// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// ReplicaSetControllerOptions holds the flags of the replica set controller.
type ReplicaSetControllerOptions struct {
	*v1alpha1.ReplicaSetControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *ReplicaSetControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentRSSyncs, "concurrent-replicaset-syncs", o.ConcurrentRSSyncs,
		"How many ReplicaSets are worked on at the same time. More replaces and scales pods faster, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *ReplicaSetControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.ReplicaSetController = *o.ReplicaSetControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *ReplicaSetControllerOptions) Validate() []error {
	return checkWorkers("concurrent-replicaset-syncs", o.ConcurrentRSSyncs)
}
