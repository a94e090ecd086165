// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apisurface pins the exported identifiers that programs written against upstream's
// controller packages use: they compile against ours when only the import path changes. An
// assignment here that does not compile is a break for them.
//
// The list is upstream's 1.37.2, for the packages that are built so far.
package apisurface

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	clientset "k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/spf13/cobra"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
	kcmtesting "github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/testing"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/certificates/rootcacertpublisher"
	"github.com/kcm-dev/kcm/pkg/controller/cronjob"
	"github.com/kcm-dev/kcm/pkg/controller/daemon"
	"github.com/kcm-dev/kcm/pkg/controller/deployment"
	deploymentutil "github.com/kcm-dev/kcm/pkg/controller/deployment/util"
	"github.com/kcm-dev/kcm/pkg/controller/disruption"
	"github.com/kcm-dev/kcm/pkg/controller/endpoint"
	"github.com/kcm-dev/kcm/pkg/controller/endpointslice"
	"github.com/kcm-dev/kcm/pkg/controller/endpointslicemirroring"
	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	"github.com/kcm-dev/kcm/pkg/controller/job"
	jobmetrics "github.com/kcm-dev/kcm/pkg/controller/job/metrics"
	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
	"github.com/kcm-dev/kcm/pkg/controller/namespace"
	"github.com/kcm-dev/kcm/pkg/controller/podgc"
	podgcmetrics "github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/pkg/controller/replication"
	"github.com/kcm-dev/kcm/pkg/controller/resourcequota"
	serviceaccountcontroller "github.com/kcm-dev/kcm/pkg/controller/serviceaccount"
	"github.com/kcm-dev/kcm/pkg/controller/statefulset"
	"github.com/kcm-dev/kcm/pkg/controller/ttlafterfinished"
	"github.com/kcm-dev/kcm/pkg/serviceaccount"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// cmd/kube-controller-manager/app
const _ string = app.ConfigzName

var (
	_ func() *cobra.Command                                 = app.NewControllerManagerCommand
	_ func() map[string]string                              = app.ControllerAliases
	_ func() []string                                       = app.ControllersDisabledByDefault
	_ func() []string                                       = app.KnownControllers
	_ func(context.Context, *config.CompletedConfig) error  = app.Run
	_ func(*config.Config) *config.CompletedConfig          = (*config.Config).Complete
	_ func() (*options.KubeControllerManagerOptions, error) = options.NewKubeControllerManagerOptions

	_ func(*options.KubeControllerManagerOptions, []string, []string, map[string]string) cliflag.NamedFlagSets                   = (*options.KubeControllerManagerOptions).Flags
	_ func(options.KubeControllerManagerOptions, context.Context, []string, []string, map[string]string) (*config.Config, error) = options.KubeControllerManagerOptions.Config
	_ func(t *testing.T, ctx context.Context, customFlags []string) (result kcmtesting.TestServer, err error)                    = kcmtesting.StartTestServer
	_ func(t *testing.T, ctx context.Context, flags []string) *kcmtesting.TestServer                                             = kcmtesting.StartTestServerOrDie
)

var _ = config.Config{
	Flagz:                     flagz.Reader(nil),
	ComponentConfig:           kubectrlmgrconfig.KubeControllerManagerConfiguration{},
	SecureServing:             (*apiserver.SecureServingInfo)(nil),
	Authentication:            apiserver.AuthenticationInfo{},
	Authorization:             apiserver.AuthorizationInfo{},
	Client:                    (*clientset.Clientset)(nil),
	Kubeconfig:                (*rest.Config)(nil),
	EventBroadcaster:          record.EventBroadcaster(nil),
	EventRecorder:             record.EventRecorder(nil),
	ControllerShutdownTimeout: time.Duration(0),
	ComponentGlobalsRegistry:  basecompatibility.ComponentGlobalsRegistry(nil),
}

var _ = options.KubeControllerManagerOptions{
	ComponentGlobalsRegistry: basecompatibility.ComponentGlobalsRegistry(nil),
	ParsedFlags:              (*cliflag.NamedFlagSets)(nil),
	SecureServing:            (*apiserveroptions.SecureServingOptions)(nil),
}

var _ = kcmtesting.TestServer{
	Options:    (*options.KubeControllerManagerOptions)(nil),
	Config:     (*config.Config)(nil),
	TearDownFn: kcmtesting.TearDownFunc(nil),
}

// cmd/kube-controller-manager/names
const _ string = names.TaintEvictionController

