// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// NamespaceControllerOptions holds the flags of the namespace controller.
type NamespaceControllerOptions struct {
	*v1alpha1.NamespaceControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *NamespaceControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.NamespaceSyncPeriod.Duration, "namespace-sync-period", o.NamespaceSyncPeriod.Duration,
		"How often all namespaces are looked at again without a change.")
	fs.Int32Var(&o.ConcurrentNamespaceSyncs, "concurrent-namespace-syncs", o.ConcurrentNamespaceSyncs,
		"How many namespaces are emptied and removed at the same time. More ends many deletions sooner, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *NamespaceControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.NamespaceController = *o.NamespaceControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *NamespaceControllerOptions) Validate() []error {
	return join(
		checkNotNegative("namespace-sync-period", o.NamespaceSyncPeriod),
		checkWorkers("concurrent-namespace-syncs", o.ConcurrentNamespaceSyncs),
	)
}
