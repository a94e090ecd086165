// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"errors"
	"fmt"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	endpointsliceutil "k8s.io/endpointslice/util"

	"github.com/kcm-dev/kcm/pkg/controller/util/consistency"
)

// serviceIndex is the name of the index of EndpointSlices by the name in their label service-name.
const serviceIndex = "serviceName"

var resource = schema.GroupResource{Group: discovery.GroupName, Resource: "endpointslices"}

// errGone says that the slice to be written is not there any more.
var errGone = errors.New("the endpoint slice is gone")

// Owner is an object that slices are kept for.
type Owner struct {
	types.NamespacedName
	UID types.UID
}

// Slices are the EndpointSlices that one controller keeps. Create it with NewSlices.
type Slices struct {
	managedBy string
	client    clientset.Interface
	indexer   cache.Indexer
	guard     *consistency.Guard
	waiting   consistency.Waiting
	// Tracker knows the generation of each slice that was written. The library's reconciler tells
	// it, too.
	Tracker *endpointsliceutil.EndpointSliceTracker
}

// NewSlices returns the slices with this name in their label managed-by. It adds an index to the
// informer unless it is there.
func NewSlices(informer discoveryinformers.EndpointSliceInformer, client clientset.Interface, managedBy string) (*Slices, error) {
	indexer := informer.Informer().GetIndexer()
	s := &Slices{
		managedBy: managedBy,
		client:    client,
		indexer:   indexer,
		guard:     consistency.NewGuard(map[schema.GroupResource]consistency.Reader{resource: indexer}),
		Tracker:   endpointsliceutil.NewEndpointSliceTracker(),
	}
	if _, exists := indexer.GetIndexers()[serviceIndex]; exists {
		return s, nil
	}
	if err := informer.Informer().AddIndexers(cache.Indexers{serviceIndex: indexService}); err != nil {
		return s, fmt.Errorf("indexing endpoint slices by their service: %w", err)
	}
	return s, nil
}

func indexService(obj any) ([]string, error) {
	slice, ok := obj.(*discovery.EndpointSlice)
	if !ok {
		return nil, nil
	}
	owner, ok := ownerOf(slice)
	if !ok {
		return nil, nil
	}
	return []string{owner.String()}, nil
}

// ownerOf returns the name that a slice's label service-name refers to.
func ownerOf(slice *discovery.EndpointSlice) (cache.ObjectName, bool) {
	name := slice.Labels[discovery.LabelServiceName]
	return cache.ObjectName{Namespace: slice.Namespace, Name: name}, name != ""
}

func (s *Slices) manages(slice *discovery.EndpointSlice) bool {
	return slice.Labels[discovery.LabelManagedBy] == s.managedBy
}

// EnsureReady returns a *consistency.StaleError while the cache does not show the owner's last
// writes; the event of the last one then enqueues the owner. Call it before the first read.
func (s *Slices) EnsureReady(owner types.NamespacedName) error {
	return s.waiting.EnsureReady(s.guard, owner)
}

// Of returns the slices of an owner from the cache, without those that are being deleted. They are
// read-only; the order is arbitrary.
func (s *Slices) Of(owner types.NamespacedName) ([]*discovery.EndpointSlice, error) {
	objs, err := s.indexer.ByIndex(serviceIndex, owner.String())
	if err != nil {
		return nil, fmt.Errorf("looking up endpoint slices in index %s: %w", serviceIndex, err)
	}
	var found []*discovery.EndpointSlice
	shown := sets.New[types.UID]()
	for _, obj := range objs {
		slice, ok := obj.(*discovery.EndpointSlice)
		if !ok {
			return nil, fmt.Errorf("unexpected object type %T in endpoint slice indexer", obj)
		}
		if !s.manages(slice) || slice.DeletionTimestamp != nil {
			continue
		}
		shown.Insert(slice.UID)
		if !s.guard.IsDeleting(owner, slice.UID) {
			found = append(found, slice)
		}
	}
	s.guard.Observe(owner, shown)
	return found, nil
}

// Forget drops what is remembered of an owner that is gone.
func (s *Slices) Forget(owner types.NamespacedName) {
	s.guard.Clear(owner, "")
	s.waiting.Done(owner)
	s.Tracker.DeleteService(owner.Namespace, owner.Name)
}

// Cached returns a slice from the cache by its name, nil when it is not there.
func (s *Slices) Cached(namespace, name string) (*discovery.EndpointSlice, error) {
	obj, exists, err := s.indexer.GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil || !exists {
		return nil, err
	}
	slice, ok := obj.(*discovery.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("unexpected object type %T in endpoint slice indexer", obj)
	}
	return slice, nil
}
