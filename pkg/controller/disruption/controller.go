// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	controllerName = "disruption-controller"
	// eventComponent is upstream's name for the source of this controller's events.
	eventComponent = "controllermanager"
	// stalePodDisruptionTimeout is how long a Pod may carry a DisruptionTarget condition without
	// being deleted (KEP-3329).
	stalePodDisruptionTimeout = 2 * time.Minute
	// unknownRecheck is when a budget is looked at again whose numbers could not be known: what
	// hinders that may end without an event.
	unknownRecheck = time.Minute
	// staleRecheck is when a budget is looked at again whose last write the cache does not show; the
	// event of that write comes earlier.
	staleRecheck = 500 * time.Millisecond
)

// DisruptionController keeps the status of PodDisruptionBudgets. Create it with
// NewDisruptionController.
type DisruptionController struct {
	client   clientset.Interface
	events   *controller.EventPipeline
	recorder record.EventRecorder
	clock    clock.WithTicker

	staleAfter time.Duration

	pdbs      policylisters.PodDisruptionBudgetLister
	podLister corelisters.PodLister
	pods      *selectorindex.Pods
	selectors *selectors
	finder    *scaleFinder
	synced    []cache.InformerSynced
	guard     *consistency.Guard

	budgets   *worker.Worker[cache.ObjectName] // PodDisruptionBudgets
	rechecks  *worker.Worker[cache.ObjectName] // PodDisruptionBudgets with disrupted Pods
	changes   *worker.Worker[podChange]
	stalePods *worker.Worker[cache.ObjectName] // Pods
}

// NewDisruptionController returns a controller that decides from the informers' caches, asks for the
// scale of other owners by scaleNamespacer, and writes with kubeClient. It must be Run, which ends
// what it holds.
func NewDisruptionController(ctx context.Context, podInformer coreinformers.PodInformer, pdbInformer policyinformers.PodDisruptionBudgetInformer,
	rcInformer coreinformers.ReplicationControllerInformer, rsInformer appsinformers.ReplicaSetInformer,
	dInformer appsinformers.DeploymentInformer, ssInformer appsinformers.StatefulSetInformer, kubeClient clientset.Interface,
	restMapper apimeta.RESTMapper, scaleNamespacer scaleclient.ScalesGetter, discoveryClient discovery.DiscoveryInterface) *DisruptionController {
	return NewDisruptionControllerInternal(ctx, podInformer, pdbInformer, rcInformer, rsInformer, dInformer, ssInformer, kubeClient,
		restMapper, scaleNamespacer, discoveryClient, clock.RealClock{}, stalePodDisruptionTimeout)
}

// NewDisruptionControllerInternal is NewDisruptionController with the clock, and the time after which
// a DisruptionTarget condition is stale, given. It is for tests.
func NewDisruptionControllerInternal(ctx context.Context, podInformer coreinformers.PodInformer, pdbInformer policyinformers.PodDisruptionBudgetInformer,
	rcInformer coreinformers.ReplicationControllerInformer, rsInformer appsinformers.ReplicaSetInformer,
	dInformer appsinformers.DeploymentInformer, ssInformer appsinformers.StatefulSetInformer, kubeClient clientset.Interface,
	restMapper apimeta.RESTMapper, scaleNamespacer scaleclient.ScalesGetter, discoveryClient discovery.DiscoveryInterface,
	clock clock.WithTicker, stalePodDisruptionTimeout time.Duration) *DisruptionController {
	events := controller.NewEventPipeline(ctx, kubeClient, eventComponent)
	dc := &DisruptionController{
		client:     kubeClient,
		events:     events,
		recorder:   events.Recorder(),
		clock:      clock,
		staleAfter: stalePodDisruptionTimeout,
		pdbs:       pdbInformer.Lister(),
		podLister:  podInformer.Lister(),
		selectors:  newSelectors(),
		finder: &scaleFinder{
			rcs: rcInformer.Lister(), replicaSets: rsInformer.Lister(), deployments: dInformer.Lister(), statefulSets: ssInformer.Lister(),
			mapper: restMapper, scales: scaleNamespacer, discovery: discoveryClient,
		},
		synced: []cache.InformerSynced{
			podInformer.Informer().HasSynced, pdbInformer.Informer().HasSynced, rcInformer.Informer().HasSynced,
			rsInformer.Informer().HasSynced, dInformer.Informer().HasSynced, ssInformer.Informer().HasSynced,
		},
		guard: consistency.NewGuard(map[schema.GroupResource]consistency.Reader{
			budgetResource: pdbInformer.Informer().GetIndexer(),
		}, consistency.WithClock(clock)),
	}
	dc.budgets = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "disruption", Sync: dc.sync, Clock: clock})
	dc.rechecks = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "disruption_recheck", Sync: dc.recheck, Clock: clock})
	dc.changes = worker.New(worker.Options[podChange]{Controller: controllerName, Sync: dc.podChanged, Clock: clock})
	dc.stalePods = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Queue: "stale_pod_disruption", Sync: dc.syncStalePod, Clock: clock})

	if err := dc.watch(podInformer.Informer(), pdbInformer.Informer()); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not watch pods and their disruption budgets", "controller", controllerName)
	}
	return dc
}

