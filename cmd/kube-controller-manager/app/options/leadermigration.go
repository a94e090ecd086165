// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"

	migrationconfig "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/leadermigration/config"
)

// LeaderMigrationOptions holds the flags that move controllers from one
// manager to another without a moment in which both or none run them (KEP
// 2436).
type LeaderMigrationOptions struct {
	// Enabled turns leader migration on.
	Enabled bool
	// ConfigFile says which controllers move. Empty means the built-in
	// configuration.
	ConfigFile string
}

// AddFlags adds the flags to their section.
func (o *LeaderMigrationOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "enable-leader-migration", o.Enabled,
		"Hold a second lease for the controllers that are moving to or from another manager.")
	fs.StringVar(&o.ConfigFile, "leader-migration-config", o.ConfigFile,
		"YAML file of kind LeaderMigrationConfiguration, group controllermanager.config.k8s.io, version v1 or v1beta1, that says which controllers are moving. Empty uses the built-in configuration. Read with --enable-leader-migration only.")
}

// ApplyTo reads the configuration file, checks it and copies it into the
// configuration.
func (o *LeaderMigrationOptions) ApplyTo(c *cmconfigv1alpha1.GenericControllerManagerConfiguration) []error {
	if !o.Enabled {
		return nil
	}
	migration := migrationconfig.DefaultLeaderMigrationConfiguration()
	if o.ConfigFile != "" {
		var err error
		migration, err = migrationconfig.ReadLeaderMigrationConfiguration(o.ConfigFile)
		if err != nil {
			return []error{fmt.Errorf("--leader-migration-config=%q: %w", o.ConfigFile, err)}
		}
	}
	var errs []error
	for _, err := range migrationconfig.ValidateLeaderMigrationConfiguration(migration) {
		errs = append(errs, fmt.Errorf("--leader-migration-config=%q: %w", o.ConfigFile, err))
	}
	// Old files may name it, but no elector can lock by Endpoints any more.
	if migration.ResourceLock == migrationconfig.ResourceLockEndpoints {
		errs = append(errs, invalid("leader-migration-config", o.ConfigFile, `resourceLock "endpoints" is gone, use "leases"`))
	}
	if len(errs) > 0 {
		return errs
	}
	c.LeaderMigrationEnabled = true
	c.LeaderMigration = *migration
	return nil
}
