// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// PodGCControllerOptions holds the flags of the pod garbage collector.
type PodGCControllerOptions struct {
	*v1alpha1.PodGCControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *PodGCControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.TerminatedPodGCThreshold, "terminated-pod-gc-threshold", o.TerminatedPodGCThreshold,
		"How many terminated pods may exist before the oldest are deleted. 0 or less keeps them all.")
}

// ApplyTo copies the flags into the configuration.
func (o *PodGCControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.PodGCController = *o.PodGCControllerConfiguration
}

// Validate finds nothing: every number has a meaning.
func (o *PodGCControllerOptions) Validate() []error { return nil }
