// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	sets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

var served = map[schema.GroupVersionResource]resource{
	pods:    {gvr: pods, kind: podKind, namespaced: true},
	nodes:   {gvr: nodes, kind: nodeKind},
	sets:    {gvr: sets, kind: setKind, namespaced: true},
	widgets: {gvr: widgets, kind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, namespaced: true},
}

// world is an API server in memory: preconditions, finalizers and propagation policies are the real
// one's. It logs requests.
type world struct {
	mu       sync.Mutex
	objects  map[worldKey]*metav1.PartialObjectMetadata
	rv, uids int
	log      []string
	dirty    map[worldKey]bool // changed, and not delivered yet
	// fail may refuse a request; before may change the world first.
	fail   func(verb string, k worldKey) error
	before func(verb string, k worldKey)
	// deleting is called when the collector's deletion is accepted.
	deleting func(obj *metav1.PartialObjectMetadata)
}

type worldKey struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func (k worldKey) String() string { return k.gvr.Resource + " " + k.namespace + "/" + k.name }

func newWorld() *world {
	return &world{objects: map[worldKey]*metav1.PartialObjectMetadata{}, dirty: map[worldKey]bool{}}
}

// create adds an object and returns the reference by which others own it.
func (w *world) create(k worldKey, finalizers []string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uids++
	r := served[k.gvr]
	gv := k.gvr.GroupVersion().String()
	obj := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: r.kind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: k.name, UID: types.UID("uid-" + strconv.Itoa(w.uids)), Finalizers: finalizers, OwnerReferences: owners,
		},
	}
	w.changedLocked(k, obj)
	return ref(gv, r.kind.Kind, k.name, string(obj.UID))
}

// edit changes an object by someone else's hand.
func (w *world) edit(k worldKey, change func(obj *metav1.PartialObjectMetadata)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if obj := w.objects[k]; obj != nil {
		obj = obj.DeepCopy()
		change(obj)
		w.changedLocked(k, obj)
	}
}

func (w *world) changedLocked(k worldKey, obj *metav1.PartialObjectMetadata) {
	w.rv++
	obj.ResourceVersion = strconv.Itoa(w.rv)
	w.objects[k] = obj
	if obj.DeletionTimestamp != nil && len(obj.Finalizers) == 0 {
		delete(w.objects, k)
	}
	w.dirty[k] = true
}

func (w *world) has(k worldKey) bool { return w.get(k) != nil }

func (w *world) get(k worldKey) *metav1.PartialObjectMetadata {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[k]
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// delete deletes by someone else's hand.
func (w *world) delete(k worldKey, policy metav1.DeletionPropagation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if obj := w.objects[k]; obj != nil {
		w.deleteLocked(k, obj, policy)
	}
}

func (w *world) deleteLocked(k worldKey, obj *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) {
	if obj.DeletionTimestamp != nil {
		return
	}
	obj = obj.DeepCopy()
	obj.Finalizers = slices.DeleteFunc(obj.Finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch policy {
	case metav1.DeletePropagationForeground:
		obj.Finalizers = append(obj.Finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		obj.Finalizers = append(obj.Finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationBackground:
	}
	now := metav1.Now()
	obj.DeletionTimestamp = &now
	w.changedLocked(k, obj)
}

// metadata.Interface. An object is there in each version that is served.
func (w *world) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	for stored := range served {
		if stored.GroupResource() == gvr.GroupResource() {
			gvr = stored
		}
	}
	return worldClient{w: w, key: worldKey{gvr: gvr}}
}

type worldClient struct {
	metadata.ResourceInterface // what the collector does not use
	w                          *world
	key                        worldKey
}

func (c worldClient) Namespace(ns string) metadata.ResourceInterface {
	c.key.namespace = ns
	return c
}

func (c worldClient) begin(verb, name, details string) (worldKey, *metav1.PartialObjectMetadata, error) {
	k := c.key
	k.name = name
	if c.w.before != nil {
		c.w.before(verb, k)
	}
	c.w.mu.Lock()
	c.w.log = append(c.w.log, verb+" "+k.String()+details)
	if c.w.fail != nil {
		if err := c.w.fail(verb, k); err != nil {
			return k, nil, err
		}
	}
	obj := c.w.objects[k]
	if obj == nil {
		return k, nil, apierrors.NewNotFound(k.gvr.GroupResource(), name)
	}
	return k, obj, nil
}

func (c worldClient) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	_, obj, err := c.begin("get", name, "")
	defer c.w.mu.Unlock()
	return obj, err
}

func (c worldClient) Delete(_ context.Context, name string, opts metav1.DeleteOptions, _ ...string) error {
	details := " " + string(*opts.PropagationPolicy)
	if opts.Preconditions.ResourceVersion == nil {
		details += " any version"
	}
	k, obj, err := c.begin("delete", name, details)
	defer c.w.mu.Unlock()
	if err != nil {
		return err
	}
	if p := opts.Preconditions; *p.UID != obj.UID || p.ResourceVersion != nil && *p.ResourceVersion != obj.ResourceVersion {
		return apierrors.NewConflict(k.gvr.GroupResource(), name, fmt.Errorf("precondition"))
	}
	if c.w.deleting != nil {
		c.w.deleting(obj)
	}
	c.w.deleteLocked(k, obj, *opts.PropagationPolicy)
	return nil
}

func (c worldClient) Patch(_ context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	details := " merge"
	if pt == types.StrategicMergePatchType {
		details = " strategic"
	}
	k, obj, err := c.begin("patch", name, details)
	defer c.w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if pt == types.StrategicMergePatchType && k.gvr == widgets {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonUnsupportedMediaType, Code: 415}}
	}
	var p struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			Finalizers      json.RawMessage
			OwnerReferences json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if p.Metadata.UID != obj.UID || p.Metadata.ResourceVersion != "" && p.Metadata.ResourceVersion != obj.ResourceVersion {
		return nil, apierrors.NewConflict(k.gvr.GroupResource(), name, fmt.Errorf("precondition"))
	}
	obj = obj.DeepCopy()
	if raw := p.Metadata.Finalizers; raw != nil {
		obj.Finalizers = nil
		if err := json.Unmarshal(raw, &obj.Finalizers); err != nil {
			return nil, err
		}
	}
	if raw := p.Metadata.OwnerReferences; raw != nil && pt == types.MergePatchType {
		obj.OwnerReferences = nil
		if err := json.Unmarshal(raw, &obj.OwnerReferences); err != nil {
			return nil, err
		}
	} else if raw != nil {
		var drop []deleteRef
		if err := json.Unmarshal(raw, &drop); err != nil {
			return nil, err
		}
		obj.OwnerReferences = slices.DeleteFunc(obj.OwnerReferences, func(r metav1.OwnerReference) bool {
			return slices.ContainsFunc(drop, func(d deleteRef) bool { return d.Patch == "delete" && d.UID == r.UID })
		})
	}
	c.w.changedLocked(k, obj)
	return obj, nil
}