// watch adds the index and the handlers. What scales Pods has no handler: a change of a scale shows
// in Pods that come and go.
func (dc *DisruptionController) watch(pods, pdbs cache.SharedIndexInformer) error {
	var err error
	if dc.pods, err = selectorindex.NewPods(pods); err != nil {
		return err
	}
	ofPods, err := pods.AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*v1.Pod]{
		Add:    dc.podAdded,
		Update: dc.podUpdated,
		Delete: func(pod *v1.Pod) { dc.changes.Add(newPodChange(pod, false)) },
	}))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	ofBudgets, err := pdbs.AddEventHandler(worker.Handler(controllerName, worker.HandlerFuncs[*policy.PodDisruptionBudget]{
		Add: func(pdb *policy.PodDisruptionBudget, initial bool) {
			dc.selectors.set(pdb)
			dc.budgets.AddEvent(cache.MetaObjectToName(pdb), initial)
		},
		Update: func(_, pdb *policy.PodDisruptionBudget) {
			dc.selectors.set(pdb)
			dc.budgets.Add(cache.MetaObjectToName(pdb))
		},
		Delete: func(pdb *policy.PodDisruptionBudget) {
			dc.selectors.delete(pdb)
			dc.budgets.Add(cache.MetaObjectToName(pdb))
		},
	}))
	if err != nil {
		return fmt.Errorf("watching pod disruption budgets: %w", err)
	}
	dc.synced = append(dc.synced, ofPods.HasSynced, ofBudgets.HasSynced)
	return nil
}

func (dc *DisruptionController) podAdded(pod *v1.Pod, initial bool) {
	dc.changes.AddEvent(newPodChange(pod, true), initial)
	dc.awaitStaleness(pod)
}

func (dc *DisruptionController) podUpdated(old, cur *v1.Pod) {
	was, is := newPodChange(old, false), newPodChange(cur, false)
	switch {
	case was.labels != is.labels:
		is.relabelled = true
		dc.changes.Add(was)
		dc.changes.Add(is)
	case countsDifferently(old, cur):
		dc.changes.Add(is)
	}
	dc.awaitStaleness(cur)
}

// countsDifferently says whether budgets may see a difference between two versions of a Pod with the
// same labels.
func countsDifferently(old, cur *v1.Pod) bool {
	return old.UID != cur.UID ||
		podutil.IsPodReady(old) != podutil.IsPodReady(cur) ||
		(old.DeletionTimestamp == nil) != (cur.DeletionTimestamp == nil) ||
		controllerUID(old) != controllerUID(cur)
}

func controllerUID(pod *v1.Pod) string {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return string(ref.UID)
	}
	return ""
}

func (dc *DisruptionController) awaitStaleness(pod *v1.Pod) {
	if stale, ok := staleness(pod, dc.staleAfter); ok {
		dc.stalePods.AddAfter(cache.MetaObjectToName(pod), stale.Sub(dc.clock.Now()))
	}
}

// Run works on the given number of budgets at a time until ctx is done, and returns when everything
// that it started has ended.
func (dc *DisruptionController) Run(ctx context.Context, workers int) {
	dc.events.RunAround(ctx, func(ctx context.Context) {
		worker.Start(ctx, controllerName, dc.synced,
			dc.budgets.Runner(workers), dc.rechecks.Runner(1), dc.changes.Runner(1), dc.stalePods.Runner(1))
	})
}

