// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// PersistentVolumeBinderControllerOptions holds the flags of the persistent
// volume binder, among them those of the volume plugins.
type PersistentVolumeBinderControllerOptions struct {
	*v1alpha1.PersistentVolumeBinderControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *PersistentVolumeBinderControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.PVClaimBinderSyncPeriod.Duration, "pvclaimbinder-sync-period", o.PVClaimBinderSyncPeriod.Duration,
		"How often all PersistentVolumes and claims are looked at again without a change.")
	volumes := &o.VolumeConfiguration
	fs.BoolVar(volumes.EnableHostPathProvisioning, "enable-hostpath-provisioner", *volumes.EnableHostPathProvisioning,
		"Provision host path volumes. For development on one node only: the data stays on the node it was written on.")
	fs.BoolVar(volumes.EnableDynamicProvisioning, "enable-dynamic-provisioning", *volumes.EnableDynamicProvisioning,
		"Provision volumes for claims that name a StorageClass.")
	fs.StringVar(&volumes.FlexVolumePluginDir, "flex-volume-plugin-dir", volumes.FlexVolumePluginDir,
		"Absolute path of the folder with third-party FlexVolume plugins.")
	recycler := &volumes.PersistentVolumeRecyclerConfiguration
	fs.StringVar(&recycler.PodTemplateFilePathNFS, "pv-recycler-pod-template-filepath-nfs", recycler.PodTemplateFilePathNFS,
		"File with the pod that empties a released NFS volume.")
	fs.Int32Var(&recycler.MinimumTimeoutNFS, "pv-recycler-minimum-timeout-nfs", recycler.MinimumTimeoutNFS,
		"How many seconds a pod that empties an NFS volume has at least (its activeDeadlineSeconds).")
	fs.Int32Var(&recycler.IncrementTimeoutNFS, "pv-recycler-increment-timeout-nfs", recycler.IncrementTimeoutNFS,
		"How many seconds a pod that empties an NFS volume gets more for each Gi of capacity.")
	fs.StringVar(&recycler.PodTemplateFilePathHostPath, "pv-recycler-pod-template-filepath-hostpath", recycler.PodTemplateFilePathHostPath,
		"File with the pod that empties a released host path volume. For development on one node only.")
	fs.Int32Var(&recycler.MinimumTimeoutHostPath, "pv-recycler-minimum-timeout-hostpath", recycler.MinimumTimeoutHostPath,
		"How many seconds a pod that empties a host path volume has at least (its activeDeadlineSeconds). For development on one node only.")
	fs.Int32Var(&recycler.IncrementTimeoutHostPath, "pv-recycler-timeout-increment-hostpath", recycler.IncrementTimeoutHostPath,
		"How many seconds a pod that empties a host path volume gets more for each Gi of capacity. For development on one node only.")
}

// ApplyTo copies the flags into the configuration.
func (o *PersistentVolumeBinderControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.PersistentVolumeBinderController = *o.PersistentVolumeBinderControllerConfiguration.DeepCopy()
}

// Validate returns what is wrong with the flags.
func (o *PersistentVolumeBinderControllerOptions) Validate() []error {
	return checkNotNegative("pvclaimbinder-sync-period", o.PVClaimBinderSyncPeriod)
}
