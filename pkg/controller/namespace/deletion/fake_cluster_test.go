// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1clientset "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	nsName = "doomed"
	token  = v1.FinalizerKubernetes
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// fakeCluster is an API server with one namespace, that deletes as a real one does: objects with a
// grace period or a finalizer stay until the clock, or release, lets them go. It records requests.
type fakeCluster struct {
	clock *testingclock.FakeClock

	mu         sync.Mutex
	namespace  *v1.Namespace // nil when gone
	version    int
	objects    map[schema.GroupVersionResource]map[string]*metav1.PartialObjectMetadata
	grace      map[schema.GroupVersionResource]time.Duration
	requests   []string
	fail       map[string]error // by request, such as "list configmaps"
	before     map[string]func()
	lists      []*metav1.APIResourceList
	discoverer func() ([]*metav1.APIResourceList, error)
	pageSize   int // caps the page size when set
}

func newFakeCluster() *fakeCluster {
	c := &fakeCluster{
		clock:   testingclock.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		objects: map[schema.GroupVersionResource]map[string]*metav1.PartialObjectMetadata{},
		grace:   map[schema.GroupVersionResource]time.Duration{},
		fail:    map[string]error{},
		before:  map[string]func(){},
	}
	c.namespace = &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: nsName, UID: "ns-uid", ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(c.clock.Now().Add(-time.Hour)),
			DeletionTimestamp: ptr.To(metav1.NewTime(c.clock.Now().Add(-5 * time.Second))),
		},
		Spec:   v1.NamespaceSpec{Finalizers: []v1.FinalizerName{token}},
		Status: v1.NamespaceStatus{Phase: v1.NamespaceTerminating},
	}
	c.lists = []*metav1.APIResourceList{
		resources("v1", "pods", "configmaps"),
		resources("apps/v1", "deployments"),
		resources("example.com/v1", "widgets"),
	}
	return c
}

// resources is one group version with resources that have all verbs.
func resources(groupVersion string, names ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: name, Namespaced: true,
			Verbs: metav1.Verbs{"get", "list", "delete", "deletecollection", "create", "update", "patch", "watch"},
		})
	}
	return list
}

func (c *fakeCluster) deleter() *namespacedResourcesDeleter {
	return newDeleter(&fakeNamespaces{cluster: c}, fakeMetadata{c}, func() ([]*metav1.APIResourceList, error) {
		if err := c.request("discover"); err != nil {
			return nil, err
		}
		if c.discoverer != nil {
			return c.discoverer()
		}
		return c.lists, nil
	}, token, c.clock)
}

// put creates an object that is as old as the namespace.
func (c *fakeCluster) put(gvr schema.GroupVersionResource, name string, finalizers ...string) *metav1.PartialObjectMetadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: nsName, Name: name, UID: types.UID("uid-of-" + name), Finalizers: finalizers,
		CreationTimestamp: metav1.NewTime(c.clock.Now().Add(-time.Hour)),
	}}
	if c.objects[gvr] == nil {
		c.objects[gvr] = map[string]*metav1.PartialObjectMetadata{}
	}
	c.objects[gvr][name] = obj
	return obj
}

// release removes finalizers from all objects of a resource.
func (c *fakeCluster) release(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, obj := range c.objects[gvr] {
		obj.Finalizers = nil
		if obj.DeletionTimestamp != nil && !obj.DeletionTimestamp.After(c.clock.Now()) {
			delete(c.objects[gvr], name)
		}
	}
}

// tick lets time pass: objects whose grace period ends go, unless a finalizer holds them.
func (c *fakeCluster) tick(d time.Duration) {
	c.clock.Step(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, objs := range c.objects {
		for name, obj := range objs {
			if obj.DeletionTimestamp != nil && !obj.DeletionTimestamp.After(c.clock.Now()) && len(obj.Finalizers) == 0 {
				delete(objs, name)
			}
		}
	}
}

func (c *fakeCluster) count(gvr schema.GroupVersionResource) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.objects[gvr])
}

// request records a request and returns the error that it is to have.
func (c *fakeCluster) request(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	c.requests = append(c.requests, text)
	hook, err := c.before[text], c.fail[text]
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return err
}

// taken returns the requests since the last call. Those of one kind that run in parallel are sorted.
func (c *fakeCluster) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests
	c.requests = nil
	return r
}

func (c *fakeCluster) condition(t testing.TB, kind v1.NamespaceConditionType) v1.NamespaceCondition {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cond := range c.namespace.Status.Conditions {
		if cond.Type == kind {
			return cond
		}
	}
	t.Fatalf("no condition %s in %v", kind, c.namespace.Status.Conditions)
	return v1.NamespaceCondition{}
}

