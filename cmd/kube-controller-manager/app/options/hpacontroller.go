// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// HPAControllerOptions holds the flags of the horizontal pod autoscaler.
type HPAControllerOptions struct {
	*v1alpha1.HPAControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *HPAControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.ConcurrentHorizontalPodAutoscalerSyncs, "concurrent-horizontal-pod-autoscaler-syncs", o.ConcurrentHorizontalPodAutoscalerSyncs,
		"How many HorizontalPodAutoscalers are worked on at the same time. More keeps up with many autoscalers, at the cost of CPU and requests to the API server and the metrics APIs.")
	fs.DurationVar(&o.HorizontalPodAutoscalerSyncPeriod.Duration, "horizontal-pod-autoscaler-sync-period", o.HorizontalPodAutoscalerSyncPeriod.Duration,
		"How often each HorizontalPodAutoscaler looks at its metrics.")
	fs.DurationVar(&o.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration, "horizontal-pod-autoscaler-downscale-stabilization", o.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration,
		"How far to look back before scaling down: never below the highest recommendation of this period. An autoscaler's spec.behavior overrides it.")
	fs.Float64Var(&o.HorizontalPodAutoscalerTolerance, "horizontal-pod-autoscaler-tolerance", o.HorizontalPodAutoscalerTolerance,
		"How far the ratio of current to wanted metric must be from 1.0 before anything is scaled. An autoscaler's spec.behavior overrides it.")
	fs.DurationVar(&o.HorizontalPodAutoscalerCPUInitializationPeriod.Duration, "horizontal-pod-autoscaler-cpu-initialization-period", o.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
		"How long after a pod's start its CPU usage may be left out of account, since starting up is not load.")
	fs.DurationVar(&o.HorizontalPodAutoscalerInitialReadinessDelay.Duration, "horizontal-pod-autoscaler-initial-readiness-delay", o.HorizontalPodAutoscalerInitialReadinessDelay.Duration,
		"How long after a pod's start a change of its readiness still counts as becoming ready for the first time.")
}

// ApplyTo copies the flags into the configuration.
func (o *HPAControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.HPAController = *o.HPAControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *HPAControllerOptions) Validate() []error {
	return join(
		checkWorkers("concurrent-horizontal-pod-autoscaler-syncs", o.ConcurrentHorizontalPodAutoscalerSyncs),
		checkNotNegative("horizontal-pod-autoscaler-sync-period", o.HorizontalPodAutoscalerSyncPeriod),
		checkNotNegative("horizontal-pod-autoscaler-downscale-stabilization", o.HorizontalPodAutoscalerDownscaleStabilizationWindow),
		checkRate("horizontal-pod-autoscaler-tolerance", o.HorizontalPodAutoscalerTolerance),
		checkNotNegative("horizontal-pod-autoscaler-cpu-initialization-period", o.HorizontalPodAutoscalerCPUInitializationPeriod),
		checkNotNegative("horizontal-pod-autoscaler-initial-readiness-delay", o.HorizontalPodAutoscalerInitialReadinessDelay),
	)
}
