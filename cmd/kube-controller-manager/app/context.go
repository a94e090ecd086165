// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	cachemetrics "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache/metrics"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/clientbuilder"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// restMapperResetPeriod is how old the REST mapper's picture of the API may grow.
const restMapperResetPeriod = 30 * time.Second

// ControllerContext is what constructors build controllers from. It is passed by value; what it
// refers to is shared by all controllers.
type ControllerContext struct {
	// RootClientBuilder makes clients with the manager's own credentials.
	RootClientBuilder clientbuilder.ControllerClientBuilder
	// ClientBuilder makes clients with the credentials of the named controller's service account,
	// or the manager's own without --use-service-account-credentials.
	ClientBuilder clientbuilder.ControllerClientBuilder

	// InformerFactory gives the typed informers. Its objects lack managedFields.
	InformerFactory clientinformers.SharedInformerFactory
	// ObjectOrMetadataInformerFactory gives informers for any resource: typed ones where the type
	// is known, else of the objects' metadata.
	ObjectOrMetadataInformerFactory informerfactory.InformerFactory
	// InformersStarted is closed once the informers that constructors asked for have been
	// started; a controller that finds new resources later starts their informers itself.
	InformersStarted chan struct{}

	// ComponentConfig is the manager's configuration. Constructors only read it.
	ComponentConfig kubectrlmgrconfig.KubeControllerManagerConfiguration
	// ClientLimitsGiven says that the user limits the rate of requests (--kube-api-qps or
	// --kube-api-burst); else there is no fixed limit.
	ClientLimitsGiven bool

	// RESTMapper maps kinds to resources. It looks anew at the API every 30 seconds.
	RESTMapper *restmapper.DeferredDiscoveryRESTMapper

	// ResyncPeriod returns a random period between one and two times --min-resync-period, so that
	// controllers do not ask for everything in lockstep.
	ResyncPeriod func() time.Duration

	// ControllerManagerMetrics says which controllers run.
	ControllerManagerMetrics *controllersmetrics.ControllerManagerMetrics

	typedFactory    *informers.Factory
	metadataFactory *metadatainformer.Factory
	informerName    *cache.InformerName
}

// CreateControllerContext makes the shared parts of all controllers. It sends no request; nothing
// runs until the factories are started. The caller releases it with release.
func CreateControllerContext(s *config.CompletedConfig, rootClientBuilder, clientBuilder clientbuilder.ControllerClientBuilder) (ControllerContext, error) {
	resync := resyncPeriod(s.ComponentConfig.Generic.MinResyncPeriod.Duration)

	client, err := rootClientBuilder.Client("shared-informers")
	if err != nil {
		return ControllerContext{}, fmt.Errorf("creating the client of the shared informers: %w", err)
	}
	metadataClient, err := rootClientBuilder.MetadataClient("metadata-informers")
	if err != nil {
		return ControllerContext{}, fmt.Errorf("creating the client of the metadata informers: %w", err)
	}
	discoveryClient, err := rootClientBuilder.DiscoveryClient("controller-discovery")
	if err != nil {
		return ControllerContext{}, fmt.Errorf("creating the discovery client: %w", err)
	}

	informerName := newInformerName()
	informerConfig, err := rootClientBuilder.Config("shared-informers")
	if err != nil {
		return ControllerContext{}, fmt.Errorf("creating the configuration of the shared informers: %w", err)
	}
	sources, err := wire.NewSourcesFor(informerConfig, wire.NewKinds(), wire.NewTable())
	if err != nil {
		return ControllerContext{}, err
	}
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(),
		informers.WithTransform(trimManagedFields), informers.WithSources(sources.Typed),
		informers.WithInformerName(informerName), informers.WithMetricsProvider(cachemetrics.Legacy()))
	metadata := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(),
		metadatainformer.WithTransform(trimManagedFields), metadatainformer.WithSources(sources.Metadata))

	return ControllerContext{
		RootClientBuilder:               rootClientBuilder,
		ClientBuilder:                   clientBuilder,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, metadata),
		InformersStarted:                make(chan struct{}),
		ComponentConfig:                 s.ComponentConfig,
		ClientLimitsGiven:               s.ClientLimitsGiven,
		RESTMapper:                      restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient)),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        registerMetrics().running,
		typedFactory:                    typed,
		metadataFactory:                 metadata,
		informerName:                    informerName,
	}, nil
}

// startInformers starts the informers that were asked for since the last call.
func (cc ControllerContext) startInformers(ctx context.Context) {
	cc.InformerFactory.StartWithContext(ctx)
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
}

// startUntil is a factory for controllers that ask for informers while they run. The informers stay
// for the others when such a controller fails: whatever it starts them with, they run until done is
// closed. One that has stopped could not be started again.
type startUntil struct {
	informerfactory.InformerFactory
	done <-chan struct{}
}

func (f *startUntil) Start(<-chan struct{}) { f.InformerFactory.Start(f.done) }

// ReleaseInformer implements informerfactory.Releaser.
func (f *startUntil) ReleaseInformer(gvr schema.GroupVersionResource) {
	release(f.InformerFactory, gvr)
}

// resetRESTMapper forgets every 30 seconds what the mapper knows of the API, until ctx is done.
func (cc ControllerContext) resetRESTMapper(ctx context.Context) {
	ticker := time.NewTicker(restMapperResetPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			cc.RESTMapper.Reset()
		case <-ctx.Done():
			return
		}
	}
}

// managerName is the name under which this manager's informers report their metrics.
func (cc ControllerContext) managerName() string {
	if cc.informerName == nil {
		return managerName
	}
	return cc.informerName.Name()
}

// release waits until all informers, whose contexts are done, have stopped.
func (cc ControllerContext) release() {
	cc.InformerFactory.Shutdown()
	cc.metadataFactory.Shutdown()
	if cc.informerName != nil {
		cc.informerName.Release()
	}
}

// newInformerName returns the name under which the informers report their metrics. A name serves
// one manager in the process: a second manager gets a number.
func newInformerName() *cache.InformerName {
	for n := 1; n <= 100; n++ {
		name := managerName
		if n > 1 {
			name = fmt.Sprintf("%s-%d", managerName, n)
		}
		if informerName, err := cache.NewInformerName(name); err == nil {
			return informerName
		}
	}
	return nil // The metrics of this manager's informers are then not reported.
}

// trimManagedFields drops what no controller reads and what is often half of an object.
func trimManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		// A tombstone, say. The informer knows what to do with it.
		return obj, nil
	}
	if accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

func resyncPeriod(minimum time.Duration) func() time.Duration {
	return func() time.Duration {
		return time.Duration(float64(minimum) * (1 + rand.Float64()))
	}
}
