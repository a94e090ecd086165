// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cpconfigv1alpha1 "k8s.io/cloud-provider/config/v1alpha1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/ptr"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// NewDefaultComponentConfig returns the configuration of a manager that is
// given no flags. It equals what upstream's 1.37 shows on /configz.
func NewDefaultComponentConfig() v1alpha1.KubeControllerManagerConfiguration {
	var c v1alpha1.KubeControllerManagerConfiguration
	setGenericDefaults(&c.Generic)
	setKubeCloudSharedDefaults(&c.KubeCloudShared)
	setWorkloadDefaults(&c)
	setNetworkDefaults(&c)
	setClusterDefaults(&c)
	setNodeDefaults(&c)
	setStorageDefaults(&c)
	return c
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func setGenericDefaults(c *cmconfigv1alpha1.GenericControllerManagerConfiguration) {
	c.Address = "0.0.0.0"
	c.MinResyncPeriod = duration(12 * time.Hour)
	c.Controllers = []string{"*"}
	c.ClientConnection = componentbaseconfigv1alpha1.ClientConnectionConfiguration{
		ContentType: "application/vnd.kubernetes.protobuf",
		QPS:         20,
		Burst:       30,
	}
	c.LeaderElection = componentbaseconfigv1alpha1.LeaderElectionConfiguration{
		LeaderElect:       ptr.To(true),
		LeaseDuration:     duration(15 * time.Second),
		RenewDeadline:     duration(10 * time.Second),
		RetryPeriod:       duration(2 * time.Second),
		ResourceLock:      "leases",
		ResourceName:      componentName,
		ResourceNamespace: metav1.NamespaceSystem,
	}
	c.Debugging = componentbaseconfigv1alpha1.DebuggingConfiguration{
		EnableProfiling:           ptr.To(true),
		EnableContentionProfiling: ptr.To(false),
	}
}

func setKubeCloudSharedDefaults(c *cpconfigv1alpha1.KubeCloudSharedConfiguration) {
	c.ClusterName = "kubernetes"
	c.ConfigureCloudRoutes = ptr.To(true)
	c.RouteReconciliationPeriod = duration(10 * time.Second)
	c.CIDRAllocatorType = rangeAllocator
}

func setWorkloadDefaults(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.CronJobController.ConcurrentCronJobSyncs = 5
	c.DaemonSetController.ConcurrentDaemonSetSyncs = 2
	c.DeploymentController.ConcurrentDeploymentSyncs = 5
	c.DeviceTaintEvictionController.ConcurrentSyncs = 8
	c.DisruptionController.ConcurrentDisruptionSyncs = 1
	c.JobController.ConcurrentJobSyncs = 5
	c.ReplicaSetController.ConcurrentRSSyncs = 5
	c.ReplicationController.ConcurrentRCSyncs = 5
	c.ResourceClaimController.ConcurrentSyncs = 50
	c.StatefulSetController.ConcurrentStatefulSetSyncs = 5
	c.TTLAfterFinishedController.ConcurrentTTLSyncs = 5
	c.HPAController = v1alpha1.HPAControllerConfiguration{
		ConcurrentHorizontalPodAutoscalerSyncs:              5,
		HorizontalPodAutoscalerSyncPeriod:                   duration(15 * time.Second),
		HorizontalPodAutoscalerDownscaleStabilizationWindow: duration(5 * time.Minute),
		HorizontalPodAutoscalerTolerance:                    0.1,
		HorizontalPodAutoscalerCPUInitializationPeriod:      duration(5 * time.Minute),
		HorizontalPodAutoscalerInitialReadinessDelay:        duration(30 * time.Second),
	}
}

func setNetworkDefaults(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.EndpointController.ConcurrentEndpointSyncs = 5
	c.EndpointSliceController.ConcurrentServiceEndpointSyncs = 5
	c.EndpointSliceController.MaxEndpointsPerSlice = 100
	c.EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs = 5
	c.EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset = 1000
}

func setClusterDefaults(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.CSRSigningController.ClusterSigningDuration = duration(year)
	c.LegacySATokenCleaner.CleanUpPeriod = duration(year)
	c.NamespaceController.ConcurrentNamespaceSyncs = 10
	c.NamespaceController.NamespaceSyncPeriod = duration(5 * time.Minute)
	c.PodGCController.TerminatedPodGCThreshold = 12500
	c.ResourceQuotaController.ConcurrentResourceQuotaSyncs = 5
	c.ResourceQuotaController.ResourceQuotaSyncPeriod = duration(5 * time.Minute)
	c.SAController.ConcurrentSATokenSyncs = 5
	c.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs = 5
	c.GarbageCollectorController = v1alpha1.GarbageCollectorControllerConfiguration{
		EnableGarbageCollector: ptr.To(true),
		ConcurrentGCSyncs:      20,
		// Events are many, short-lived and have no dependents: watching them
		// for owner references would cost far more than it could ever collect.
		GCIgnoredResources: []v1alpha1.GroupResource{
			{Group: "", Resource: "events"},
			{Group: "events.k8s.io", Resource: "events"},
		},
	}
}

func setNodeDefaults(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.NodeLifecycleController = v1alpha1.NodeLifecycleControllerConfiguration{
		NodeEvictionRate:          0.1,
		SecondaryNodeEvictionRate: 0.01,
		NodeStartupGracePeriod:    duration(time.Minute),
		NodeMonitorGracePeriod:    duration(50 * time.Second),
		LargeClusterSizeThreshold: 50,
		UnhealthyZoneThreshold:    0.55,
		NodeMonitorPeriod:         duration(5 * time.Second),
	}
}

func setStorageDefaults(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.AttachDetachController.ReconcilerSyncLoopPeriod = duration(time.Minute)
	c.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs = 5
	c.PersistentVolumeBinderController.PVClaimBinderSyncPeriod = duration(15 * time.Second)
	c.PersistentVolumeBinderController.VolumeConfiguration = v1alpha1.VolumeConfiguration{
		EnableHostPathProvisioning: ptr.To(false),
		EnableDynamicProvisioning:  ptr.To(true),
		FlexVolumePluginDir:        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
		PersistentVolumeRecyclerConfiguration: v1alpha1.PersistentVolumeRecyclerConfiguration{
			MaximumRetry:             3,
			MinimumTimeoutNFS:        300,
			IncrementTimeoutNFS:      30,
			MinimumTimeoutHostPath:   60,
			IncrementTimeoutHostPath: 30,
		},
	}
}
