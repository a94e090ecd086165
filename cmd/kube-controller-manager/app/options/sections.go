// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
)

// componentConfig is the one configuration struct of the manager.
type componentConfig = v1alpha1.KubeControllerManagerConfiguration

// section is a part of --help that belongs to one controller. Its title is the
// controller's canonical name.
type section struct {
	controller string
	options    controllerOptions
}

// sections returns the controllers' sections in the order of --help.
func (s *KubeControllerManagerOptions) sections() []section {
	return []section{
		{names.PersistentVolumeAttachDetachController, s.AttachDetachController},
		{names.CertificateSigningRequestSigningController, s.CSRSigningController},
		{names.DeploymentController, s.DeploymentController},
		{names.DisruptionController, s.DisruptionController},
		{names.DeviceTaintEvictionController, s.DeviceTaintEvictionController},
		{names.ResourceClaimController, s.ResourceClaimController},
		{names.StatefulSetController, s.StatefulSetController},
		{names.DaemonSetController, s.DaemonSetController},
		{names.EndpointsController, s.EndpointController},
		{names.EndpointSliceController, s.EndpointSliceController},
		{names.EndpointSliceMirroringController, s.EndpointSliceMirroringController},
		{names.EphemeralVolumeController, s.EphemeralVolumeController},
		{names.GarbageCollectorController, s.GarbageCollectorController},
		{names.HorizontalPodAutoscalerController, s.HPAController},
		{names.JobController, s.JobController},
		{names.CronJobController, s.CronJobController},
		{names.LegacyServiceAccountTokenCleanerController, s.LegacySATokenCleaner},
		{names.NamespaceController, s.NamespaceController},
		{names.NodeIpamController, s.NodeIPAMController},
		{names.NodeLifecycleController, s.NodeLifecycleController},
		{names.PersistentVolumeBinderController, s.PersistentVolumeBinderController},
		{names.PodGarbageCollectorController, s.PodGCController},
		{names.ReplicaSetController, s.ReplicaSetController},
		{names.ReplicationControllerController, s.ReplicationController},
		{names.ResourceQuotaController, s.ResourceQuotaController},
		{names.ServiceAccountController, s.SAController},
		{names.TTLAfterFinishedController, s.TTLAfterFinishedController},
		{names.ValidatingAdmissionPolicyStatusController, s.ValidatingAdmissionPolicyStatusController},
	}
}

// flagUsers names the controllers that read a flag, where the flag's section
// does not. A flag that is neither here nor in a controller's section is the
// manager's own.
var flagUsers = map[string][]string{
	"allocate-node-cidrs":                   {names.NodeIpamController},
	"cidr-allocator-type":                   {names.NodeIpamController},
	"cluster-cidr":                          {names.NodeIpamController},
	"concurrent-serviceaccount-token-syncs": {names.ServiceAccountTokenController},
	"enable-garbage-collector":              {names.GarbageCollectorController, names.StorageVersionMigratorController},
	"external-cloud-volume-plugin":          volumePluginUsers,
	"flex-volume-plugin-dir":                volumePluginUsers,
	"root-ca-file":                          {names.ServiceAccountTokenController, names.RootCACertificatePublisherController},
	"service-account-private-key-file":      {names.ServiceAccountTokenController},
}

// volumePluginUsers are the controllers that load volume plugins.
var volumePluginUsers = []string{
	names.PersistentVolumeAttachDetachController,
	names.PersistentVolumeBinderController,
	names.PersistentVolumeExpanderController,
}