// Workers returns the controller's workers, for health checks and debug pages.
func (dc *DisruptionController) Workers() []worker.Reporter {
	return []worker.Reporter{dc.budgets, dc.rechecks, dc.changes, dc.stalePods}
}

// podChanged enqueues the budgets that a change of a Pod concerns.
func (dc *DisruptionController) podChanged(_ context.Context, change podChange) error {
	budgets := dc.selectors.matching(change.namespace, change.set())
	for _, name := range budgets {
		dc.budgets.Add(name)
	}
	if len(budgets) < 2 || !change.relabelled {
		return nil
	}
	pod, err := dc.podLister.Pods(change.namespace).Get(change.name)
	if err != nil {
		return nil // gone: nobody needs the warning
	}
	dc.warnOfSeveral(pod, budgets)
	return nil
}

// recheck brings a budget up whose disrupted Pods may be overdue.
func (dc *DisruptionController) recheck(_ context.Context, key cache.ObjectName) error {
	dc.budgets.Add(key)
	return nil
}

// sync brings a budget's status up to date. It is not called for one key by two goroutines.
func (dc *DisruptionController) sync(ctx context.Context, key cache.ObjectName) error {
	// Before the first read: what is read after this has seen the budget's own writes.
	err := dc.guard.EnsureReady(key.AsNamespacedName())
	if err == nil {
		err = dc.syncCached(ctx, key)
	}
	var behind *consistency.StaleError
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case errors.As(err, &behind), apierrors.IsConflict(err):
		// An eviction, mostly. Not a failure: the event that the cache waits for comes first.
		klog.FromContext(ctx).V(4).Info("Waiting until the cache shows the last write", "reason", err.Error())
		return worker.RequeueAfter(staleRecheck)
	}
	return err
}

func (dc *DisruptionController) syncCached(ctx context.Context, key cache.ObjectName) error {
	pdb, err := dc.pdbs.PodDisruptionBudgets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		dc.guard.Clear(key.AsNamespacedName(), "")
		if dc.pods != nil {
			dc.pods.Forget(key)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading from the cache: %w", err)
	}
	return dc.syncBudget(ctx, pdb)
}

func (dc *DisruptionController) syncBudget(ctx context.Context, pdb *policy.PodDisruptionBudget) error {
	p, err := dc.planFor(ctx, pdb)
	if err == nil {
		return dc.apply(ctx, pdb, p)
	}
	klog.FromContext(ctx).Error(err, "Failed to sync PDB, no disruption is allowed", "podDisruptionBudget", klog.KObj(pdb))
	if failed := dc.applyFailSafe(ctx, pdb, err); failed != nil {
		return failed
	}
	return worker.RequeueAfter(unknownRecheck)
}

// planFor gathers what makePlan needs.
func (dc *DisruptionController) planFor(ctx context.Context, pdb *policy.PodDisruptionBudget) (plan, error) {
	pods, err := dc.podsOf(pdb)
	if err != nil {
		dc.report(pdb, v1.EventTypeWarning, "NoPods", fmt.Sprintf("Failed to get pods: %v", err))
		return plan{}, err
	}
	var wanted scales
	if needsScales(pdb) {
		if wanted, err = dc.finder.scalesOf(ctx, pods); err != nil {
			dc.report(pdb, v1.EventTypeWarning, "CalculateExpectedPodCountFailed", fmt.Sprintf("Failed to calculate the number of expected pods: %v", err))
			return plan{}, err
		}
	}
	p, err := makePlan(pdb, pods, wanted, dc.clock.Now())
	if err != nil {
		dc.report(pdb, v1.EventTypeWarning, "CalculateExpectedPodCountFailed", fmt.Sprintf("Failed to calculate the number of expected pods: %v", err))
		return plan{}, err
	}
	if p.write {
		dc.reportFindings(ctx, pdb, pods, wanted)
	}
	return p, nil
}

func (dc *DisruptionController) podsOf(pdb *policy.PodDisruptionBudget) ([]*v1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("parsing spec.selector: %w", err)
	}
	return dc.pods.Matching(cache.MetaObjectToName(pdb), selector)
}
