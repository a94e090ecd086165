// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	"github.com/kcm-dev/kcm/pkg/features"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/controller"
)

// Controller is what a constructor builds: a named thing that runs until its context is done.
type Controller interface {
	controller.Interface
	// Run blocks until ctx is done and everything the controller started has stopped.
	Run(ctx context.Context)
}

// ControllerConstructor builds one controller from the context. A nil Controller without an error
// means that the configuration leaves it nothing to do; it is then skipped.
type ControllerConstructor func(ctx context.Context, cc ControllerContext, name string) (Controller, error)

// ControllerDescriptor says all there is to know about a controller before it is built.
type ControllerDescriptor struct {
	// Name is the canonical name, as --controllers, health checks, logs and metrics use it.
	Name string
	// Aliases are the older names that --controllers accepts too.
	Aliases []string
	// FeatureGates must all be on for the controller to be built.
	FeatureGates []featuregate.Feature
	// DisabledByDefault controllers run only when --controllers names them; "*" does not.
	DisabledByDefault bool
	// SpecialHandling marks the service account token controller: it is built before all others,
	// with the manager's own credentials, since theirs depend on it.
	SpecialHandling bool
	// Watches lists the resources whose typed informers the controller reads. A standby keeps
	// them warm, so that the controller has its caches the moment it may lead.
	Watches []schema.GroupVersionResource
	// Discovers returns which of the resources that discovery has found the controller watches, typed
	// or as metadata; a standby keeps these warm too. nil: Watches is all.
	Discovers func(lists []*metav1.APIResourceList) []schema.GroupVersionResource
	// Configured tells whether the configuration gives the controller anything to do. nil: always.
	Configured func(config *kubectrlmgrconfig.KubeControllerManagerConfiguration) bool
	// Constructor builds the controller. nil: known, but not part of this release yet.
	Constructor ControllerConstructor
}

// Available tells whether this release contains the controller.
func (d *ControllerDescriptor) Available() bool { return d.Constructor != nil }

// blockedBy returns the first required feature gate that is off, or "".
func (d *ControllerDescriptor) blockedBy(gates featuregate.FeatureGate) featuregate.Feature {
	for _, gate := range d.FeatureGates {
		if !features.EnabledIn(gates, gate) {
			return gate
		}
	}
	return ""
}

