// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	"github.com/kcm-dev/kcm/pkg/controller/namespace"
	"github.com/kcm-dev/kcm/pkg/controller/podgc"
	"github.com/kcm-dev/kcm/pkg/controller/replication"
	"github.com/kcm-dev/kcm/pkg/controller/resourcequota"
	serviceaccountcontroller "github.com/kcm-dev/kcm/pkg/controller/serviceaccount"
	"github.com/kcm-dev/kcm/pkg/features"
	quotainstall "github.com/kcm-dev/kcm/pkg/quota/v1/install"
	"github.com/kcm-dev/kcm/pkg/serviceaccount"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/clientbuilder"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// hasServiceAccountKey tells whether there is a key to sign service account tokens with.
func hasServiceAccountKey(config *kubectrlmgrconfig.KubeControllerManagerConfiguration) bool {
	return config.SAController.ServiceAccountKeyFile != ""
}

// newServiceAccountTokenController uses the manager's own credentials: those of other controllers
// may be tokens that this controller makes.
func newServiceAccountTokenController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	const user = "tokens-controller"
	config := cc.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(config.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("error reading key for service account token controller: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("failed to build token generator: %w", err)
	}
	client, err := cc.RootClientBuilder.Client(user)
	if err != nil {
		return nil, err
	}
	rootCA, err := rootCA(cc, cc.RootClientBuilder, user)
	if err != nil {
		return nil, err
	}
	c, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx),
		cc.InformerFactory.Core().V1().ServiceAccounts(),
		cc.InformerFactory.Core().V1().Secrets(),
		client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})
	if err != nil {
		return nil, fmt.Errorf("error creating Tokens controller: %w", err)
	}
	return newWorkerLoop(name, c, config.ConcurrentSATokenSyncs), nil
}

// rootCA returns the certificates of --root-ca-file or, without it, those that the user's client
// trusts.
func rootCA(cc ControllerContext, builder clientbuilder.ControllerClientBuilder, user string) ([]byte, error) {
	file := cc.ComponentConfig.SAController.RootCAFile
	if file == "" {
		config, err := builder.Config(user)
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(config)
		if err := rest.LoadTLSFiles(config); err != nil {
			return nil, fmt.Errorf("reading the CA certificates of the kubeconfig: %w", err)
		}
		return config.CAData, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("error reading root-ca-file at %s: %w", file, err)
	}
	if _, err := certutil.ParseCertsPEM(data); err != nil {
		return nil, fmt.Errorf("error parsing root-ca-file at %s: %w", file, err)
	}
	return data, nil
}

func newServiceAccountController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("service-account-controller")
	if err != nil {
		return nil, err
	}
	c, err := serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx),
		cc.InformerFactory.Core().V1().ServiceAccounts(),
		cc.InformerFactory.Core().V1().Namespaces(),
		client,
		serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, fmt.Errorf("error creating ServiceAccount controller: %w", err)
	}
	return newWorkerLoop(name, c, 1), nil
}

func namespaceSyncPeriod(config *kubectrlmgrconfig.KubeControllerManagerConfiguration) time.Duration {
	return config.NamespaceController.NamespaceSyncPeriod.Duration
}

// newNamespaceController gives the controller twenty times the rate of requests and a hundred
// times the burst that the user allows others: emptying a namespace takes a request or two for
// each resource that the cluster has.
func newNamespaceController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	config, err := cc.ClientBuilder.Config("namespace-controller")
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if cc.ClientLimitsGiven {
		config.QPS *= 20
		config.Burst *= 100
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the namespace controller's client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the namespace controller's metadata client: %w", err)
	}
	discover := func() ([]*metav1.APIResourceList, error) {
		return discovery.ServerPreferredNamespacedResources(client.Discovery())
	}
	c := namespace.NewWithCaches(ctx, client, metadataClient, discover,
		cc.InformerFactory.Core().V1().Namespaces(),
		namespaceSyncPeriod(&cc.ComponentConfig),
		corev1.FinalizerKubernetes,
		informerfactory.Contents{cc.typedFactory, cc.metadataFactory})
	return newWorkerLoop(name, c, cc.ComponentConfig.NamespaceController.ConcurrentNamespaceSyncs), nil
}