// pkg/controller
var (
	_ controller.PodControlInterface = controller.RealPodControl{
		KubeClient: clientset.Interface(nil),
		Recorder:   record.EventRecorder(nil),
		OnWrite:    func(*corev1.Pod, *metav1.OwnerReference) {},
	}
	_ func(r controller.RealPodControl, ctx context.Context, namespace string, template *corev1.PodTemplateSpec, controllerObject runtime.Object, controllerRef *metav1.OwnerReference, generateName string) error = controller.RealPodControl.CreatePodsWithGenerateName

	_ func(template *corev1.PodTemplateSpec, collisionCount *int32) string = controller.ComputeHash
	_ func() time.Duration                                                 = controller.NoResyncPeriodFunc
)

// pkg/controller/certificates/rootcacertpublisher
var (
	_ func(coreinformers.ConfigMapInformer, coreinformers.NamespaceInformer, clientset.Interface, []byte) (*rootcacertpublisher.Publisher, error) = rootcacertpublisher.NewPublisher
	_ runner                                                                                                                                      = (*rootcacertpublisher.Publisher)(nil)
)

// pkg/controller/deployment
var (
	_ func(context.Context, appsinformers.DeploymentInformer, appsinformers.ReplicaSetInformer, coreinformers.PodInformer, clientset.Interface) (*deployment.DeploymentController, error) = deployment.NewDeploymentController
	_ runner                                                                                                                                                                              = (*deployment.DeploymentController)(nil)
)

// pkg/controller/deployment/util
const (
	_ string = deploymentutil.DesiredReplicasAnnotation
	_ string = deploymentutil.MaxReplicasAnnotation
	_ string = deploymentutil.MinimumReplicasAvailable
	_ string = deploymentutil.MinimumReplicasUnavailable
	_ string = deploymentutil.NewRSAvailableReason
	_ string = deploymentutil.RevisionAnnotation
	_ string = deploymentutil.TimedOutReason
)

var (
	_ func(*appsv1.Deployment, *appsv1.DeploymentStatus) bool                                     = deploymentutil.DeploymentComplete
	_ func(*appsv1.Deployment, []*appsv1.ReplicaSet) *appsv1.ReplicaSet                           = deploymentutil.FindNewReplicaSet
	_ func(*appsv1.Deployment, []*appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, []*appsv1.ReplicaSet) = deploymentutil.FindOldReplicaSets
	_ func(appsv1.DeploymentStatus, appsv1.DeploymentConditionType) *appsv1.DeploymentCondition   = deploymentutil.GetDeploymentCondition
	_ func(klog.Logger, *appsv1.ReplicaSet) (int32, bool)                                         = deploymentutil.GetDesiredReplicasAnnotation
	_ func([]*appsv1.ReplicaSet) int32                                                            = deploymentutil.GetReplicaCountForReplicaSets
	_ func(*appsv1.Deployment, deploymentutil.RsListFunc) ([]*appsv1.ReplicaSet, error)           = deploymentutil.ListReplicaSets
	_ func(appsv1.Deployment) int32                                                               = deploymentutil.MaxSurge
	_ func(*appsv1.Deployment) int32                                                              = deploymentutil.MinAvailable
	_ func(appsclient.AppsV1Interface) deploymentutil.RsListFunc                                  = deploymentutil.RsListFromClient
	_ func(func() (*appsv1.Deployment, error), int64, time.Duration, time.Duration) error         = deploymentutil.WaitForObservedDeployment
)

// The type of the last parameter is not exported, so it cannot be named here.
func _(d *appsv1.Deployment, rsList []*appsv1.ReplicaSet) (*corev1.PodList, error) {
	return deploymentutil.ListPods(d, rsList, func(string, metav1.ListOptions) (*corev1.PodList, error) { return nil, nil })
}

// pkg/controller/garbagecollector
var (
	_ func(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface, mapper meta.ResettableRESTMapper, ignoredResources map[schema.GroupResource]struct{}, sharedInformers informerfactory.InformerFactory, informersStarted <-chan struct{}) (*garbagecollector.GarbageCollector, error) = garbagecollector.NewGarbageCollector

	_ func(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface, mapper meta.ResettableRESTMapper, graphBuilder *garbagecollector.GraphBuilder) (*garbagecollector.GarbageCollector, error) = garbagecollector.NewComposedGarbageCollector

	_ func(ctx context.Context, metadataClient metadata.Interface, mapper meta.ResettableRESTMapper, ignoredResources map[schema.GroupResource]struct{}, sharedInformers informerfactory.InformerFactory, informersStarted <-chan struct{}) *garbagecollector.GraphBuilder = garbagecollector.NewDependencyGraphBuilder

	_ func() map[schema.GroupResource]struct{}                                                                     = garbagecollector.DefaultIgnoredResources
	_ func(*garbagecollector.GarbageCollector, types.UID) bool                                                     = (*garbagecollector.GarbageCollector).GraphHasUID
	_ func(*garbagecollector.GarbageCollector, klog.Logger) bool                                                   = (*garbagecollector.GarbageCollector).IsSynced
	_ func(*garbagecollector.GarbageCollector, context.Context, int, time.Duration)                                = (*garbagecollector.GarbageCollector).Run
	_ func(*garbagecollector.GarbageCollector, context.Context, discovery.ServerResourcesInterface, time.Duration) = (*garbagecollector.GarbageCollector).Sync
	_ func(*garbagecollector.GraphBuilder, context.Context)                                                        = (*garbagecollector.GraphBuilder).Run
	_ func(klog.Logger, discovery.ServerResourcesInterface) (map[schema.GroupVersionResource]struct{}, error)      = garbagecollector.GetDeletableResources
)

