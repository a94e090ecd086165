// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics measures how late the Jobs of CronJobs are created, under upstream's name.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// CronJobCreationSkew is a variable of the package because upstream's is: tests written for
// upstream's package read it.
var CronJobCreationSkew = metrics.NewHistogram(&metrics.HistogramOpts{
	Subsystem:      "cronjob_controller",
	Name:           "job_creation_skew_duration_seconds",
	Help:           "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
	Buckets:        metrics.ExponentialBuckets(1, 2, 10),
	StabilityLevel: metrics.STABLE,
})

// Register registers the collector with the process's registry; calling it again does nothing.
var Register = sync.OnceFunc(func() { legacyregistry.MustRegister(CronJobCreationSkew) })
