// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import "k8s.io/component-base/featuregate"

// dependencies says which gates must be on for a gate to be on; validation
// refuses a command line that breaks this. Gates that are locked on are left
// out: they cannot be off.
func dependencies() map[featuregate.Feature][]featuregate.Feature {
	return map[featuregate.Feature][]featuregate.Feature{
		"ClusterTrustBundleProjection":                   {"ClusterTrustBundle"},
		"CompositePodGroup":                              {"GenericWorkload", "TopologyAwareWorkloadScheduling"},
		"DRADeviceCompatibilityGroups":                   {"DRAPartitionableDevices"},
		"DRADeviceTaintRules":                            {"DRADeviceTaints"},
		"DRAFractionalCapacityRange":                     {"DRAConsumableCapacity"},
		"DRAPartitionableDevicesType":                    {"DRAPartitionableDevices", "DRAResourcePoolStatus"},
		"DRAWorkloadResourceClaims":                      {"GenericWorkload"},
		"GracefulNodeShutdownBasedOnPodPriority":         {"GracefulNodeShutdown"},
		"InPlacePodLevelResourcesVerticalScaling":        {"PodLevelResources"},
		"MatchLabelKeysInPodTopologySpreadSelectorMerge": {"MatchLabelKeysInPodTopologySpread"},
		"NodeControllerLeaseCircuitBreaker":              {"AtomicFIFO"},
		"PodGroupPreemptionPolicy":                       {"GenericWorkload"},
		"PodLevelResourceManagers":                       {"PodLevelResources"},
		"PodLevelResourcesFixDefaulting":                 {"PodLevelResources"},
		"PodLevelResourcesFixKubeletQOSClass":            {"PodLevelResources"},
		"ResourceHealthStatusMessage":                    {"ResourceHealthStatus"},
		"RestartAllContainersOnContainerExits":           {"ContainerRestartRules"},
		"StaleControllerConsistencyDaemonSet":            {"AtomicFIFO"},
		"StaleControllerConsistencyHPA":                  {"AtomicFIFO"},
		"StaleControllerConsistencyJob":                  {"AtomicFIFO"},
		"StaleControllerConsistencyReplicaSet":           {"AtomicFIFO"},
		"StaleControllerConsistencyStatefulSet":          {"AtomicFIFO"},
		"StorageVersionAPI":                              {"APIServerIdentity"},
		"TopologyAwareWorkloadScheduling":                {"GenericWorkload"},
		"UnknownVersionInteroperabilityProxy":            {"APIServerIdentity"},
		"WindowsGracefulNodeShutdown":                    {"GracefulNodeShutdown"},
		"WorkloadWithJob":                                {"GenericWorkload"},
	}
}
