// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"sync"
	"sync/atomic"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"

	sliceutil "github.com/kcm-dev/kcm/pkg/controller/util/endpointslice"
)

// sliceClient is the client that the library's reconciler writes with. The library gives its
// requests no context, overwrites what it recycles and deletes by name: sliceClient gives them the
// context of the sync, and lets package util/endpointslice send them.
type sliceClient struct {
	clientset.Interface
	slices *sliceutil.Slices
	// syncs has the *inFlight of each Service that is being synced, by its NamespacedName.
	syncs sync.Map
}

// inFlight is one sync of one Service.
type inFlight struct {
	ctx   context.Context
	owner sliceutil.Owner
	// conflict says that a write was refused because the cache was stale.
	conflict atomic.Bool
}

// begin tells the client of a sync. The sync ends by calling end.
func (c *sliceClient) begin(ctx context.Context, owner sliceutil.Owner) (sync *inFlight, end func()) {
	sync = &inFlight{ctx: ctx, owner: owner}
	c.syncs.Store(owner.NamespacedName, sync)
	return sync, func() { c.syncs.Delete(owner.NamespacedName) }
}

// of returns the sync that a slice is written in. There is none only if the slice was given to
// another Service meanwhile.
func (c *sliceClient) of(ctx context.Context, slice *discovery.EndpointSlice) *inFlight {
	owner := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discovery.LabelServiceName]}
	if found, ok := c.syncs.Load(owner); ok {
		if sync, ok := found.(*inFlight); ok {
			return sync
		}
	}
	return &inFlight{ctx: ctx, owner: sliceutil.Owner{NamespacedName: owner}}
}

// DiscoveryV1 returns the API group whose slices are written through package util/endpointslice.
func (c *sliceClient) DiscoveryV1() discoveryclient.DiscoveryV1Interface {
	return &discoveryGroup{DiscoveryV1Interface: c.Interface.DiscoveryV1(), client: c}
}

type discoveryGroup struct {
	discoveryclient.DiscoveryV1Interface
	client *sliceClient
}

func (g *discoveryGroup) EndpointSlices(namespace string) discoveryclient.EndpointSliceInterface {
	return &sliceWriter{EndpointSliceInterface: g.DiscoveryV1Interface.EndpointSlices(namespace), client: g.client, namespace: namespace}
}

// sliceWriter has the three requests that the reconciler sends.
type sliceWriter struct {
	discoveryclient.EndpointSliceInterface
	client    *sliceClient
	namespace string
}

func (w *sliceWriter) Create(ctx context.Context, slice *discovery.EndpointSlice, _ metav1.CreateOptions) (*discovery.EndpointSlice, error) {
	sync := w.client.of(ctx, slice)
	return w.client.slices.Create(sync.ctx, sync.owner, slice)
}

func (w *sliceWriter) Update(ctx context.Context, slice *discovery.EndpointSlice, _ metav1.UpdateOptions) (*discovery.EndpointSlice, error) {
	sync := w.client.of(ctx, slice)
	updated, err := w.client.slices.Update(sync.ctx, sync.owner, slice)
	if apierrors.IsConflict(err) {
		sync.conflict.Store(true)
	}
	return updated, err
}

func (w *sliceWriter) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	slice, err := w.client.slices.Cached(w.namespace, name)
	if err != nil || slice == nil {
		return err
	}
	sync := w.client.of(ctx, slice)
	err = w.client.slices.Delete(sync.ctx, sync.owner, slice)
	if apierrors.IsConflict(err) {
		sync.conflict.Store(true)
	}
	return err
}
