// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// ValidatingAdmissionPolicyStatusControllerOptions holds the flags of the validating admission policy status controller.
type ValidatingAdmissionPolicyStatusControllerOptions struct {
	*v1alpha1.ValidatingAdmissionPolicyStatusControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *ValidatingAdmissionPolicyStatusControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentPolicySyncs, "concurrent-validating-admission-policy-status-syncs", o.ConcurrentPolicySyncs,
		"How many ValidatingAdmissionPolicies are type-checked at the same time.")
}

// ApplyTo copies the flags into the configuration.
func (o *ValidatingAdmissionPolicyStatusControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.ValidatingAdmissionPolicyStatusController = *o.ValidatingAdmissionPolicyStatusControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *ValidatingAdmissionPolicyStatusControllerOptions) Validate() []error {
	return checkWorkers("concurrent-validating-admission-policy-status-syncs", o.ConcurrentPolicySyncs)
}