// deleteLocked is what the API server does for a delete with background propagation.
func (c *fakeCluster) deleteLocked(gvr schema.GroupVersionResource, obj *metav1.PartialObjectMetadata) {
	if obj.DeletionTimestamp == nil {
		grace := c.grace[gvr]
		obj.DeletionTimestamp = ptr.To(metav1.NewTime(c.clock.Now().Add(grace)))
		obj.DeletionGracePeriodSeconds = ptr.To(int64(grace / time.Second))
	}
	if *obj.DeletionGracePeriodSeconds > 0 && obj.DeletionTimestamp.After(c.clock.Now()) {
		return
	}
	obj.Finalizers = slices.DeleteFunc(obj.Finalizers, func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	if len(obj.Finalizers) == 0 {
		delete(c.objects[gvr], obj.Name)
	}
}

type fakeNamespaces struct {
	v1clientset.NamespaceInterface // other methods panic: they are not to be used
	cluster                        *fakeCluster
}

func (f *fakeNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Namespace, error) {
	if err := f.cluster.request("get namespace"); err != nil {
		return nil, err
	}
	f.cluster.mu.Lock()
	defer f.cluster.mu.Unlock()
	if f.cluster.namespace == nil {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), name)
	}
	return f.cluster.namespace.DeepCopy(), nil
}

func (f *fakeNamespaces) UpdateStatus(_ context.Context, ns *v1.Namespace, _ metav1.UpdateOptions) (*v1.Namespace, error) {
	return f.write("update status", ns, func(live *v1.Namespace) { live.Status = *ns.Status.DeepCopy() })
}

func (f *fakeNamespaces) Finalize(_ context.Context, ns *v1.Namespace, _ metav1.UpdateOptions) (*v1.Namespace, error) {
	return f.write("finalize", ns, func(live *v1.Namespace) { live.Spec.Finalizers = slices.Clone(ns.Spec.Finalizers) })
}

func (f *fakeNamespaces) write(what string, ns *v1.Namespace, change func(*v1.Namespace)) (*v1.Namespace, error) {
	c := f.cluster
	if err := c.request("%s", what); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespace == nil {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), ns.Name)
	}
	if ns.UID != c.namespace.UID || ns.ResourceVersion != c.namespace.ResourceVersion {
		return nil, apierrors.NewConflict(v1.Resource("namespaces"), ns.Name, fmt.Errorf("the object has been modified"))
	}
	change(c.namespace)
	c.version++
	c.namespace.ResourceVersion = fmt.Sprint(1000 + c.version)
	result := c.namespace.DeepCopy()
	if len(result.Spec.Finalizers) == 0 && len(result.Finalizers) == 0 {
		c.namespace = nil
	}
	return result, nil
}

type fakeMetadata struct{ cluster *fakeCluster }

func (f fakeMetadata) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return &fakeResource{cluster: f.cluster, gvr: gvr}
}

type fakeResource struct {
	metadata.ResourceInterface // other methods panic: they are not to be used
	cluster                    *fakeCluster
	gvr                        schema.GroupVersionResource
}

func (f *fakeResource) Namespace(name string) metadata.ResourceInterface {
	if name != nsName {
		panic("request for namespace " + name)
	}
	return f
}

func (f *fakeResource) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	c := f.cluster
	if err := c.request("list %s", f.gvr.Resource); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.objects[f.gvr]))
	for name := range c.objects[f.gvr] {
		if name > options.Continue {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := &metav1.PartialObjectMetadataList{}
	limit := int(options.Limit)
	if c.pageSize > 0 && limit > c.pageSize {
		limit = c.pageSize
	}
	if limit > 0 && len(names) > limit {
		list.RemainingItemCount = ptr.To(int64(len(names) - limit))
		names = names[:limit]
		list.Continue = names[limit-1]
	}
	for _, name := range names {
		list.Items = append(list.Items, *c.objects[f.gvr][name].DeepCopy())
	}
	return list, nil
}

func (f *fakeResource) DeleteCollection(_ context.Context, options metav1.DeleteOptions, _ metav1.ListOptions) error {
	c := f.cluster
	if err := c.request("deletecollection %s", f.gvr.Resource); err != nil {
		return err
	}
	if *options.PropagationPolicy != metav1.DeletePropagationBackground {
		panic("propagation policy is not Background")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range c.objects[f.gvr] {
		c.deleteLocked(f.gvr, obj)
	}
	return nil
}

func (f *fakeResource) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	c := f.cluster
	if err := c.request("delete %s %s", f.gvr.Resource, name); err != nil {
		return err
	}
	if *options.PropagationPolicy != metav1.DeletePropagationBackground {
		panic("propagation policy is not Background")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	obj := c.objects[f.gvr][name]
	if obj == nil {
		return apierrors.NewNotFound(f.gvr.GroupResource(), name)
	}
	if *options.Preconditions.UID != obj.UID {
		return apierrors.NewConflict(f.gvr.GroupResource(), name, fmt.Errorf("the UID in the precondition does not match"))
	}
	c.deleteLocked(f.gvr, obj)
	return nil
}

// sortedTail sorts the requests after the first n, which run in parallel.
func sortedTail(requests []string, n int) []string {
	sorted := slices.Clone(requests)
	if n < len(sorted) {
		slices.Sort(sorted[n:])
	}
	return sorted
}

func methodNotSupported(gvr schema.GroupVersionResource, verb string) error {
	return apierrors.NewMethodNotSupported(gvr.GroupResource(), verb)
}

func isOf(request string, gvr schema.GroupVersionResource) bool {
	return strings.Contains(request, " "+gvr.Resource)
}
