// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// DeploymentControllerOptions holds the flags of the deployment controller.
type DeploymentControllerOptions struct {
	*v1alpha1.DeploymentControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *DeploymentControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentDeploymentSyncs, "concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs,
		"How many Deployments are worked on at the same time. More reacts faster to many rollouts, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *DeploymentControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.DeploymentController = *o.DeploymentControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *DeploymentControllerOptions) Validate() []error {
	return checkWorkers("concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs)
}
