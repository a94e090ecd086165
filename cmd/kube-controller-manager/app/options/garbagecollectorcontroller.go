// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// GarbageCollectorControllerOptions holds the flags of the garbage collector.
type GarbageCollectorControllerOptions struct {
	*v1alpha1.GarbageCollectorControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *GarbageCollectorControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentGCSyncs, "concurrent-gc-syncs", o.ConcurrentGCSyncs,
		"How many objects are checked for deletion, and how many owners are released from their dependents, at the same time.")
	fs.BoolVar(o.EnableGarbageCollector, "enable-garbage-collector", *o.EnableGarbageCollector,
		"Delete objects whose owners are gone. Must agree with the flag of the same name of kube-apiserver.")
}

// ApplyTo copies the flags into the configuration.
func (o *GarbageCollectorControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.GarbageCollectorController = *o.GarbageCollectorControllerConfiguration.DeepCopy()
}

// Validate returns what is wrong with the flags.
func (o *GarbageCollectorControllerOptions) Validate() []error {
	return checkWorkers("concurrent-gc-syncs", o.ConcurrentGCSyncs)
}
