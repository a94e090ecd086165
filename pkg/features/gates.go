// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

const (
	on  = true
	off = false
)

func spec(since string, enabled bool, stage featuregate.FeatureSpec) featuregate.FeatureSpec {
	stage.Version, stage.Default = version.MustParse(since), enabled
	return stage
}

// alpha, beta, ga and deprecated say in which release a gate reached a stage,
// and whether it is on there when nobody sets it.
func alpha(since string) featuregate.FeatureSpec {
	return spec(since, off, featuregate.FeatureSpec{PreRelease: featuregate.Alpha})
}

func beta(since string, enabled bool) featuregate.FeatureSpec {
	return spec(since, enabled, featuregate.FeatureSpec{PreRelease: featuregate.Beta})
}

func ga(since string, enabled bool) featuregate.FeatureSpec {
	return spec(since, enabled, featuregate.FeatureSpec{PreRelease: featuregate.GA})
}

func deprecated(since string, enabled bool) featuregate.FeatureSpec {
	return spec(since, enabled, featuregate.FeatureSpec{PreRelease: featuregate.Deprecated})
}

// locked makes a stage's default the only value allowed.
func locked(s featuregate.FeatureSpec) featuregate.FeatureSpec {
	s.LockToDefault = true
	return s
}

// needsAll limits a stage to clusters whose components are all of the given
// release or later (--min-compatibility-version).
func needsAll(s featuregate.FeatureSpec, oldest string) featuregate.FeatureSpec {
	s.MinCompatibilityVersion = version.MustParse(oldest)
	return s
}

