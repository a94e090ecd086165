// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the Pod garbage collector deletes, under upstream's names.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "pod_gc_collector"

// Why a Pod is deleted: the values of the label reason.
const (
	// PodGCReasonTerminated: more Pods have finished than the threshold allows.
	PodGCReasonTerminated = "terminated"
	// PodGCReasonTerminatingOutOfService: in deletion, on a node that is out of service.
	PodGCReasonTerminatingOutOfService = "out-of-service"
	// PodGCReasonOrphaned: on a node that does not exist.
	PodGCReasonOrphaned = "orphaned"
	// PodGCReasonTerminatingUnscheduled: in deletion, and on no node.
	PodGCReasonTerminatingUnscheduled = "unscheduled"
)

// The collectors are variables of the package because upstream's are: tests written for
// upstream's package read them.
var (
	// DeletingPodsTotal counts the Pods that were force-deleted, also without success.
	DeletingPodsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "force_delete_pods_total",
		Help:           "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "reason"})
	// DeletingPodsErrorTotal counts those of them that could not be deleted.
	DeletingPodsErrorTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "force_delete_pod_errors_total",
		Help:           "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "reason"})
)

// Register registers the collectors with the process's registry; calling it again does
// nothing.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(DeletingPodsTotal, DeletingPodsErrorTotal)
})
