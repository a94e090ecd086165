// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// UserAgent is the user agent of every request of a Kubelet.
const UserAgent = "fake-kubelet"

// Outcome is what becomes of a pod on its node.
type Outcome int

// The outcomes. Succeeded and Failed are final: a pod that reached one of them
// keeps it whatever is Set later.
const (
	// Ready pods run and pass their readiness probes.
	Ready Outcome = iota
	// NotReady pods run and fail their readiness probes.
	NotReady
	// Waiting pods are bound but their containers are not started.
	Waiting
	// Succeeded pods have ended with exit code 0.
	Succeeded
	// Failed pods have ended with exit code 1.
	Failed
)

// Options of a Kubelet.
type Options struct {
	// Nodes are the names of the nodes to play. At least one.
	Nodes []string
	// Binds says which unscheduled pods the Kubelet binds to its nodes, in
	// turn. Nil: none, a scheduler does it. A pod that names one of the nodes
	// in its spec needs no binding.
	Binds func(*corev1.Pod) bool
	// Place chooses the node for a pod to bind; "" leaves the pod pending.
	// Nil: round robin.
	Place func(*corev1.Pod) string
	// Termination is how long containers take to stop after SIGTERM. A pod is
	// gone after this or its grace period, whichever is shorter. Default 0.
	Termination time.Duration
	// LeaseDuration of the nodes' leases; they are renewed four times in it,
	// and the nodes' Ready condition gets a heartbeat as often. Default 40s.
	LeaseDuration time.Duration
	// Workers is the number of pods handled at the same time. Default 8.
	Workers int
	// Clock tells time. Nil: the real one.
	Clock clock.WithTicker
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case len(o.Nodes) == 0:
		return o, errors.New("fake kubelet: Options.Nodes names no node")
	case o.Place != nil && o.Binds == nil:
		return o, errors.New("fake kubelet: Options.Place is set but Binds selects no pod to place")
	case o.Termination < 0 || o.LeaseDuration < 0 || o.Workers < 0:
		return o, fmt.Errorf("fake kubelet: Termination %v, LeaseDuration %v and Workers %d must not be negative", o.Termination, o.LeaseDuration, o.Workers)
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = 40 * time.Second // kubelet's nodeLeaseDurationSeconds
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}

// rule gives an outcome to the pods that it matches.
type rule struct {
	match   func(*corev1.Pod) bool
	outcome Outcome
}

// Kubelet plays the kubelets of several nodes.
type Kubelet struct {
	opts   Options
	client kubernetes.Interface
	pods   cache.SharedIndexInformer
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	next   atomic.Int64 // round robin

	mu sync.Mutex
	// mu guards the following fields.
	ips          int // pod IPs handed out
	rules        []rule
	holdDeletion func(*corev1.Pod) bool
	silent       map[string]bool // nodes without heartbeat
	beat         chan struct{}   // closed and replaced when silent changes
	known        map[types.UID]*podRecord
}

// podRecord is what the Kubelet remembers of a pod and its cache may not show yet.
type podRecord struct {
	ip               string
	terminatingSince time.Time
	wrote            string // resource version of the last status that was written
	removed          bool   // the final DELETE was answered
}

// New returns a Kubelet. Nothing is sent before Run.
func New(cfg *rest.Config, opts Options) (*Kubelet, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS, cfg.RateLimiter = UserAgent, -1, nil
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("fake kubelet: %w", err)
	}
	return &Kubelet{
		opts:   opts,
		client: client,
		pods:   corev1informers.NewPodInformer(client, corev1.NamespaceAll, 0, cache.Indexers{}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second)),
		silent: map[string]bool{},
		beat:   make(chan struct{}),
		known:  map[types.UID]*podRecord{},
	}, nil
}

// Set gives an outcome to the pods that match (nil: all), now and later. The
// last Set that matches a pod decides; without any, pods become Ready.
func (k *Kubelet) Set(outcome Outcome, match func(*corev1.Pod) bool) {
	k.mu.Lock()
	k.rules = append(k.rules, rule{match, outcome})
	k.mu.Unlock()
	k.resync()
}

// HoldDeletion keeps terminating pods that match from ever ending, as a kubelet
// that is gone or a container that cannot be killed. Nil ends all holds.
func (k *Kubelet) HoldDeletion(match func(*corev1.Pod) bool) {
	k.mu.Lock()
	k.holdDeletion = match
	k.mu.Unlock()
	k.resync()
}