// pkg/controller/job, pkg/controller/job/metrics, pkg/controller/job/util
var (
	_ func(context.Context, clientset.Interface, coreinformers.PodInformer, batchinformers.JobInformer, schedulinginformers.WorkloadInformer, schedulinginformers.PodGroupInformer) (*job.Controller, error) = job.NewController

	_ runner                  = (*job.Controller)(nil)
	_ *time.Duration          = &job.DefaultJobPodFailureBackOff
	_ *time.Duration          = &job.MaxJobPodFailureBackOff
	_ *time.Duration          = &job.DefaultJobApiBackOff
	_ *time.Duration          = &job.MaxJobApiBackOff
	_ *time.Duration          = &job.SyncJobBatchPeriod
	_ *int                    = &job.MaxPodCreateDeletePerSync
	_ *int                    = &job.MaxUncountedPods
	_ *metrics.CounterVec     = jobmetrics.JobByExternalControllerTotal
	_ *metrics.CounterVec     = jobmetrics.JobFinishedIndexesTotal
	_ *metrics.CounterVec     = jobmetrics.JobFinishedNum
	_ *metrics.CounterVec     = jobmetrics.JobPodsCreationTotal
	_ *metrics.CounterVec     = jobmetrics.JobPodsFinished
	_ *metrics.CounterVec     = jobmetrics.PodFailuresHandledByFailurePolicy
	_ *metrics.CounterVec     = jobmetrics.TerminatedPodsTrackingFinalizerTotal
	_ func(*batchv1.Job) bool = jobutil.IsJobFinished
)

// pkg/controller/namespace
var (
	_ func(context.Context, clientset.Interface, metadata.Interface, func() ([]*metav1.APIResourceList, error), coreinformers.NamespaceInformer, time.Duration, corev1.FinalizerName) *namespace.NamespaceController = namespace.NewNamespaceController
	_ runner                                                                                                                                                                                                         = (*namespace.NamespaceController)(nil)
)

// pkg/controller/daemon
var (
	_ func(ctx context.Context, daemonSetInformer appsinformers.DaemonSetInformer, historyInformer appsinformers.ControllerRevisionInformer, podInformer coreinformers.PodInformer, nodeInformer coreinformers.NodeInformer, kubeClient clientset.Interface, failedPodsBackoff *flowcontrol.Backoff) (*daemon.DaemonSetsController, error) = daemon.NewDaemonSetsController

	_ runner = (*daemon.DaemonSetsController)(nil)
)

// pkg/controller/disruption
var (
	_ func(ctx context.Context, podInformer coreinformers.PodInformer, pdbInformer policyinformers.PodDisruptionBudgetInformer, rcInformer coreinformers.ReplicationControllerInformer, rsInformer appsinformers.ReplicaSetInformer, dInformer appsinformers.DeploymentInformer, ssInformer appsinformers.StatefulSetInformer, kubeClient clientset.Interface, restMapper meta.RESTMapper, scaleNamespacer scale.ScalesGetter, discoveryClient discovery.DiscoveryInterface) *disruption.DisruptionController = disruption.NewDisruptionController

	_ func(ctx context.Context, podInformer coreinformers.PodInformer, pdbInformer policyinformers.PodDisruptionBudgetInformer, rcInformer coreinformers.ReplicationControllerInformer, rsInformer appsinformers.ReplicaSetInformer, dInformer appsinformers.DeploymentInformer, ssInformer appsinformers.StatefulSetInformer, kubeClient clientset.Interface, restMapper meta.RESTMapper, scaleNamespacer scale.ScalesGetter, discoveryClient discovery.DiscoveryInterface, clock clock.WithTicker, stalePodDisruptionTimeout time.Duration) *disruption.DisruptionController = disruption.NewDisruptionControllerInternal

	_ runner = (*disruption.DisruptionController)(nil)
)

