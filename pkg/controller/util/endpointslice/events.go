// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"time"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// Handler returns an event handler that enqueues the owner of a slice when somebody else has
// changed it or taken it away, after repairDelay, and at once when the owner waits for the event.
func (s *Slices) Handler(controller string, w *worker.Worker[cache.ObjectName], repairDelay time.Duration) cache.ResourceEventHandler {
	h := &handler{Slices: s, worker: w, repairDelay: repairDelay}
	return worker.Handler(controller, worker.HandlerFuncs[*discovery.EndpointSlice]{
		Add: h.added, Update: h.updated, Delete: h.deleted,
	})
}

type handler struct {
	*Slices
	worker      *worker.Worker[cache.ObjectName]
	repairDelay time.Duration
}

func (h *handler) added(slice *discovery.EndpointSlice, initial bool) {
	owner, ok := ownerOf(slice)
	switch {
	case !ok || !h.manages(slice):
	case initial:
		h.worker.AddInitial(owner)
	default:
		h.changed(owner, h.Tracker.ShouldSync(slice))
	}
}

func (h *handler) updated(old, cur *discovery.EndpointSlice) {
	oldOwner, had := ownerOf(old)
	owner, has := ownerOf(cur)
	had, has = had && h.manages(old), has && h.manages(cur)
	switch {
	case had && has && oldOwner == owner && old.UID == cur.UID:
		h.changed(owner, h.Tracker.ShouldSync(cur))
		return
	case had:
		// Taken from its owner by an edit of its labels.
		h.Tracker.HandleDeletion(old)
		h.changed(oldOwner, true)
	}
	if has {
		h.changed(owner, h.Tracker.ShouldSync(cur))
	}
}

func (h *handler) deleted(slice *discovery.EndpointSlice) {
	owner, ok := ownerOf(slice)
	if !ok || !h.manages(slice) {
		return
	}
	h.Tracker.HandleDeletion(slice)
	h.changed(owner, !h.guard.IsDeleting(owner.AsNamespacedName(), slice.UID))
}

// changed enqueues the owner of a slice, if it waits or if the change was somebody else's.
func (h *handler) changed(owner cache.ObjectName, foreign bool) {
	switch {
	case h.waiting.Done(owner.AsNamespacedName()):
		h.worker.Add(owner)
	case foreign:
		h.worker.AddAfter(owner, h.repairDelay)
	}
}
