// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadermigration tells which controllers a manager runs under which lock while they move from one manager to
// another (KEP-2436): those that are moving run under a lock that both managers compete for.
package leadermigration

import (
	"k8s.io/controller-manager/config/v1alpha1"
)

// anyComponent, as the component of a controller, stands for every manager that takes part.
const anyComponent = "*"

// FilterResult says whether and how a manager starts a controller.
type FilterResult int32

const (
	// ControllerUnowned: another manager runs it.
	ControllerUnowned FilterResult = iota
	// ControllerMigrated: it runs under the migration lock.
	ControllerMigrated
	// ControllerNonMigrated: it takes no part in the migration and runs under the main lock.
	ControllerNonMigrated
)

// FilterFunc decides for a controller, given by its canonical name.
type FilterFunc func(controllerName string) FilterResult

// LeaderMigrator is one manager's part in a migration.
type LeaderMigrator struct {
	// MigrationReady is closed, by the manager, once it may compete for the migration lock: when the service account
	// tokens controller runs, without which migrated controllers get no credentials.
	MigrationReady chan struct{}
	// FilterFunc decides for each controller.
	FilterFunc FilterFunc
}

// NewLeaderMigrator makes the part of the manager called component, e.g. "kube-controller-manager".
func NewLeaderMigrator(c *v1alpha1.LeaderMigrationConfiguration, component string) *LeaderMigrator {
	owned := make(map[string]bool, len(c.ControllerLeaders))
	for _, leader := range c.ControllerLeaders {
		owned[leader.Name] = leader.Component == component || leader.Component == anyComponent
	}
	return &LeaderMigrator{
		MigrationReady: make(chan struct{}),
		FilterFunc: func(name string) FilterResult {
			mine, migrating := owned[name]
			switch {
			case !migrating:
				return ControllerNonMigrated
			case mine:
				return ControllerMigrated
			default:
				return ControllerUnowned
			}
		},
	}
}

// Enabled reports whether the user has asked for a migration.
func Enabled(c *v1alpha1.GenericControllerManagerConfiguration) bool {
	return c.LeaderMigrationEnabled
}
