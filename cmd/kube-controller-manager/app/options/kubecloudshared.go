// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	cpconfigv1alpha1 "k8s.io/cloud-provider/config/v1alpha1"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// rangeAllocator is the one pod CIDR allocator left since cloud providers moved
// out of this manager.
const rangeAllocator = "RangeAllocator"

// KubeCloudSharedOptions holds the flags that this manager and a
// cloud-controller-manager have in common.
type KubeCloudSharedOptions struct {
	*cpconfigv1alpha1.KubeCloudSharedConfiguration
}

// AddFlags adds the flags to section generic.
func (o *KubeCloudSharedOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.CloudProvider.Name, "cloud-provider", o.CloudProvider.Name,
		"'external' where a cloud-controller-manager runs, else empty.")
	fs.StringVar(&o.CloudProvider.CloudConfigFile, "cloud-config", o.CloudProvider.CloudConfigFile,
		"Configuration file of the cloud provider.")
	fs.StringVar(&o.ExternalCloudVolumePlugin, "external-cloud-volume-plugin", o.ExternalCloudVolumePlugin,
		"Volume plugin to use with --cloud-provider=external. Empty for none.")
	fs.BoolVar(&o.UseServiceAccountCredentials, "use-service-account-credentials", o.UseServiceAccountCredentials,
		"Let each controller act as a service account of its own, with no more rights than it needs.")
	fs.BoolVar(&o.AllowUntaggedCloud, "allow-untagged-cloud", o.AllowUntaggedCloud,
		"Accept cloud instances without a cluster tag. No effect.")
	deprecate(fs, "allow-untagged-cloud", "it has no effect and will be removed")
	fs.DurationVar(&o.RouteReconciliationPeriod.Duration, "route-reconciliation-period", o.RouteReconciliationPeriod.Duration,
		"How often a cloud provider's routes to nodes are checked. No effect here: routes are the cloud-controller-manager's.")
	fs.DurationVar(&o.NodeSyncPeriod.Duration, "node-sync-period", o.NodeSyncPeriod.Duration,
		"How often nodes are read from the cloud provider. No effect.")
	deprecate(fs, "node-sync-period", "it has no effect and will be removed")
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName,
		"Name that tells this cluster's cloud resources from another's.")
	fs.StringVar(&o.ClusterCIDR, "cluster-cidr", o.ClusterCIDR,
		"Range of pod addresses, or an IPv4 and an IPv6 range with a comma between. Needed with --allocate-node-cidrs, else not used.")
	fs.BoolVar(&o.AllocateNodeCIDRs, "allocate-node-cidrs", o.AllocateNodeCIDRs,
		"Give each node a range of pod addresses out of --cluster-cidr.")
	fs.StringVar(&o.CIDRAllocatorType, "cidr-allocator-type", o.CIDRAllocatorType,
		"How ranges of pod addresses are found for nodes: 'RangeAllocator' is the only way.")
	fs.BoolVar(o.ConfigureCloudRoutes, "configure-cloud-routes", *o.ConfigureCloudRoutes,
		"Have the cloud provider route the ranges that --allocate-node-cidrs gives out. No effect here: routes are the cloud-controller-manager's.")
}

// deprecate marks a flag of fs, which hides it from --help and warns who uses it.
func deprecate(fs *pflag.FlagSet, name, why string) {
	flag := fs.Lookup(name)
	flag.Deprecated = why
	flag.Hidden = true
}

// ApplyTo copies the flags into the configuration.
func (o *KubeCloudSharedOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.KubeCloudShared = *o.DeepCopy()
}

// Validate returns what is wrong with the flags.
func (o *KubeCloudSharedOptions) Validate() []error {
	errs := join(
		checkNotNegative("route-reconciliation-period", o.RouteReconciliationPeriod),
		checkNotNegative("node-sync-period", o.NodeSyncPeriod),
	)
	if name := o.CloudProvider.Name; name != "" && name != "external" {
		errs = append(errs, invalid("cloud-provider", name,
			"built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider"))
	}
	if o.CIDRAllocatorType != rangeAllocator {
		errs = append(errs, invalid("cidr-allocator-type", o.CIDRAllocatorType,
			`built-in cloud providers are disabled, the only allocator is "`+rangeAllocator+`"`))
	}
	return errs
}
