// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names holds the canonical names of the controllers.
//
// A canonical name is what --controllers takes, what health checks, logs and
// the running_managed_controllers metric show, and the title of a controller's
// section in --help. The names and the identifiers are upstream's, so that
// code and manifests written for upstream's manager mean the same here.
//
// A name never changes once released: a controller that is renamed keeps its
// old name as an alias in the descriptor table of package app.
package names

// Canonical names, grouped as the descriptor table of package app groups them.
const (
	// apps
	DaemonSetController             = "daemonset-controller"
	DeploymentController            = "deployment-controller"
	ReplicaSetController            = "replicaset-controller"
	ReplicationControllerController = "replicationcontroller-controller"
	StatefulSetController           = "statefulset-controller"

	// batch
	CronJobController            = "cronjob-controller"
	JobController                = "job-controller"
	PodGroupProtectionController = "podgroup-protection-controller"
	TTLAfterFinishedController   = "ttl-after-finished-controller"

	// autoscaling and policy
	DisruptionController              = "disruption-controller"
	HorizontalPodAutoscalerController = "horizontal-pod-autoscaler-controller"

	// core
	GarbageCollectorController    = "garbage-collector-controller"
	NamespaceController           = "namespace-controller"
	NodeIpamController            = "node-ipam-controller"
	NodeLifecycleController       = "node-lifecycle-controller"
	PodGarbageCollectorController = "pod-garbage-collector-controller"
	ResourceQuotaController       = "resourcequota-controller"
	TaintEvictionController       = "taint-eviction-controller"
	TTLController                 = "ttl-controller"

	// service accounts, bootstrap and RBAC
	BootstrapSignerController                  = "bootstrap-signer-controller"
	ClusterRoleAggregationController           = "clusterrole-aggregation-controller"
	LegacyServiceAccountTokenCleanerController = "legacy-serviceaccount-token-cleaner-controller"
	ServiceAccountController                   = "serviceaccount-controller"
	ServiceAccountTokenController              = "serviceaccount-token-controller"
	TokenCleanerController                     = "token-cleaner-controller"

	// certificates
	CertificateSigningRequestApprovingController       = "certificatesigningrequest-approving-controller"
	CertificateSigningRequestCleanerController         = "certificatesigningrequest-cleaner-controller"
	CertificateSigningRequestSigningController         = "certificatesigningrequest-signing-controller"
	KubeAPIServerClusterTrustBundlePublisherController = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
	PodCertificateRequestCleanerController             = "podcertificaterequest-cleaner-controller"
	RootCACertificatePublisherController               = "root-ca-certificate-publisher-controller"

	// network
	EndpointSliceController          = "endpointslice-controller"
	EndpointSliceMirroringController = "endpointslice-mirroring-controller"
	EndpointsController              = "endpoints-controller"
	ServiceCIDRController            = "service-cidr-controller"

	// storage
	EphemeralVolumeController                 = "ephemeral-volume-controller"
	PersistentVolumeAttachDetachController    = "persistentvolume-attach-detach-controller"
	PersistentVolumeBinderController          = "persistentvolume-binder-controller"
	PersistentVolumeClaimProtectionController = "persistentvolumeclaim-protection-controller"
	PersistentVolumeExpanderController        = "persistentvolume-expander-controller"
	PersistentVolumeProtectionController      = "persistentvolume-protection-controller"
	SELinuxWarningController                  = "selinux-warning-controller"
	VolumeAttributesClassProtectionController = "volumeattributesclass-protection-controller"

	// dynamic resource allocation
	DeviceTaintEvictionController       = "device-taint-eviction-controller"
	ResourceClaimController             = "resourceclaim-controller"
	ResourcePoolStatusRequestController = "resourcepoolstatusrequest-controller"

	// API machinery
	StorageVersionGarbageCollectorController  = "storageversion-garbage-collector-controller"
	StorageVersionMigratorController          = "storage-version-migrator-controller"
	ValidatingAdmissionPolicyStatusController = "validatingadmissionpolicy-status-controller"
)