// pkg/controller/podgc, pkg/controller/podgc/metrics
const _ = podgcmetrics.PodGCReasonTerminatingOutOfService

var (
	_ func(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer, nodeInformer coreinformers.NodeInformer, terminatedPodThreshold int) *podgc.PodGCController                                              = podgc.NewPodGC
	_ func(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer, nodeInformer coreinformers.NodeInformer, terminatedPodThreshold int, gcCheckPeriod, quarantineTime time.Duration) *podgc.PodGCController = podgc.NewPodGCInternal
	_ func(*podgc.PodGCController, context.Context)                                                                                                                                                                                             = (*podgc.PodGCController).Run
	_ *metrics.CounterVec                                                                                                                                                                                                                       = podgcmetrics.DeletingPodsTotal
)

// pkg/controller/endpoint, endpointslice, endpointslicemirroring
var (
	_ func(ctx context.Context, podInformer coreinformers.PodInformer, serviceInformer coreinformers.ServiceInformer, endpointsInformer coreinformers.EndpointsInformer, client clientset.Interface, endpointUpdatesBatchPeriod time.Duration) *endpoint.Controller                                                                                        = endpoint.NewEndpointController
	_ func(*endpoint.Controller, context.Context, int)                                                                                                                                                                                                                                                                                                     = (*endpoint.Controller).Run
	_ func(ctx context.Context, podInformer coreinformers.PodInformer, serviceInformer coreinformers.ServiceInformer, nodeInformer coreinformers.NodeInformer, endpointSliceInformer discoveryinformers.EndpointSliceInformer, maxEndpointsPerSlice int32, client clientset.Interface, endpointUpdatesBatchPeriod time.Duration) *endpointslice.Controller = endpointslice.NewController
	_ func(*endpointslice.Controller, context.Context, int)                                                                                                                                                                                                                                                                                                = (*endpointslice.Controller).Run
	_ func(ctx context.Context, endpointsInformer coreinformers.EndpointsInformer, endpointSliceInformer discoveryinformers.EndpointSliceInformer, serviceInformer coreinformers.ServiceInformer, maxEndpointsPerSubset int32, client clientset.Interface, endpointUpdatesBatchPeriod time.Duration) *endpointslicemirroring.Controller                    = endpointslicemirroring.NewController
	_ func(*endpointslicemirroring.Controller, context.Context, int)                                                                                                                                                                                                                                                                                       = (*endpointslicemirroring.Controller).Run
)

// pkg/controller/replicaset
const _ = replicaset.BurstReplicas

var (
	_ func(context.Context, appsinformers.ReplicaSetInformer, coreinformers.PodInformer, clientset.Interface, int) *replicaset.ReplicaSetController = replicaset.NewReplicaSetController
	_ runner                                                                                                                                        = (*replicaset.ReplicaSetController)(nil)
	_ schema.GroupVersionKind                                                                                                                       = replicaset.ReplicaSetController{}.GroupVersionKind
)

// pkg/controller/replication
const _ = replication.BurstReplicas

var (
	_ func(context.Context, coreinformers.PodInformer, coreinformers.ReplicationControllerInformer, clientset.Interface, int) *replication.ReplicationManager = replication.NewReplicationManager
	_ runner                                                                                                                                                  = (*replication.ReplicationManager)(nil)
	_ runner                                                                                                                                                  = replication.ReplicationManager{}.ReplicaSetController
)

// pkg/controller/statefulset
var (
	_ func(context.Context, coreinformers.PodInformer, appsinformers.StatefulSetInformer, coreinformers.PersistentVolumeClaimInformer, appsinformers.ControllerRevisionInformer, clientset.Interface) *statefulset.StatefulSetController = statefulset.NewStatefulSetController
	_ func(*statefulset.StatefulSetController, context.Context, int)                                                                                                                                                                     = (*statefulset.StatefulSetController).Run
)

// pkg/controller/serviceaccount, with our own TokenGenerator in place of upstream's.
var (
	_ func() serviceaccountcontroller.ServiceAccountsControllerOptions                                                                                                                                                                      = serviceaccountcontroller.DefaultServiceAccountsControllerOptions
	_ func(klog.Logger, coreinformers.ServiceAccountInformer, coreinformers.NamespaceInformer, clientset.Interface, serviceaccountcontroller.ServiceAccountsControllerOptions) (*serviceaccountcontroller.ServiceAccountsController, error) = serviceaccountcontroller.NewServiceAccountsController
	_ func(klog.Logger, coreinformers.ServiceAccountInformer, coreinformers.SecretInformer, clientset.Interface, serviceaccountcontroller.TokensControllerOptions) (*serviceaccountcontroller.TokensController, error)                      = serviceaccountcontroller.NewTokensController
	_ runner                                                                                                                                                                                                                                = (*serviceaccountcontroller.ServiceAccountsController)(nil)
	_ runner                                                                                                                                                                                                                                = (*serviceaccountcontroller.TokensController)(nil)
)

