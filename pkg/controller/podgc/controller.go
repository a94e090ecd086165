// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	controllerName = "pod-garbage-collector-controller"
	// gcCheckPeriod is the time between two passes.
	gcCheckPeriod = 20 * time.Second
	// quarantineTime is how long a node must be unknown before its Pods are deleted.
	quarantineTime = 40 * time.Second
	// deleters is how many Pods are deleted at a time.
	deleters = 8
	// firstRetry is when a Pod that could not be deleted is tried again; the wait doubles
	// up to the time between two passes.
	firstRetry = time.Second
	// passKey is the one key of the passes.
	passKey = "all pods"
)

// PodGCController force-deletes the Pods that nobody else will end. Create it with NewPodGC.
type PodGCController struct {
	client     clientset.Interface
	pods       corelisters.PodLister
	podIndexer cache.Indexer // has controller.PodNodeNameKeyIndex
	nodes      corelisters.NodeLister
	synced     []cache.InformerSynced
	clock      clock.PassiveClock

	threshold      int
	checkPeriod    time.Duration
	quarantineTime time.Duration

	passes            *worker.Worker[string] // passKey
	lostNodes         *worker.Worker[string] // names of nodes
	outOfServiceNodes *worker.Worker[string] // names of nodes
	deletions         *worker.Worker[victim]
}

// NewPodGC returns a controller that keeps up to terminatedPodThreshold finished Pods, all of
// them when that is 0 or less. It must be Run, which ends what it holds.
func NewPodGC(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer, terminatedPodThreshold int) *PodGCController {
	return NewPodGCInternal(ctx, kubeClient, podInformer, nodeInformer, terminatedPodThreshold, gcCheckPeriod, quarantineTime)
}

// NewPodGCInternal is NewPodGC with the time between two passes, and the time that a node
// must be unknown before its Pods are deleted, given. It is for tests.
func NewPodGCInternal(ctx context.Context, kubeClient clientset.Interface, podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer, terminatedPodThreshold int, gcCheckPeriod, quarantineTime time.Duration) *PodGCController {
	metrics.Register()
	if err := controller.AddPodNodeNameIndexer(podInformer.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not index pods by their node", "controller", controllerName)
	}
	c := &PodGCController{
		client:         kubeClient,
		pods:           podInformer.Lister(),
		podIndexer:     podInformer.Informer().GetIndexer(),
		nodes:          nodeInformer.Lister(),
		synced:         []cache.InformerSynced{podInformer.Informer().HasSynced, nodeInformer.Informer().HasSynced},
		clock:          clock.RealClock{},
		threshold:      terminatedPodThreshold,
		checkPeriod:    gcCheckPeriod,
		quarantineTime: quarantineTime,
	}
	c.passes = worker.New(worker.Options[string]{
		Controller: controllerName, Sync: c.pass,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](gcCheckPeriod, gcCheckPeriod),
	})
	c.lostNodes = worker.New(worker.Options[string]{Controller: controllerName, Queue: "orphaned_pods_nodes", Sync: c.syncLostNode})
	c.outOfServiceNodes = worker.New(worker.Options[string]{Controller: controllerName, Sync: c.syncOutOfServiceNode})
	c.deletions = worker.New(worker.Options[victim]{
		Controller: controllerName, Sync: c.syncVictim,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[victim](min(firstRetry, gcCheckPeriod), gcCheckPeriod),
	})
	c.passes.Add(passKey)
	return c
}

// Run works until ctx is done, and returns when everything that it started has ended.
func (c *PodGCController) Run(ctx context.Context) {
	worker.Start(ctx, controllerName, c.synced,
		c.passes.Runner(1), c.lostNodes.Runner(1), c.outOfServiceNodes.Runner(1), c.deletions.Runner(deleters))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *PodGCController) Workers() []worker.Reporter {
	return []worker.Reporter{c.passes, c.lostNodes, c.outOfServiceNodes, c.deletions}
}

// pass looks at all Pods, hands over what it found, and asks for the next pass.
func (c *PodGCController) pass(ctx context.Context, _ string) error {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing pods from the cache: %w", err)
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing nodes from the cache: %w", err)
	}
	byName := make(map[string]*v1.Node, len(nodes))
	for _, node := range nodes {
		byName[node.Name] = node
	}
	p := makePlan(pods, byName, c.threshold)
	if len(p.victims)+len(p.outOfService)+len(p.lost) > 0 {
		klog.FromContext(ctx).V(2).Info("Found pods to delete", "pods", len(p.victims), "nodesOutOfService", p.outOfService, "lostNodes", p.lost)
	}
	for _, v := range p.victims {
		c.deletions.Add(v)
	}
	for _, node := range p.outOfService {
		c.outOfServiceNodes.Add(node)
	}
	for _, node := range p.lost {
		// The first of several times counts: each pass adds a node that stays away.
		c.lostNodes.AddAfter(node, c.quarantineTime)
	}
	return worker.RequeueAfter(c.checkPeriod)
}

// syncLostNode enqueues the Pods on a node that has been unknown for the quarantine time,
// if it is still.
func (c *PodGCController) syncLostNode(ctx context.Context, name string) error {
	if node, err := c.cachedNode(name); err != nil || node != nil {
		return err
	}
	victims, err := c.victimsOn(name, nil, metrics.PodGCReasonOrphaned)
	if err != nil || len(victims) == 0 {
		return err
	}
	switch _, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); {
	case err == nil:
		return nil // the cache is late
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("asking whether node %s exists: %w", name, err)
	}
	for _, v := range victims {
		c.deletions.Add(v)
	}
	return nil
}

// syncOutOfServiceNode enqueues the terminating Pods on a node that is out of service, if
// the API server says so too: the node may be back, and its Pods may be ending in order.
func (c *PodGCController) syncOutOfServiceNode(ctx context.Context, name string) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // its Pods are orphans now
	case err != nil:
		return fmt.Errorf("asking whether node %s is out of service: %w", name, err)
	}
	victims, err := c.victimsOn(name, node, metrics.PodGCReasonTerminatingOutOfService)
	for _, v := range victims {
		c.deletions.Add(v)
	}
	return err
}

// victimsOn returns the Pods of a node for which the reason holds. node is nil when it is
// not known.
func (c *PodGCController) victimsOn(nodeName string, node *v1.Node, reason string) ([]victim, error) {
	objs, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, nodeName)
	if err != nil {
		return nil, fmt.Errorf("looking up the pods on node %s: %w", nodeName, err)
	}
	var victims []victim
	for _, obj := range objs {
		if pod, ok := obj.(*v1.Pod); ok && !isSettled(pod) && reasonHolds(reason, pod, node) {
			victims = append(victims, newVictim(pod, reason))
		}
	}
	return victims, nil
}

// cachedNode returns a node from the cache, nil when it is not there.
func (c *PodGCController) cachedNode(name string) (*v1.Node, error) {
	node, err := c.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading node %s from the cache: %w", name, err)
	}
	return node, nil
}
