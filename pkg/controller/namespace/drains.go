// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller/namespace/deletion"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	// lookPeriod is how often the caches are looked at for namespaces that wait for content to go.
	// A look is a few index look-ups in memory, far cheaper than a handler on each informer that is
	// called for each object of the cluster.
	lookPeriod = 250 * time.Millisecond
	// maxFalseWakes bounds the doubling of lookPeriod for a namespace that caches which do not see
	// its content woke in vain: to half a minute.
	maxFalseWakes = 7
)

// drains remembers, of each namespace that is being emptied, when its grace period ends and what
// content it waits for, and wakes it when the caches show that this has gone. Nil, of a controller
// without caches, it remembers nothing.
type drains struct {
	caches deletion.Caches
	clock  clock.WithTicker
	wake   func(namespace string)
	// looks runs while a namespace waits.
	looks *worker.Poller

	// mu guards the following field and what it points to.
	mu     sync.Mutex
	byName map[string]*drain
}

// drain is one namespace's.
type drain struct {
	uid        types.UID
	graceEnds  time.Time
	resources  []schema.GroupVersionResource // nil: waits for nothing
	notBefore  time.Time
	falseWakes int
}

func newDrains(caches deletion.Caches, c clock.WithTicker, wake func(string)) *drains {
	d := &drains{caches: caches, clock: c, wake: wake, byName: map[string]*drain{}}
	d.looks = worker.NewPoller(c, lookPeriod, func(context.Context) bool { return d.look() })
	return d
}

// begin notes that ns was seen to be terminating; false when that was known. The grace period is
// counted by our clock from here, whatever clock wrote the deletion's time.
func (d *drains) begin(ns *v1.Namespace) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.byName[ns.Name]; known != nil && known.uid == ns.UID {
		return false
	}
	d.byName[ns.Name] = &drain{uid: ns.UID, graceEnds: d.clock.Now().Add(deletion.GracePeriod)}
	return true
}

// graceLeft returns how much of a namespace's grace period is left; not more than 0 when it is over or unknown.
func (d *drains) graceLeft(name string) time.Duration {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.byName[name]
	if known == nil {
		return 0
	}
	return known.graceEnds.Sub(d.clock.Now())
}

// end forgets a namespace that there is nothing more to do about.
func (d *drains) end(name string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byName, name)
}

// await has the namespace woken when no object of the resources is left in it.
func (d *drains) await(name string, resources []schema.GroupVersionResource) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.byName[name]
	if known == nil || len(resources) == 0 {
		return
	}
	known.resources = resources
	known.notBefore = d.clock.Now().Add(lookPeriod << known.falseWakes)
	d.looks.Wake()
}

// look wakes the namespaces whose content has gone, and tells whether others still wait.
func (d *drains) look() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, left := d.clock.Now(), false
	for name, known := range d.byName {
		if known.resources == nil {
			continue
		}
		switch gone, seen := d.gone(name, known.resources); {
		case seen:
			known.falseWakes, left = 0, true
		case gone && !now.Before(known.notBefore):
			known.resources = nil
			known.falseWakes = min(known.falseWakes+1, maxFalseWakes)
			d.wake(name)
		default:
			left = left || gone
		}
	}
	return left
}

// gone tells whether caches cover all resources and hold none of their objects in the namespace, and
// whether any object was seen.
func (d *drains) gone(name string, resources []schema.GroupVersionResource) (gone, seen bool) {
	gone = true
	for _, resource := range resources {
		count, known := d.caches.Count(resource, name)
		gone = gone && known && count == 0
		seen = seen || count > 0
	}
	return gone, seen
}