var _ = serviceaccountcontroller.TokensControllerOptions{
	TokenGenerator:       serviceaccount.TokenGenerator(nil),
	ServiceAccountResync: time.Duration(0),
	SecretResync:         time.Duration(0),
	RootCA:               []byte(nil),
	MaxRetries:           0,
}

// pkg/controller/cronjob
var (
	_ func(context.Context, batchinformers.JobInformer, batchinformers.CronJobInformer, clientset.Interface) (*cronjob.ControllerV2, error) = cronjob.NewControllerV2
	_ runner                                                                                                                                = (*cronjob.ControllerV2)(nil)
)

// pkg/controller/resourcequota
var (
	_ func(context.Context, *resourcequota.ControllerOptions) (*resourcequota.Controller, error)             = resourcequota.NewController
	_ func(*resourcequota.Controller, context.Context, resourcequota.NamespacedResourcesFunc, time.Duration) = (*resourcequota.Controller).Sync
	_ runner                                                                                                 = (*resourcequota.Controller)(nil)
	_ func(resource schema.GroupVersionResource, oldObj, newObj interface{}) bool                            = resourcequota.UpdateFilter(nil)
	_                                                                                                        = resourcequota.ControllerOptions{
		QuotaClient:               coreclient.ResourceQuotasGetter(nil),
		ResourceQuotaInformer:     coreinformers.ResourceQuotaInformer(nil),
		ResyncPeriod:              controller.ResyncPeriodFunc(nil),
		Registry:                  quota.Registry(nil),
		DiscoveryFunc:             resourcequota.NamespacedResourcesFunc(nil),
		IgnoredResourcesFunc:      func() map[schema.GroupResource]struct{} { return nil },
		InformersStarted:          (<-chan struct{})(nil),
		InformerFactory:           informerfactory.InformerFactory(nil),
		ReplenishmentResyncPeriod: controller.ResyncPeriodFunc(nil),
		UpdateFilter:              resourcequota.UpdateFilter(nil),
	}
)

// pkg/controller/ttlafterfinished
var (
	_ func(context.Context, batchinformers.JobInformer, clientset.Interface) *ttlafterfinished.Controller = ttlafterfinished.New
	_ runner                                                                                              = (*ttlafterfinished.Controller)(nil)
)

// runner is what every controller's Run looks like upstream.
type runner interface {
	Run(ctx context.Context, workers int)
}

// TestConstantsHaveUpstreamsValues checks what the compiler does not.
func TestConstantsHaveUpstreamsValues(t *testing.T) {
	for got, want := range map[string]string{
		app.ConfigzName:                           "kubecontrollermanager.config.k8s.io",
		names.TaintEvictionController:             "taint-eviction-controller",
		deploymentutil.DesiredReplicasAnnotation:  "deployment.kubernetes.io/desired-replicas",
		deploymentutil.MaxReplicasAnnotation:      "deployment.kubernetes.io/max-replicas",
		deploymentutil.MinimumReplicasAvailable:   "MinimumReplicasAvailable",
		deploymentutil.MinimumReplicasUnavailable: "MinimumReplicasUnavailable",
		deploymentutil.NewRSAvailableReason:       "NewReplicaSetAvailable",
		deploymentutil.RevisionAnnotation:         "deployment.kubernetes.io/revision",
		deploymentutil.TimedOutReason:             "ProgressDeadlineExceeded",

		jobmetrics.Add:    "add",
		jobmetrics.Delete: "delete",

		podgcmetrics.PodGCReasonTerminatingOutOfService: "out-of-service",
	} {
		if got != want {
			t.Errorf("constant is %q, want %q", got, want)
		}
	}
	if replicaset.BurstReplicas != 500 {
		t.Errorf("BurstReplicas = %d, want 500", replicaset.BurstReplicas)
	}
	if replication.BurstReplicas != 500 {
		t.Errorf("replication.BurstReplicas = %d, want 500", replication.BurstReplicas)
	}
	if got := controller.NoResyncPeriodFunc(); got != 0 {
		t.Errorf("NoResyncPeriodFunc() = %s, want 0", got)
	}
}
