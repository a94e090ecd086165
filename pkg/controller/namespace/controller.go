// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller/namespace/deletion"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	controllerName = "namespace-controller"

	// gracePeriod is how long after its deletion a namespace may still get objects, through API
	// servers that have not seen the deletion.
	gracePeriod = 5 * time.Second

	// The back-off after failures: per namespace, and over all of them.
	baseDelay, maxDelay = 5 * time.Millisecond, 60 * time.Second
	retriesPerSecond    = 10
	retryBurst          = 100
)

// NamespaceController empties and finalizes terminating namespaces. Create it with
// NewNamespaceController.
type NamespaceController struct {
	token   v1.FinalizerName
	lister  corelisters.NamespaceLister
	synced  cache.InformerSynced
	deleter deletion.NamespacedResourcesDeleterInterface
	worker  *worker.Worker[cache.ObjectName]
	clock   clock.WithTicker
}

// NewNamespaceController returns a controller that stands for finalizerToken in spec.finalizers.
// discoverResourcesFn lists the namespaced resources of the cluster, such as
// discovery.ServerPreferredNamespacedResources. Each terminating namespace is looked at again every
// resyncPeriod, whatever happened.
func NewNamespaceController(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error),
	namespaceInformer coreinformers.NamespaceInformer, resyncPeriod time.Duration,
	finalizerToken v1.FinalizerName) *NamespaceController {
	deleter := deletion.NewNamespacedResourcesDeleter(ctx, kubeClient.CoreV1().Namespaces(), metadataClient,
		kubeClient.CoreV1(), discoverResourcesFn, finalizerToken)
	return newController(ctx, deleter, namespaceInformer, resyncPeriod, finalizerToken, clock.RealClock{})
}

func newController(ctx context.Context, deleter deletion.NamespacedResourcesDeleterInterface, namespaceInformer coreinformers.NamespaceInformer,
	resyncPeriod time.Duration, token v1.FinalizerName, c clock.WithTicker) *NamespaceController {
	nm := &NamespaceController{
		token:   token,
		lister:  namespaceInformer.Lister(),
		synced:  namespaceInformer.Informer().HasSynced,
		deleter: deleter,
		clock:   c,
	}
	nm.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: controllerName,
		Queue:      "namespace",
		Sync:       nm.sync,
		Clock:      c,
		RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](baseDelay, maxDelay),
			&workqueue.TypedBucketRateLimiter[cache.ObjectName]{Limiter: rate.NewLimiter(retriesPerSecond, retryBurst)},
		),
	})
	handler := worker.Handler(controllerName, worker.HandlerFuncs[*v1.Namespace]{
		Add: func(ns *v1.Namespace, _ bool) {
			if needsWork(ns, token) {
				nm.enqueue(ns)
			}
		},
		Update: func(old, cur *v1.Namespace) {
			if startsWork(old, cur, token) {
				nm.enqueue(cur)
			}
		},
		Resync: true,
	})
	if _, err := namespaceInformer.Informer().AddEventHandlerWithResyncPeriod(handler, resyncPeriod); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch namespaces, the informer was stopped before", "controller", controllerName)
	}
	return nm
}

func (nm *NamespaceController) enqueue(ns *v1.Namespace) {
	nm.worker.AddAfter(cache.MetaObjectToName(ns), gracePeriod)
}

// Run works on the given number of namespaces at a time until ctx is done.
func (nm *NamespaceController) Run(ctx context.Context, workers int) {
	worker.Start(ctx, controllerName, []cache.InformerSynced{nm.synced}, nm.worker.Runner(workers))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (nm *NamespaceController) Workers() []worker.Reporter { return []worker.Reporter{nm.worker} }

// sync does one round for a namespace.
func (nm *NamespaceController) sync(ctx context.Context, key cache.ObjectName) error {
	err := nm.deleter.Delete(ctx, key.Name)
	var remaining *deletion.ResourcesRemainingError
	if errors.As(err, &remaining) {
		return worker.RequeueAfter(nextRound(remaining.Estimate, nm.elapsed(key.Name)))
	}
	return err
}

// elapsed returns how long the namespace has been terminating, as far as the cache knows.
func (nm *NamespaceController) elapsed(name string) time.Duration {
	ns, err := nm.lister.Get(name)
	if err != nil || ns.DeletionTimestamp == nil {
		return 0
	}
	return nm.clock.Since(ns.DeletionTimestamp.Time)
}
