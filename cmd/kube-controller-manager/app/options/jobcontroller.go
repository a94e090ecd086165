// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// JobControllerOptions holds the flags of the job controller.
type JobControllerOptions struct {
	*v1alpha1.JobControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *JobControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentJobSyncs, "concurrent-job-syncs", o.ConcurrentJobSyncs,
		"How many Jobs are worked on at the same time. More reacts faster to many Jobs, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *JobControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.JobController = *o.JobControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *JobControllerOptions) Validate() []error {
	return checkWorkers("concurrent-job-syncs", o.ConcurrentJobSyncs)
}
