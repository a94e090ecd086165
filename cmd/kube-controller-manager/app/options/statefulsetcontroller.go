// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// StatefulSetControllerOptions holds the flags of the stateful set controller.
type StatefulSetControllerOptions struct {
	*v1alpha1.StatefulSetControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *StatefulSetControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentStatefulSetSyncs, "concurrent-statefulset-syncs", o.ConcurrentStatefulSetSyncs,
		"How many StatefulSets are worked on at the same time. More reacts faster to many sets, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *StatefulSetControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.StatefulSetController = *o.StatefulSetControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *StatefulSetControllerOptions) Validate() []error {
	return checkWorkers("concurrent-statefulset-syncs", o.ConcurrentStatefulSetSyncs)
}
