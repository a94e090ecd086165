// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// NodeLifecycleControllerOptions holds the flags of the node lifecycle
// controller.
type NodeLifecycleControllerOptions struct {
	*v1alpha1.NodeLifecycleControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *NodeLifecycleControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.NodeStartupGracePeriod.Duration, "node-startup-grace-period", o.NodeStartupGracePeriod.Duration,
		"How long a node may be silent after it was created before it is marked unhealthy.")
	fs.DurationVar(&o.NodeMonitorGracePeriod.Duration, "node-monitor-grace-period", o.NodeMonitorGracePeriod.Duration,
		"How long a running node may be silent before it is marked unhealthy. Must be several times the kubelet's nodeStatusUpdateFrequency, so that a few lost reports do no harm, and longer than the kubelet's HTTP/2 ping and read idle time-outs together.")
	fs.DurationVar(&o.NodeMonitorPeriod.Duration, "node-monitor-period", o.NodeMonitorPeriod.Duration,
		"How often the health of all nodes is looked at.")
	fs.Float32Var(&o.NodeEvictionRate, "node-eviction-rate", o.NodeEvictionRate,
		"How many failed nodes per second get their pods evicted while their zone is healthy (see --unhealthy-zone-threshold). A zone is the whole cluster where nodes carry no zone label.")
	fs.Float32Var(&o.SecondaryNodeEvictionRate, "secondary-node-eviction-rate", o.SecondaryNodeEvictionRate,
		"How many failed nodes per second get their pods evicted while their zone is unhealthy (see --unhealthy-zone-threshold). Counts as 0 in clusters of --large-cluster-size-threshold nodes or less.")
	fs.Int32Var(&o.LargeClusterSizeThreshold, "large-cluster-size-threshold", o.LargeClusterSizeThreshold,
		"From more than how many nodes on a cluster is large, for evictions: in smaller ones --secondary-node-eviction-rate counts as 0.")
	fs.Float32Var(&o.UnhealthyZoneThreshold, "unhealthy-zone-threshold", o.UnhealthyZoneThreshold,
		"Which fraction of a zone's nodes, and at least 3 of them, must be not ready for the zone to be unhealthy.")
}

// ApplyTo copies the flags into the configuration.
func (o *NodeLifecycleControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.NodeLifecycleController = *o.NodeLifecycleControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *NodeLifecycleControllerOptions) Validate() []error {
	return join(
		checkNotNegative("node-startup-grace-period", o.NodeStartupGracePeriod),
		checkNotNegative("node-monitor-grace-period", o.NodeMonitorGracePeriod),
		checkNotNegative("node-monitor-period", o.NodeMonitorPeriod),
		checkRate("node-eviction-rate", o.NodeEvictionRate),
		checkRate("secondary-node-eviction-rate", o.SecondaryNodeEvictionRate),
		checkRate("unhealthy-zone-threshold", o.UnhealthyZoneThreshold),
	)
}
