// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	deleter deletion.EarlyDeleter
	worker  *worker.Worker[cache.ObjectName]
	clock   clock.WithTicker
	// drains is nil when the controller may use no caches but that of the namespaces.
	drains *drains
}

// NewNamespaceController returns a controller that stands for finalizerToken in spec.finalizers.
// discoverResourcesFn lists the namespaced resources of the cluster, such as
// discovery.ServerPreferredNamespacedResources. Each terminating namespace is looked at again every
// resyncPeriod, whatever happened.
func NewNamespaceController(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error),
	namespaceInformer coreinformers.NamespaceInformer, resyncPeriod time.Duration,
	finalizerToken v1.FinalizerName) *NamespaceController {
	return NewWithCaches(ctx, kubeClient, metadataClient, discoverResourcesFn, namespaceInformer, resyncPeriod, finalizerToken, nil)
}

// NewWithCaches is NewNamespaceController with a view of the caches that the process keeps for other
// controllers. With it content is deleted from the moment that a namespace is, and a namespace is
// looked at as soon as its last object has gone. nil: none.
func NewWithCaches(ctx context.Context, kubeClient clientset.Interface, metadataClient metadata.Interface,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error),
	namespaceInformer coreinformers.NamespaceInformer, resyncPeriod time.Duration,
	finalizerToken v1.FinalizerName, caches deletion.Caches) *NamespaceController {
	deleter := deletion.NewEarlyDeleter(kubeClient.CoreV1().Namespaces(), metadataClient, discoverResourcesFn, finalizerToken)
	return newController(ctx, deleter, namespaceInformer, resyncPeriod, finalizerToken, caches, clock.RealClock{})
}

func newController(ctx context.Context, deleter deletion.EarlyDeleter, namespaceInformer coreinformers.NamespaceInformer,
	resyncPeriod time.Duration, token v1.FinalizerName, caches deletion.Caches, c clock.WithTicker) *NamespaceController {
	nm := &NamespaceController{
		token:   token,
		lister:  namespaceInformer.Lister(),
		synced:  namespaceInformer.Informer().HasSynced,
		deleter: deleter,
		clock:   c,
	}
	if caches != nil {
		nm.drains = newDrains(caches, c, func(name string) { nm.worker.Add(cache.ObjectName{Name: name}) })
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

// enqueue has a namespace looked at when its grace period is over and, where the caches allow it, at
// once.
func (nm *NamespaceController) enqueue(ns *v1.Namespace) {
	key := cache.MetaObjectToName(ns)
	if nm.drains.begin(ns) {
		nm.worker.Add(key)
	}
	nm.worker.AddAfter(key, deletion.GracePeriod)
}

// Run works on the given number of namespaces at a time until ctx is done.
func (nm *NamespaceController) Run(ctx context.Context, workers int) {
	runners := []func(context.Context){nm.worker.Runner(workers)}
	if nm.drains != nil {
		runners = append(runners, nm.drains.looks.Run)
	}
	worker.Start(ctx, controllerName, []cache.InformerSynced{nm.synced}, runners...)
}

// Workers returns the controller's workers, for health checks and debug pages.
func (nm *NamespaceController) Workers() []worker.Reporter { return []worker.Reporter{nm.worker} }

// sync does one round for a namespace.
func (nm *NamespaceController) sync(ctx context.Context, key cache.ObjectName) error {
	if _, err := nm.lister.Get(key.Name); apierrors.IsNotFound(err) {
		nm.drains.end(key.Name)
		return nil // a timer outlived the namespace
	}
	if left := nm.drains.graceLeft(key.Name); left > 0 {
		return nm.headStart(ctx, key.Name, left)
	}
	err := nm.deleter.Delete(ctx, key.Name)
	if err == nil {
		nm.drains.end(key.Name)
		return nil
	}
	var remaining *deletion.ResourcesRemainingError
	if !errors.As(err, &remaining) {
		return err
	}
	nm.drains.await(key.Name, remaining.Resources)
	return worker.RequeueAfter(nextRound(remaining.Estimate, nm.elapsed(key.Name)))
}

// headStart deletes what caches know of a namespace, and has it brought up again at the end of its grace period: the
// timer of enqueue is gone when a retry came before it, for a queue keeps but the earliest of a key's timers.
func (nm *NamespaceController) headStart(ctx context.Context, name string, left time.Duration) error {
	err := nm.deleter.HeadStart(ctx, name, nm.drains.caches)
	var remaining *deletion.ResourcesRemainingError
	switch {
	case errors.As(err, &remaining):
		nm.drains.await(name, remaining.Resources)
	case err != nil:
		return err
	}
	return worker.RequeueAfter(left)
}

// elapsed returns how long the namespace has been terminating, as far as the cache knows.
func (nm *NamespaceController) elapsed(name string) time.Duration {
	ns, err := nm.lister.Get(name)
	if err != nil || ns.DeletionTimestamp == nil {
		return 0
	}
	return nm.clock.Since(ns.DeletionTimestamp.Time)
}