// NewControllerDescriptors returns the table of all controllers, in the order in which they are
// built. The slice and what it holds belong to the caller.
func NewControllerDescriptors() []*ControllerDescriptor {
	type gates = []featuregate.Feature
	return []*ControllerDescriptor{
		// The others may need the tokens that this one makes.
		{Name: names.ServiceAccountTokenController, Aliases: []string{"serviceaccount-token"}, SpecialHandling: true,
			Watches:    coreV1("serviceaccounts", "secrets"),
			Configured: hasServiceAccountKey, Constructor: newServiceAccountTokenController},

		{Name: names.EndpointsController, Aliases: []string{"endpoint"},
			Watches: coreV1("pods", "services", "endpoints"), Constructor: newEndpointsController},
		{Name: names.EndpointSliceController, Aliases: []string{"endpointslice"},
			Watches: append(discoveryV1("endpointslices"), coreV1("pods", "services", "nodes")...), Constructor: newEndpointSliceController},
		{Name: names.EndpointSliceMirroringController, Aliases: []string{"endpointslicemirroring"},
			Watches: append(discoveryV1("endpointslices"), coreV1("endpoints", "services")...), Constructor: newEndpointSliceMirroringController},
		{Name: names.ReplicationControllerController, Aliases: []string{"replicationcontroller"},
			Watches: coreV1("replicationcontrollers", "pods"), Constructor: newReplicationController},
		{Name: names.PodGarbageCollectorController, Aliases: []string{"podgc"},
			Watches: coreV1("pods", "nodes"), Constructor: newPodGarbageCollectorController},
		{Name: names.ResourceQuotaController, Aliases: []string{"resourcequota"},
			Watches:   append(coreV1("resourcequotas", "pods", "services", "persistentvolumeclaims"), resourceV1("resourceclaims", "deviceclasses")...),
			Discovers: quotaDiscovers, Constructor: newResourceQuotaController},
		{Name: names.NamespaceController, Aliases: []string{"namespace"},
			Watches: coreV1("namespaces"), Constructor: newNamespaceController},
		{Name: names.ServiceAccountController, Aliases: []string{"serviceaccount"},
			Watches: coreV1("serviceaccounts", "namespaces"), Constructor: newServiceAccountController},
		{Name: names.GarbageCollectorController, Aliases: []string{"garbagecollector"},
			Discovers:  garbagecollector.WatchedResources,
			Configured: garbageCollectorEnabled, Constructor: newGarbageCollectorController},
		{Name: names.DaemonSetController, Aliases: []string{"daemonset"},
			Watches: append(appsV1("daemonsets", "controllerrevisions"), coreV1("pods", "nodes")...), Constructor: newDaemonSetController},
		{Name: names.JobController, Aliases: []string{"job"},
			Watches: append(batchV1("jobs"), coreV1("pods")...), Constructor: newJobController},
		{Name: names.DeploymentController, Aliases: []string{"deployment"},
			Watches: append(appsV1("deployments", "replicasets"), coreV1("pods")...), Constructor: newDeploymentController},
		{Name: names.ReplicaSetController, Aliases: []string{"replicaset"},
			Watches: append(appsV1("replicasets"), coreV1("pods")...), Constructor: newReplicaSetController},
		{Name: names.HorizontalPodAutoscalerController, Aliases: []string{"horizontalpodautoscaling"}},
		{Name: names.DisruptionController, Aliases: []string{"disruption"},
			Watches: slices.Concat(coreV1("pods", "replicationcontrollers"), appsV1("replicasets", "deployments", "statefulsets"),
				policyV1("poddisruptionbudgets")), Constructor: newDisruptionController},
		{Name: names.StatefulSetController, Aliases: []string{"statefulset"},
			Watches: append(appsV1("statefulsets", "controllerrevisions"), coreV1("pods", "persistentvolumeclaims")...), Constructor: newStatefulSetController},
		{Name: names.CronJobController, Aliases: []string{"cronjob"},
			Watches: batchV1("cronjobs", "jobs"), Constructor: newCronJobController},
		{Name: names.CertificateSigningRequestSigningController, Aliases: []string{"csrsigning"}},
		{Name: names.CertificateSigningRequestApprovingController, Aliases: []string{"csrapproving"}},
		{Name: names.CertificateSigningRequestCleanerController, Aliases: []string{"csrcleaner"}},
		{Name: names.PodCertificateRequestCleanerController, FeatureGates: gates{features.PodCertificateRequest}},
		{Name: names.TTLController, Aliases: []string{"ttl"}},
		{Name: names.BootstrapSignerController, Aliases: []string{"bootstrapsigner"}, DisabledByDefault: true},
		{Name: names.TokenCleanerController, Aliases: []string{"tokencleaner"}, DisabledByDefault: true},
		{Name: names.NodeIpamController, Aliases: []string{"nodeipam"}},
		{Name: names.NodeLifecycleController, Aliases: []string{"nodelifecycle"}},
		{Name: names.PersistentVolumeBinderController, Aliases: []string{"persistentvolume-binder"}},
		{Name: names.PersistentVolumeAttachDetachController, Aliases: []string{"attachdetach"}},
		{Name: names.PersistentVolumeExpanderController, Aliases: []string{"persistentvolume-expander"}},
		{Name: names.ClusterRoleAggregationController, Aliases: []string{"clusterrole-aggregation"}},
		{Name: names.PersistentVolumeClaimProtectionController, Aliases: []string{"pvc-protection"}},
		{Name: names.PersistentVolumeProtectionController, Aliases: []string{"pv-protection"}},
		{Name: names.VolumeAttributesClassProtectionController, FeatureGates: gates{features.VolumeAttributesClass}},
		{Name: names.TTLAfterFinishedController, Aliases: []string{"ttl-after-finished"},
			Watches: batchV1("jobs"), Constructor: newTTLAfterFinishedController},
		{Name: names.RootCACertificatePublisherController, Aliases: []string{"root-ca-cert-publisher"},
			Watches: coreV1("configmaps", "namespaces"), Constructor: newRootCACertificatePublisherController},
		{Name: names.KubeAPIServerClusterTrustBundlePublisherController, FeatureGates: gates{features.ClusterTrustBundle}},
		{Name: names.EphemeralVolumeController, Aliases: []string{"ephemeral-volume"}},
		{Name: names.StorageVersionGarbageCollectorController, Aliases: []string{"storage-version-gc"},
			FeatureGates: gates{features.APIServerIdentity, features.StorageVersionAPI}},
		{Name: names.ResourceClaimController, Aliases: []string{"resource-claim-controller"},
			FeatureGates: gates{features.DynamicResourceAllocation}},
		{Name: names.ResourcePoolStatusRequestController, FeatureGates: gates{features.DRAResourcePoolStatus}},
		{Name: names.DeviceTaintEvictionController,
			FeatureGates: gates{features.DynamicResourceAllocation, features.DRADeviceTaints}},
		{Name: names.LegacyServiceAccountTokenCleanerController, Aliases: []string{"legacy-service-account-token-cleaner"}},
		{Name: names.ValidatingAdmissionPolicyStatusController},
		{Name: names.TaintEvictionController, FeatureGates: gates{features.SeparateTaintEvictionController}},
		{Name: names.ServiceCIDRController, FeatureGates: gates{features.MultiCIDRServiceAllocator}},
		{Name: names.StorageVersionMigratorController, Aliases: []string{"svm"}},
		{Name: names.SELinuxWarningController, FeatureGates: gates{features.SELinuxChangePolicy}, DisabledByDefault: true},
		{Name: names.PodGroupProtectionController, FeatureGates: gates{features.GenericWorkload}},
	}
}