func newReplicationController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("replication-controller")
	if err != nil {
		return nil, err
	}
	c := replication.NewReplicationManager(ctx,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Core().V1().ReplicationControllers(),
		client,
		replication.BurstReplicas)
	return newWorkerLoop(name, c, cc.ComponentConfig.ReplicationController.ConcurrentRCSyncs), nil
}

func newPodGarbageCollectorController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	client, err := cc.ClientBuilder.Client("pod-garbage-collector")
	if err != nil {
		return nil, err
	}
	c := podgc.NewPodGC(ctx,
		client,
		cc.InformerFactory.Core().V1().Pods(),
		cc.InformerFactory.Core().V1().Nodes(),
		int(cc.ComponentConfig.PodGCController.TerminatedPodGCThreshold))
	return newControllerLoop(name, c, c.Run), nil
}

func garbageCollectorEnabled(config *kubectrlmgrconfig.KubeControllerManagerConfiguration) bool {
	return ptr.Deref(config.GarbageCollectorController.EnableGarbageCollector, true)
}

// newGarbageCollectorController gives the collector twice the rate of requests that the user allows
// others. It watches what discovery finds, with the manager's own credentials, and writes with those
// of its service account.
func newGarbageCollectorController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	const (
		user = "generic-garbage-collector"
		// syncPeriod is how often discovery is asked what there is to watch, and how long a new
		// resource is waited for where that matters.
		syncPeriod = 30 * time.Second
	)
	client, err := cc.ClientBuilder.Client(user)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := cc.ClientBuilder.DiscoveryClient(user)
	if err != nil {
		return nil, err
	}
	config, err := cc.ClientBuilder.Config(user)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if cc.ClientLimitsGiven {
		config.QPS *= 2
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the garbage collector's metadata client: %w", err)
	}
	informersClient, err := cc.RootClientBuilder.MetadataClient("metadata-informers")
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, informersClient, cc.RESTMapper,
		garbagecollector.DefaultIgnoredResources(), cc.ObjectOrMetadataInformerFactory, cc.InformersStarted)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, cc.RESTMapper, graph)
	if err != nil {
		return nil, fmt.Errorf("failed to start the generic garbage collector: %w", err)
	}
	workers := int(cc.ComponentConfig.GarbageCollectorController.ConcurrentGCSyncs)
	return newControllerLoop(name, gc, func(ctx context.Context) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { gc.Sync(ctx, discoveryClient, syncPeriod) })
		gc.Run(ctx, workers, syncPeriod)
	}), nil
}

func quotaDiscovers(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	return resourcequota.WatchedResources(lists, quotainstall.DefaultIgnoredResources())
}

// newResourceQuotaController reads in full what is counted by more than its number; it is asked for
// first, so that the object-or-metadata factory gives the same informers.
func newResourceQuotaController(ctx context.Context, cc ControllerContext, name string) (Controller, error) {
	const (
		user = "resourcequota-controller"
		// syncPeriod is how often discovery is asked what there is to count.
		syncPeriod = 30 * time.Second
	)
	client, err := cc.ClientBuilder.Client(user)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := cc.ClientBuilder.DiscoveryClient(user)
	if err != nil {
		return nil, err
	}
	discover := func() ([]*metav1.APIResourceList, error) {
		return discovery.ServerPreferredNamespacedResources(discoveryClient)
	}
	typed := cc.InformerFactory
	typed.Core().V1().Pods().Informer()
	typed.Core().V1().Services().Informer()
	typed.Core().V1().PersistentVolumeClaims().Informer()
	if features.Enabled(features.DynamicResourceAllocation) {
		typed.Resource().V1().ResourceClaims().Informer()
	}
	configuration := quotainstall.NewQuotaConfigurationForControllers(
		quota.ListerFuncForResourceFunc(cc.ObjectOrMetadataInformerFactory.ForResource), typed)
	config := cc.ComponentConfig.ResourceQuotaController
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(config.ResourceQuotaSyncPeriod.Duration),
		Registry:                  quota.NewRegistry(configuration.Evaluators()),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          cc.InformersStarted,
		InformerFactory:           cc.ObjectOrMetadataInformerFactory,
		ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the resource quota controller: %w", err)
	}
	return newControllerLoop(name, c, func(ctx context.Context) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { c.Sync(ctx, discover, syncPeriod) })
		c.Run(ctx, int(config.ConcurrentResourceQuotaSyncs))
	}), nil
}