// kubernetesGates are the gates that no library of ours registers: those of
// kubelet, scheduler and API server too, since a cluster is usually given the
// same --feature-gates everywhere. The stages are those of Kubernetes 1.37.
//
// The function is longer than others because it is a table.
func kubernetesGates() map[featuregate.Feature]featuregate.VersionedSpecs {
	return map[featuregate.Feature]featuregate.VersionedSpecs{
		"AllowDNSOnlyNodeCSR":                              {ga("1.0", on), deprecated("1.31", off)},
		"AllowInsecureKubeletCertificateSigningRequests":   {ga("1.0", on), deprecated("1.31", off)},
		"AllowOverwriteTerminationGracePeriodSeconds":      {ga("1.0", on), deprecated("1.32", off), locked(deprecated("1.35", off))},
		"AllowServiceExternalIPs":                          {ga("1.0", on)},
		"AtomicWriteVolumeUserFields":                      {alpha("1.37")},
		"AuthorizePodWebsocketUpgradeCreatePermission":     {beta("1.35", on)},
		"CPUManagerPolicyAlphaOptions":                     {alpha("1.23")},
		"CPUManagerPolicyBetaOptions":                      {beta("1.23", on)},
		"CPUManagerPolicyOptions":                          {alpha("1.22"), beta("1.23", on), locked(ga("1.33", on))},
		"CRDObservedGenerationTracking":                    {beta("1.35", off), beta("1.36", on)},
		"CRDValidationRatcheting":                          {alpha("1.28"), beta("1.30", on), locked(ga("1.33", on))},
		"CRIListStreaming":                                 {alpha("1.36")},
		"CSIServiceAccountTokenSecrets":                    {beta("1.35", on), locked(ga("1.36", on))},
		"CSIVolumeHealth":                                  {alpha("1.21")},
		"ChangeContainerStatusOnKubeletRestart":            {ga("1.0", on), deprecated("1.35", off)},
		"ClearingNominatedNodeNameAfterBinding":            {alpha("1.34"), beta("1.35", on)},
		"ClusterTrustBundle":                               {alpha("1.27"), beta("1.33", off), ga("1.37", on)},
		"ClusterTrustBundleProjection":                     {alpha("1.29"), beta("1.33", off), ga("1.37", on)},
		"CompositePodGroup":                                {alpha("1.37")},
		"ContainerCheckpoint":                              {alpha("1.25"), beta("1.30", on)},
		"ContainerRestartRules":                            {alpha("1.34"), beta("1.35", on)},
		"ContainerStopSignals":                             {alpha("1.33")},
		"CrossNamespaceVolumeDataSource":                   {alpha("1.26")},
		"CustomCPUCFSQuotaPeriod":                          {alpha("1.12"), ga("1.36", on)},
		"CustomResourceFieldSelectors":                     {alpha("1.30"), beta("1.31", on), locked(ga("1.32", on))},
		"DRAAdminAccess":                                   {alpha("1.32"), beta("1.34", on), locked(ga("1.36", on))},
		"DRAConsumableCapacity":                            {alpha("1.34"), beta("1.36", on)},
		"DRADerivedAttributes":                             {alpha("1.37")},
		"DRADeviceBindingConditions":                       {alpha("1.34"), beta("1.36", on)},
		"DRADeviceCompatibilityGroups":                     {alpha("1.37")},
		"DRADeviceTaintRules":                              {alpha("1.35"), beta("1.36", off), ga("1.37", on)},
		"DRADeviceTaints":                                  {alpha("1.33"), beta("1.36", on), ga("1.37", on)},
		"DRAExtendedResource":                              {alpha("1.34"), beta("1.36", on), locked(ga("1.37", on))},
		"DRAFractionalCapacityRange":                       {beta("1.37", off), needsAll(beta("1.37", on), "1.37")},
		"DRAListTypeAttributes":                            {alpha("1.36")},
		"DRANodeAllocatableResources":                      {alpha("1.36")},
		"DRAOptionalNodeOperations":                        {alpha("1.37")},
		"DRAPartitionableDevices":                          {alpha("1.33"), beta("1.36", on)},
		"DRAPartitionableDevicesType":                      {alpha("1.37")},
		"DRAPrioritizedList":                               {alpha("1.33"), beta("1.34", on), ga("1.36", on), locked(ga("1.37", on))},
		"DRAResourceClaimDeviceStatus":                     {alpha("1.32"), beta("1.33", on), locked(ga("1.37", on))},
		"DRAResourceClaimGranularStatusAuthorization":      {beta("1.36", on)},
		"DRAResourcePoolStatus":                            {alpha("1.36")},
		"DRASchedulerFilterTimeout":                        {beta("1.34", on)},
		"DRAWorkloadResourceClaims":                        {alpha("1.36"), beta("1.37", off)},
		"DefaultPodSysctls":                                {alpha("1.37")},
		"DeploymentReplicaSetTerminatingReplicas":          {alpha("1.33"), beta("1.35", on)},
		"DisableAllocatorDualWrite":                        {alpha("1.31"), beta("1.33", off), ga("1.34", on), locked(ga("1.35", on))},
		"DisableCPUQuotaWithExclusiveCPUs":                 {beta("1.33", on), deprecated("1.36", on), locked(deprecated("1.37", on))},
		"DisableNodeKubeProxyVersion":                      {alpha("1.29"), deprecated("1.31", off), deprecated("1.33", on), locked(deprecated("1.36", on))},
		"DynamicResourceAllocation":                        {alpha("1.26"), beta("1.32", off), ga("1.34", on), locked(ga("1.35", on))},
		"EmptyDirVolumeMode":                               {alpha("1.37")},
		"EnvFiles":                                         {alpha("1.34"), beta("1.35", on)},
		"EventedPLEG":                                      {alpha("1.26")},
		"EvictionRequestAPI":                               {alpha("1.37")},
		"ExecProbeTimeout":                                 {ga("1.20", on), locked(ga("1.35", on))},
		"ExtendWebSocketsToKubelet":                        {beta("1.36", on)},
		"ExternalServiceAccountTokenSigner":                {alpha("1.32"), beta("1.34", on), locked(ga("1.36", on))},
		"GRPCContainerProbeTLS":                            {alpha("1.37")},
		"GenericWorkload":                                  {alpha("1.35"), beta("1.37", off)},
		"GitRepoVolumeDriver":                              {ga("1.0", on), deprecated("1.33", off), locked(deprecated("1.36", off))},
		"GracefulNodeShutdown":                             {alpha("1.20"), beta("1.21", on)},
		"GracefulNodeShutdownBasedOnPodPriority":           {alpha("1.23"), beta("1.24", on)},
		"H2CContainerProbe":                                {alpha("1.37")},
		"HPAConfigurableTolerance":                         {alpha("1.33"), beta("1.35", on), locked(ga("1.37", on))},
		"HPAGeneration":                                    {beta("1.37", on)},
		"HPAOptimizedSelectorStore":                        {beta("1.37", on)},
		"HPAScaleToZero":                                   {alpha("1.16"), beta("1.37", on)},
		"HostnameOverride":                                 {alpha("1.34"), beta("1.35", on), locked(ga("1.37", on))},
		"HugepageAwareEviction":                            {beta("1.37", on)},
		"ImageMaximumGCAge":                                {alpha("1.29"), beta("1.30", on), locked(ga("1.35", on))},
		"ImageVolume":                                      {alpha("1.31"), beta("1.33", off), beta("1.35", on), locked(ga("1.36", on))},
		"ImageVolumeWithDigest":                            {alpha("1.35")},
		"InPlacePodLevelResourcesVerticalScaling":          {alpha("1.35"), beta("1.36", on)},
		"InPlacePodVerticalScaling":                        {alpha("1.27"), beta("1.33", on), locked(ga("1.35", on))},
		"InPlacePodVerticalScalingExclusiveCPUs":           {alpha("1.32")},
		"InPlacePodVerticalScalingExclusiveMemory":         {alpha("1.34")},
		"InPlacePodVerticalScalingInitContainers":          {beta("1.36", on), locked(ga("1.37", on))},
		"InPlacePodVerticalScalingMemoryBackedVolumes":     {alpha("1.37")},
		"InPlacePodVerticalScalingSchedulerPreemption":     {alpha("1.37")},
		"InterPodAffinityHostnameFastPath":                 {alpha("1.37")},
		"JobManagedBy":                                     {alpha("1.30"), beta("1.32", on), locked(ga("1.35", on))},
		"KubeProxyIPVS":                                    {ga("1.0", on), deprecated("1.37", on)},
		"KubeProxyNFTablesLocalhostNodePorts":              {alpha("1.37")},
		"KubeletAllocatedPodsEndpoint":                     {alpha("1.37")},
		"KubeletCgroupDriverFromCRI":                       {alpha("1.28"), beta("1.31", on), locked(ga("1.34", on))},
		"KubeletCrashLoopBackOffMax":                       {alpha("1.32"), beta("1.35", on)},
		"KubeletEnsureSecretPulledImages":                  {alpha("1.33"), beta("1.35", on)},
		"KubeletFineGrainedAuthz":                          {alpha("1.32"), beta("1.33", on), locked(ga("1.36", on))},
		"KubeletInUserNamespace":                           {alpha("1.22"), beta("1.37", on)},
		"KubeletPSI":                                       {alpha("1.33"), beta("1.34", on), locked(ga("1.36", on))},
		"KubeletPodResourcesDynamicResources":              {alpha("1.27"), beta("1.34", on), locked(ga("1.36", on))},
		"KubeletPodResourcesGet":                           {alpha("1.27"), beta("1.34", on), locked(ga("1.36", on))},
		"KubeletPodResourcesListUseActivePods":             {ga("1.0", off), deprecated("1.34", on)},
		"KubeletRegistrationGetOnExistsOnly":               {ga("1.0", on), deprecated("1.32", off)},
		"KubeletSeparateDiskGC":                            {alpha("1.29"), beta("1.31", on)},
		"KubeletServiceAccountTokenForCredentialProviders": {alpha("1.33"), beta("1.34", on)},
		"KubeletTracing":                                   {alpha("1.25"), beta("1.27", on), locked(ga("1.34", on))},
		"LocalStorageCapacityIsolationFSQuotaMonitoring":   {alpha("1.15"), beta("1.31", off)},
		"MatchLabelKeysInPodAffinity":                      {alpha("1.29"), beta("1.31", on), locked(ga("1.33", on))},
		"MatchLabelKeysInPodTopologySpread":                {alpha("1.25"), beta("1.27", on)},
		"MatchLabelKeysInPodTopologySpreadSelectorMerge":   {beta("1.34", on)},
		"MaxUnavailableStatefulSet":                        {alpha("1.24"), beta("1.35", off), beta("1.37", on)},
		"MemoryQoS":                                        {alpha("1.22"), beta("1.37", on)},
		"MultiCIDRServiceAllocator":                        {alpha("1.27"), beta("1.31", off), ga("1.33", on), locked(ga("1.34", on))},
		"MutableCSINodeAllocatableCount":                   {alpha("1.33"), beta("1.34", off), beta("1.35", on), locked(ga("1.36", on))},
		"MutablePVNodeAffinity":                            {alpha("1.35")},
		"MutablePodResourcesForSuspendedJobs":              {alpha("1.35"), beta("1.36", on)},
		"MutableSchedulingDirectivesForSuspendedJobs":      {alpha("1.35"), beta("1.36", on)},
		"NFTablesNetlink":                                  {beta("1.37", on)},
		"NFTablesProxyMode":                                {alpha("1.29"), beta("1.31", on), locked(ga("1.33", on))},
		"NodeControllerLeaseCircuitBreaker":                {beta("1.37", on)},
		"NodeDeclaredFeatures":                             {alpha("1.35"), beta("1.36", on), locked(ga("1.37", on))},
		"NodeInclusionPolicyInPodTopologySpread":           {alpha("1.25"), beta("1.26", on), locked(ga("1.33", on))},
		"NodeLifecycleConditions":                          {alpha("1.37")},
		"NodeLogQuery":                                     {alpha("1.27"), beta("1.30", off), locked(ga("1.36", on))},
		"NodeSwap":                                         {alpha("1.22"), beta("1.28", off), beta("1.30", on), locked(ga("1.34", on))},
		"NominatedNodeNameForExpectation":                  {alpha("1.34"), beta("1.35", on)},
		"OpportunisticBatching":                            {beta("1.35", on)},
		"PLEGOnDemandRelist":                               {beta("1.36", on), locked(ga("1.37", on))},
		"PersistentVolumeClaimUnusedSinceTime":             {alpha("1.36"), beta("1.37", on)},
		"PodAndContainerStatsFromCRI":                      {alpha("1.23"), beta("1.37", off)},
		"PodCertificateRequest":                            {alpha("1.34"), beta("1.35", off), ga("1.37", on)},
		"PodDeletionCost":                                  {alpha("1.21"), beta("1.22", on)},
		"PodGroupPreemptionPolicy":                         {alpha("1.37")},
		"PodLevelResourceManagers":                         {alpha("1.36"), beta("1.37", off)},
		"PodLevelResources":                                {alpha("1.32"), beta("1.34", on)},
		"PodLevelResourcesFixDefaulting":                   {beta("1.37", on)},
		"PodLevelResourcesFixKubeletQOSClass":              {beta("1.37", on)},
		"PodLogsQuerySplitStreams":                         {alpha("1.32")},
		"PodObservedGenerationTracking":                    {alpha("1.33"), beta("1.34", on), locked(ga("1.35", on))},
		"PodReadyToStartContainersCondition":               {alpha("1.28"), beta("1.29", on), locked(ga("1.37", on))},
		"PodSchedulingReadiness":                           {alpha("1.26"), beta("1.27", on), locked(ga("1.30", on))},
		"PodTopologyLabelsAdmission":                       {alpha("1.33"), beta("1.35", on)},
		"PodsAPI":                                          {alpha("1.36"), beta("1.37", on)},
		"PortForwardWebsockets":                            {alpha("1.30"), beta("1.31", on)},
		"PreferSameTrafficDistribution":                    {alpha("1.33"), beta("1.34", on), locked(ga("1.35", on))},
		"ProcMountType":                                    {alpha("1.12"), beta("1.31", off), beta("1.33", on), locked(ga("1.36", on))},
		"QOSReserved":                                      {alpha("1.11")},
		"RecoverVolumeExpansionFailure":                    {alpha("1.23"), beta("1.32", on), locked(ga("1.34", on))},
		"RecursiveReadOnlyMounts":                          {alpha("1.30"), beta("1.31", on), locked(ga("1.33", on))},
		"ReduceDefaultCrashLoopBackOffDecay":               {alpha("1.33")},
		"RelaxedEnvironmentVariableValidation":             {alpha("1.30"), beta("1.32", on), locked(ga("1.34", on))},
		"RelaxedServiceNameValidation":                     {alpha("1.34"), beta("1.36", on), locked(ga("1.37", on))},
		"ReloadKubeletClientCAFile":                        {beta("1.36", on)},
		"ReloadKubeletServerCertificateFile":               {beta("1.31", on)},
		"ResourceHealthStatus":                             {alpha("1.31"), beta("1.36", on)},
		"ResourceHealthStatusMessage":                      {beta("1.36", on)},
		"RestartAllContainersOnContainerExits":             {alpha("1.35"), beta("1.36", on)},
		"RotateKubeletServerCertificate":                   {alpha("1.7"), beta("1.12", on)},
		"RuntimeClassInImageCriApi":                        {alpha("1.29")},
		"SELinuxChangePolicy":                              {alpha("1.32"), beta("1.33", on), locked(ga("1.36", on))},
		"SELinuxMount":                                     {alpha("1.30"), beta("1.33", off), ga("1.37", on)},
		"SELinuxMountReadWriteOncePod":                     {alpha("1.25"), beta("1.27", off), beta("1.28", on), locked(ga("1.36", on))},
		"SchedulerAsyncAPICalls":                           {beta("1.34", off)},
		"SchedulerAsyncPreemption":                         {alpha("1.32"), beta("1.33", on)},
		"SchedulerPopFromBackoffQ":                         {beta("1.33", on)},
		"SchedulerPreQueueingHints":                        {alpha("1.37")},
		"SeparateTaintEvictionController":                  {beta("1.29", on), locked(ga("1.34", on))},
		"ServiceAccountNodeAudienceRestriction":            {beta("1.32", off), beta("1.33", on)},
		"ServiceAccountTokenJTI":                           {alpha("1.29"), beta("1.30", on), locked(ga("1.32", on))},
		"ServiceAccountTokenNodeBinding":                   {alpha("1.29"), beta("1.31", on), locked(ga("1.33", on))},
		"ServiceAccountTokenNodeBindingValidation":         {alpha("1.29"), beta("1.30", on), locked(ga("1.32", on))},
		"ServiceAccountTokenPodNodeInfo":                   {alpha("1.29"), beta("1.30", on), locked(ga("1.32", on))},
		"ServiceCIDRStatusFieldWiping":                     {ga("1.0", off), deprecated("1.36", on)},
		"StaleControllerConsistencyDaemonSet":              {beta("1.36", on)},
		"StaleControllerConsistencyHPA":                    {beta("1.37", on)},
		"StaleControllerConsistencyJob":                    {beta("1.36", on)},
		"StaleControllerConsistencyReplicaSet":             {beta("1.36", on)},
		"StaleControllerConsistencyStatefulSet":            {beta("1.36", on)},
		"StatefulSetRecreateStrategy":                      {alpha("1.37")},
		"StatefulSetSemanticRevisionComparison":            {beta("1.0", on)},
		"StorageCapacityScoring":                           {alpha("1.33"), beta("1.37", on)},
		"StorageNamespaceIndex":                            {beta("1.30", on), deprecated("1.33", on)},
		"StorageVersionMigrator":                           {alpha("1.30"), beta("1.35", off), ga("1.37", on)},
		"StrictIPCIDRValidation":                           {alpha("1.33"), beta("1.36", on)},
		"SupplementalGroupsPolicy":                         {alpha("1.31"), beta("1.33", on), locked(ga("1.35", on))},
		"SystemdWatchdog":                                  {beta("1.32", on), locked(ga("1.35", on))},
		"TaintTolerationComparisonOperators":               {alpha("1.35")},
		"TopologyAwareWorkloadScheduling":                  {alpha("1.36")},
		"TopologyManagerPolicyAlphaOptions":                {alpha("1.26")},
		"TopologyManagerPolicyBetaOptions":                 {beta("1.26", off), beta("1.28", on)},
		"TopologyManagerPolicyOptions":                     {alpha("1.26"), beta("1.28", on), locked(ga("1.32", on))},
		"TranslateStreamCloseWebsocketRequests":            {alpha("1.29"), beta("1.30", on)},
		"UserNamespacesHostNetworkSupport":                 {alpha("1.35")},
		"UserNamespacesSupport":                            {alpha("1.25"), beta("1.30", off), beta("1.33", on), locked(ga("1.36", on))},
		"VolumeAttributesClass":                            {alpha("1.29"), beta("1.31", off), ga("1.34", on), locked(ga("1.36", on))},
		"VolumeBindMountOptions":                           {alpha("1.37")},
		"VolumeLimitScaling":                               {alpha("1.35"), beta("1.37", on)},
		"WinDSR":                                           {alpha("1.14"), beta("1.33", on), locked(ga("1.34", on))},
		"WinOverlay":                                       {alpha("1.14"), beta("1.20", on), locked(ga("1.34", on))},
		"WindowsCPUAndMemoryAffinity":                      {alpha("1.32")},
		"WindowsGracefulNodeShutdown":                      {alpha("1.32"), beta("1.34", on)},
		"WindowsHostNetwork":                               {alpha("1.26"), deprecated("1.33", off)},
		"WorkloadWithJob":                                  {alpha("1.36")},
	}
}