// KnownControllers returns the canonical names of all controllers, sorted.
func KnownControllers() []string {
	return namesWhere(func(*ControllerDescriptor) bool { return true })
}

// ControllersDisabledByDefault returns the names of the controllers that "*" does not switch on, sorted.
func ControllersDisabledByDefault() []string {
	return namesWhere(func(d *ControllerDescriptor) bool { return d.DisabledByDefault })
}

// ControllersNotAvailable returns the names of the controllers that this release does not contain, sorted.
func ControllersNotAvailable() []string {
	return namesWhere(func(d *ControllerDescriptor) bool { return !d.Available() })
}

// ControllerAliases maps each alias to its canonical name.
func ControllerAliases() map[string]string {
	aliases := map[string]string{}
	for _, d := range NewControllerDescriptors() {
		for _, alias := range d.Aliases {
			aliases[alias] = d.Name
		}
	}
	return aliases
}

func namesWhere(want func(*ControllerDescriptor) bool) []string {
	found := []string{}
	for _, d := range NewControllerDescriptors() {
		if want(d) {
			found = append(found, d.Name)
		}
	}
	slices.Sort(found)
	return found
}

func coreV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(corev1.SchemeGroupVersion, resources)
}

func appsV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(appsv1.SchemeGroupVersion, resources)
}

func batchV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(batchv1.SchemeGroupVersion, resources)
}

func policyV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(policyv1.SchemeGroupVersion, resources)
}

func discoveryV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(discoveryv1.SchemeGroupVersion, resources)
}

func resourceV1(resources ...string) []schema.GroupVersionResource {
	return inVersion(resourceapi.SchemeGroupVersion, resources)
}

func inVersion(version schema.GroupVersion, resources []string) []schema.GroupVersionResource {
	all := make([]schema.GroupVersionResource, 0, len(resources))
	for _, resource := range resources {
		all = append(all, version.WithResource(resource))
	}
	return all
}