// Silence stops (or starts again) the heartbeat of a node: its lease and its
// Ready condition grow old, and its pods are not looked after, as when the
// machine is gone.
func (k *Kubelet) Silence(node string, silent bool) {
	k.mu.Lock()
	k.silent[node] = silent
	close(k.beat)
	k.beat = make(chan struct{})
	k.mu.Unlock()
	k.resync()
}

// HasSynced tells whether the Kubelet knows all pods.
func (k *Kubelet) HasSynced() bool { return k.pods.HasSynced() }

// Run creates the nodes and looks after their pods until ctx is done. It
// returns when all its goroutines have ended; the nodes stay.
func (k *Kubelet) Run(ctx context.Context) error {
	defer k.queue.ShutDown()
	for _, name := range k.opts.Nodes {
		if err := k.ensureNode(ctx, name); err != nil {
			return fmt.Errorf("fake kubelet: creating node %s: %w", name, err)
		}
	}
	handle, err := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.enqueue,
		UpdateFunc: func(_, cur any) { k.enqueue(cur) },
		DeleteFunc: k.forget,
	})
	if err != nil {
		return fmt.Errorf("fake kubelet: watching pods: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { k.pods.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return nil // ctx is done
	}
	for _, name := range k.opts.Nodes {
		wg.Go(func() { k.heartbeat(ctx, name) })
	}
	for range k.opts.Workers {
		wg.Go(func() {
			for k.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	return nil
}

func (k *Kubelet) enqueue(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		k.queue.Add(cache.MetaObjectToName(pod))
	}
}

func (k *Kubelet) forget(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.known, pod.UID)
	}
}

// resync looks at all pods again, after a change of what should become of them.
func (k *Kubelet) resync() {
	for _, obj := range k.pods.GetStore().List() {
		k.enqueue(obj)
	}
}

func (k *Kubelet) processNext(ctx context.Context) bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)
	err := k.sync(ctx, key)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		k.queue.Forget(key)
	case apierrors.IsConflict(err):
		// The pod is another one by now, or the cache is behind: its next event comes.
		k.queue.AddRateLimited(key)
	default:
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Fake kubelet failed, will retry", "pod", key)
		}
		k.queue.AddRateLimited(key)
	}
	return true
}

// owns tells whether node is one that the Kubelet plays.
func (k *Kubelet) owns(node string) bool { return slices.Contains(k.opts.Nodes, node) }

// outcomeFor is what should become of a pod now.
func (k *Kubelet) outcomeFor(pod *corev1.Pod) Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range slices.Backward(k.rules) {
		if r.match == nil || r.match(pod) {
			return r.outcome
		}
	}
	return Ready
}

func (k *Kubelet) isHeld(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holdDeletion != nil && k.holdDeletion(pod)
}

func (k *Kubelet) isSilent(node string) (silent bool, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.silent[node], k.beat
}

// recordLocked returns the record of a pod, a new one if there is none.
func (k *Kubelet) recordLocked(uid types.UID) *podRecord {
	r, ok := k.known[uid]
	if !ok {
		r = &podRecord{}
		k.known[uid] = r
	}
	return r
}

// terminatingSince is when the Kubelet first saw that the pod is to end.
func (k *Kubelet) terminatingSince(uid types.UID, now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.recordLocked(uid)
	if r.terminatingSince.IsZero() {
		r.terminatingSince = now
	}
	return r.terminatingSince
}

// podIP is the pod's address: 10.128.0.1, 10.128.0.2, …, enough for four million pods.
func (k *Kubelet) podIP(uid types.UID) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.recordLocked(uid)
	if r.ip == "" {
		k.ips++
		r.ip = fmt.Sprintf("10.%d.%d.%d", 128+k.ips>>16&63, k.ips>>8&255, k.ips&255)
	}
	return r.ip
}

// wrote remembers the version that a status was written at.
func (k *Kubelet) wrote(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recordLocked(pod.UID).wrote = pod.ResourceVersion
}

// removed remembers that a pod is gone.
func (k *Kubelet) removed(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recordLocked(uid).removed = true
}

// isStale tells whether the cache does not yet show the Kubelet's own last
// write to the pod; the event that shows it brings the pod back.
func (k *Kubelet) isStale(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.known[pod.UID]
	if ok && r.removed {
		return true
	}
	if !ok || r.wrote == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, r.wrote)
	return err == nil && order < 0
}
