// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// CronJobControllerOptions holds the flags of the cron job controller.
type CronJobControllerOptions struct {
	*v1alpha1.CronJobControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *CronJobControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentCronJobSyncs, "concurrent-cron-job-syncs", o.ConcurrentCronJobSyncs,
		"How many CronJobs are worked on at the same time. More starts Jobs closer to their schedule when many are due at once, at the cost of CPU and requests to the API server.")
}

// ApplyTo copies the flags into the configuration.
func (o *CronJobControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.CronJobController = *o.CronJobControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *CronJobControllerOptions) Validate() []error {
	return checkWorkers("concurrent-cron-job-syncs", o.ConcurrentCronJobSyncs)
}
