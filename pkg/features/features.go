// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import "k8s.io/component-base/featuregate"

// The gates that the manager and its controllers ask for, under upstream's
// names. Stages and defaults are in kubernetesGates and in the libraries.
const (
	// APIServerIdentity: each API server holds a lease with its identity; storageversion-garbage-collector needs it.
	APIServerIdentity featuregate.Feature = "APIServerIdentity"
	// ClusterTrustBundle: the ClusterTrustBundle API; its publisher needs it.
	ClusterTrustBundle featuregate.Feature = "ClusterTrustBundle"
	// ControllerManagerReleaseLeaderElectionLockOnExit: the manager gives its lease back when it is told to stop.
	ControllerManagerReleaseLeaderElectionLockOnExit featuregate.Feature = "ControllerManagerReleaseLeaderElectionLockOnExit"
	// CoordinatedLeaderElection: the API server picks the leader among candidates (KEP 4355).
	CoordinatedLeaderElection featuregate.Feature = "CoordinatedLeaderElection"
	// DRADeviceTaintRules: taints for devices by DeviceTaintRule (KEP 5055).
	DRADeviceTaintRules featuregate.Feature = "DRADeviceTaintRules"
	// DRADeviceTaints: pods are evicted from devices with taints (KEP 5055).
	DRADeviceTaints featuregate.Feature = "DRADeviceTaints"
	// DRAResourcePoolStatus: ResourcePoolStatusRequest and its controller.
	DRAResourcePoolStatus featuregate.Feature = "DRAResourcePoolStatus"
	// DRAWorkloadResourceClaims: resource claims for whole workloads.
	DRAWorkloadResourceClaims featuregate.Feature = "DRAWorkloadResourceClaims"
	// DeploymentReplicaSetTerminatingReplicas: status.terminatingReplicas of Deployments and ReplicaSets, and podReplacementPolicy (KEP 3973).
	DeploymentReplicaSetTerminatingReplicas featuregate.Feature = "DeploymentReplicaSetTerminatingReplicas"
	// DynamicResourceAllocation: ResourceClaims (KEP 4381).
	DynamicResourceAllocation featuregate.Feature = "DynamicResourceAllocation"
	// GenericWorkload: the Workload and PodGroup APIs (KEP 4671).
	GenericWorkload featuregate.Feature = "GenericWorkload"
	// HPAConfigurableTolerance: a tolerance of its own per HorizontalPodAutoscaler (KEP 4951).
	HPAConfigurableTolerance featuregate.Feature = "HPAConfigurableTolerance"
	// HPAGeneration: metadata.generation of HorizontalPodAutoscalers and observedGeneration in their status.
	HPAGeneration featuregate.Feature = "HPAGeneration"
	// HPAOptimizedSelectorStore: the autoscaler keeps parsed selectors in a faster store.
	HPAOptimizedSelectorStore featuregate.Feature = "HPAOptimizedSelectorStore"
	// HPAScaleToZero: minReplicas 0 for autoscalers with object or external metrics (KEP 2021).
	HPAScaleToZero featuregate.Feature = "HPAScaleToZero"
	// InPlacePodLevelResourcesVerticalScaling: those of a running pod may change (KEP 5419).
	InPlacePodLevelResourcesVerticalScaling featuregate.Feature = "InPlacePodLevelResourcesVerticalScaling"
	// MaxUnavailableStatefulSet: maxUnavailable for rolling updates of StatefulSets (KEP 961).
	MaxUnavailableStatefulSet featuregate.Feature = "MaxUnavailableStatefulSet"
	// MultiCIDRServiceAllocator: ServiceCIDR and IPAddress objects (KEP 1880).
	MultiCIDRServiceAllocator featuregate.Feature = "MultiCIDRServiceAllocator"
	// MutableSchedulingDirectivesForSuspendedJobs: a suspended Job's scheduling directives may change.
	MutableSchedulingDirectivesForSuspendedJobs featuregate.Feature = "MutableSchedulingDirectivesForSuspendedJobs"
	// NodeControllerLeaseCircuitBreaker: the node lifecycle controller holds back when its view of leases is stale.
	NodeControllerLeaseCircuitBreaker featuregate.Feature = "NodeControllerLeaseCircuitBreaker"
	// PersistentVolumeClaimUnusedSinceTime: claims record since when no pod uses them.
	PersistentVolumeClaimUnusedSinceTime featuregate.Feature = "PersistentVolumeClaimUnusedSinceTime"
	// PodCertificateRequest: PodCertificateRequests (KEP 4317); their cleaner needs it.
	PodCertificateRequest featuregate.Feature = "PodCertificateRequest"
	// PodDeletionCost: annotation controller.kubernetes.io/pod-deletion-cost ranks pods when a ReplicaSet shrinks (KEP 2255).
	PodDeletionCost featuregate.Feature = "PodDeletionCost"
	// PodLevelResources: requests and limits of whole pods (KEP 2837).
	PodLevelResources featuregate.Feature = "PodLevelResources"
	// PreferSameTrafficDistribution: trafficDistribution PreferSameZone and PreferSameNode (KEP 3015).
	PreferSameTrafficDistribution featuregate.Feature = "PreferSameTrafficDistribution"
	// RecoverVolumeExpansionFailure: a claim's size may be lowered again after a failed expansion (KEP 1790).
	RecoverVolumeExpansionFailure featuregate.Feature = "RecoverVolumeExpansionFailure"
	// SELinuxChangePolicy: seLinuxChangePolicy of pods (KEP 1710); selinux-warning needs it.
	SELinuxChangePolicy featuregate.Feature = "SELinuxChangePolicy"
	// SeparateTaintEvictionController: taint-based eviction runs in a controller of its own (KEP 3902).
	SeparateTaintEvictionController featuregate.Feature = "SeparateTaintEvictionController"
	// StaleControllerConsistencyDaemonSet: the daemon set controller waits until its cache has seen its own writes.
	StaleControllerConsistencyDaemonSet featuregate.Feature = "StaleControllerConsistencyDaemonSet"
	// StaleControllerConsistencyHPA: the autoscaler waits until its cache has seen its own writes.
	StaleControllerConsistencyHPA featuregate.Feature = "StaleControllerConsistencyHPA"
	// StaleControllerConsistencyJob: the job controller waits until its cache has seen its own writes.
	StaleControllerConsistencyJob featuregate.Feature = "StaleControllerConsistencyJob"
	// StaleControllerConsistencyReplicaSet: the replica set controller waits until its cache has seen its own writes.
	StaleControllerConsistencyReplicaSet featuregate.Feature = "StaleControllerConsistencyReplicaSet"
	// StaleControllerConsistencyStatefulSet: the stateful set controller waits until its cache has seen its own writes.
	StaleControllerConsistencyStatefulSet featuregate.Feature = "StaleControllerConsistencyStatefulSet"
	// StatefulSetRecreateStrategy: update strategy Recreate for StatefulSets.
	StatefulSetRecreateStrategy featuregate.Feature = "StatefulSetRecreateStrategy"
	// StatefulSetSemanticRevisionComparison: revisions of StatefulSets are compared by meaning, not by bytes.
	StatefulSetSemanticRevisionComparison featuregate.Feature = "StatefulSetSemanticRevisionComparison"
	// StorageVersionAPI: StorageVersion objects (KEP 2339); storageversion-garbage-collector needs it.
	StorageVersionAPI featuregate.Feature = "StorageVersionAPI"
	// StorageVersionMigrator: StorageVersionMigrations run in the manager (KEP 4192).
	StorageVersionMigrator featuregate.Feature = "StorageVersionMigrator"
	// TaintTolerationComparisonOperators: tolerations with operators Lt and Gt (KEP 5471).
	TaintTolerationComparisonOperators featuregate.Feature = "TaintTolerationComparisonOperators"
	// VolumeAttributesClass: VolumeAttributesClasses (KEP 3751).
	VolumeAttributesClass featuregate.Feature = "VolumeAttributesClass"
	// WorkloadWithJob: the job controller makes a Workload for each Job.
	WorkloadWithJob featuregate.Feature = "WorkloadWithJob"
)
