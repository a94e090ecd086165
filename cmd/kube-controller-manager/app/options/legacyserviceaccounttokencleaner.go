// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// LegacySATokenCleanerOptions holds the flags of the legacy service account
// token cleaner.
type LegacySATokenCleanerOptions struct {
	*v1alpha1.LegacySATokenCleanerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *LegacySATokenCleanerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.CleanUpPeriod.Duration, "legacy-service-account-token-clean-up-period", o.CleanUpPeriod.Duration,
		"How long an auto-generated, secret-based service account token must have been unused before it is marked invalid, and how long after that before it is deleted.")
}

// ApplyTo copies the flags into the configuration.
func (o *LegacySATokenCleanerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.LegacySATokenCleaner = *o.LegacySATokenCleanerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *LegacySATokenCleanerOptions) Validate() []error {
	return checkPositive("legacy-service-account-token-clean-up-period", o.CleanUpPeriod)
}