type resettableMapper struct{ *meta.DefaultRESTMapper }

func (resettableMapper) Reset() {}

func newMapper() resettableMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "example.com", Version: "v1"}})
	for gvr, r := range served {
		s := meta.RESTScopeRoot
		if r.namespaced {
			s = meta.RESTScopeNamespace
		}
		m.Add(r.kind.WithVersion(gvr.Version), s)
		if gvr == sets { // served in a second version that is not the preferred one
			m.Add(r.kind.WithVersion("v1beta1"), s)
		}
	}
	return resettableMapper{m}
}

// cluster is a collector in a synctest bubble, on a world whose changes reach its caches only when
// they are delivered.
type cluster struct {
	*world
	gc     *GarbageCollector
	kube   *fake.Clientset
	cancel context.CancelFunc
	done   chan struct{}
}

// newCluster makes a collector that watches the resources. start runs it, stop ends it.
func newCluster(ctx context.Context, watched ...schema.GroupVersionResource) *cluster {
	c := &cluster{world: newWorld(), kube: fake.NewClientset()}
	c.restart(ctx, watched...)
	return c
}

// restart makes a new collector, as after a crash.
func (c *cluster) restart(ctx context.Context, watched ...schema.GroupVersionResource) {
	started := make(chan struct{})
	close(started)
	b := newGraphBuilder(c.world, newMapper(), nil, nil, started, clock.RealClock{})
	gc, err := NewComposedGarbageCollector(ctx, c.kube, c.world, newMapper(), b)
	if err != nil {
		panic(err)
	}
	c.gc = gc
	for _, gvr := range watched {
		c.watch(gvr)
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		gc.Run(ctx, 3, 30*time.Second)
	}()
}

func (c *cluster) stop() {
	c.cancel()
	<-c.done
}

// watch adds a monitor whose cache only deliver fills.
func (c *cluster) watch(gvr schema.GroupVersionResource) *monitor {
	r, b := served[gvr], c.gc.builder
	s := scopeCluster
	if r.namespaced {
		s = scopeNamespaced
	}
	key, e := b.graph.setScope(r.kind, s)
	m := &monitor{resource: r, key: key, since: time.Now(), informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, nil)}
	m.marked.Store(true)
	m.ready.Store(true)
	b.mu.Lock()
	b.monitors[gvr], b.byKind[key] = m, m
	b.mu.Unlock()
	b.enqueue(e)
	c.mu.Lock()
	for k := range c.objects {
		if k.gvr == gvr {
			c.dirty[k] = true
		}
	}
	c.mu.Unlock()
	return m
}

// deliver brings an object's present state into its cache.
func (c *cluster) deliver(k worldKey) {
	c.mu.Lock()
	obj := c.objects[k]
	delete(c.dirty, k)
	c.mu.Unlock()
	b := c.gc.builder
	b.mu.RLock()
	m := b.monitors[k.gvr]
	b.mu.RUnlock()
	if m == nil {
		return
	}
	store := m.informer.GetIndexer()
	item, exists, _ := store.GetByKey(cache.NewObjectName(k.namespace, k.name).String())
	if obj != nil {
		_ = store.Update(obj)
		b.changes.Add(change{monitor: m, namespace: k.namespace, name: k.name, uid: obj.UID})
	}
	if exists {
		old := item.(*metav1.PartialObjectMetadata)
		if obj == nil {
			_ = store.Delete(old)
		}
		if obj == nil || obj.UID != old.UID {
			b.changes.Add(change{monitor: m, namespace: k.namespace, name: k.name, uid: old.UID})
		}
	}
}

func (c *cluster) dirtyKeys() []worldKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []worldKey
	for k := range c.dirty {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b worldKey) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	return keys
}

// settle delivers everything until nothing happens any more.
func (c *cluster) settle() {
	for range 8 {
		for keys := c.dirtyKeys(); len(keys) > 0; keys = c.dirtyKeys() {
			for _, k := range keys {
				c.deliver(k)
			}
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// inBubble runs a test with a collector that watches everything but nothing else.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context(), pods, nodes, sets, widgets)
		defer c.stop()
		test(t, c)
	})
}

func testLogger(t *testing.T) klog.Logger { return klog.FromContext(t.Context()) }
