// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	controllerName = "deployment-controller"
	// maxRetries is how often a failing Deployment is retried, the last time after about 82 s,
	// before it waits for its next event.
	maxRetries = 15
	// staleRecheck is when a Deployment is looked at again of which the caches do not show the last
	// write yet, its own or somebody else's. Usually the event of that write brings it back sooner.
	staleRecheck = 500 * time.Millisecond
)

var (
	controllerKind     = apps.SchemeGroupVersion.WithKind("Deployment")
	replicaSetKind     = apps.SchemeGroupVersion.WithKind("ReplicaSet")
	deploymentResource = schema.GroupResource{Group: apps.GroupName, Resource: "deployments"}
	replicaSetResource = schema.GroupResource{Group: apps.GroupName, Resource: "replicasets"}
)

// DeploymentController brings Deployments to the state that they describe, by means of ReplicaSets.
type DeploymentController struct {
	client   clientset.Interface
	events   *controller.EventPipeline
	recorder record.EventRecorder
	clock    clock.PassiveClock
	// terminatingReplicas is the gate of that name, read at construction.
	terminatingReplicas bool

	deployments appslisters.DeploymentLister
	rsLister    appslisters.ReplicaSetLister
	rsIndexer   cache.Indexer // has controller.ReplicaSetControllerIndex
	podIndexer  cache.Indexer // has controller.PodControllerIndex
	synced      []cache.InformerSynced

	guard   *consistency.Guard
	queue   *worker.Worker[cache.ObjectName] // Deployments
	orphans *worker.Worker[cache.ObjectName] // ReplicaSets without an owner
}

// NewDeploymentController returns a controller that decides from the informers' caches and writes
// with client. It must be Run, which ends what it holds.
func NewDeploymentController(ctx context.Context, dInformer appsinformers.DeploymentInformer, rsInformer appsinformers.ReplicaSetInformer,
	podInformer coreinformers.PodInformer, client clientset.Interface) (*DeploymentController, error) {
	events := controller.NewEventPipeline(ctx, client, controllerName)
	dc := &DeploymentController{
		client:   client,
		events:   events,
		recorder: events.Recorder(),
		clock:    clock.RealClock{},

		terminatingReplicas: features.Enabled(features.DeploymentReplicaSetTerminatingReplicas),

		deployments: dInformer.Lister(),
		rsLister:    rsInformer.Lister(),
		rsIndexer:   rsInformer.Informer().GetIndexer(),
		podIndexer:  podInformer.Informer().GetIndexer(),
		synced:      []cache.InformerSynced{dInformer.Informer().HasSynced, rsInformer.Informer().HasSynced, podInformer.Informer().HasSynced},
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			deploymentResource: dInformer.Informer().GetIndexer(),
			replicaSetResource: rsInformer.Informer().GetIndexer(),
		}),
	}
	if err := controller.AddReplicaSetControllerIndexer(rsInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of replica sets by controller: %w", err)
	}
	if err := controller.AddPodControllerIndexer(podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding the index of pods by controller: %w", err)
	}
	dc.queue = worker.New(worker.Options[cache.ObjectName]{
		Controller: controllerName, Queue: "deployment", Sync: dc.sync, MaxRetries: maxRetries,
	})
	dc.orphans = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Sync: dc.syncOrphan})
	if err := dc.addHandlers(dInformer.Informer(), rsInformer.Informer(), podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	return dc, nil
}

// Run syncs Deployments with the given number of workers until ctx is done, and returns when
// everything that it started has ended.
func (dc *DeploymentController) Run(ctx context.Context, workers int) {
	dc.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, dc.synced, dc.queue.Runner(workers), dc.orphans.Runner(1))
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (dc *DeploymentController) Workers() []worker.Reporter {
	return []worker.Reporter{dc.queue, dc.orphans}
}

// sync brings one Deployment a round further. It is not called for one key by two goroutines.
func (dc *DeploymentController) sync(ctx context.Context, key cache.ObjectName) error {
	err := dc.syncDeployment(ctx, key)
	var behind *consistency.StaleError
	switch {
	case errors.As(err, &behind), apierrors.IsConflict(err):
		// Not a failure, and no back-off: a retry before the cache has caught up would be refused again.
		klog.FromContext(ctx).V(4).Info("Waiting until the cache shows the last write", "reason", err.Error())
		return worker.RequeueAfter(staleRecheck)
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		klog.FromContext(ctx).V(2).Info("The namespace is being deleted, so is the deployment", "reason", err.Error())
		return nil
	}
	return err
}

func (dc *DeploymentController) syncDeployment(ctx context.Context, key cache.ObjectName) error {
	// Before the first read: what is read after this has seen the Deployment's own writes.
	if err := dc.guard.EnsureReady(key.AsNamespacedName()); err != nil {
		return err
	}
	d, err := dc.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		dc.guard.Clear(key.AsNamespacedName(), "")
		return nil
	}
	if err != nil {
		return err
	}
	s, err := dc.gather(ctx, d)
	if err != nil {
		return err
	}
	p, err := makePlan(s)
	if err != nil {
		return worker.Terminal(err)
	}
	return dc.apply(ctx, s, p)
}

func nameOf(d *apps.Deployment) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}
