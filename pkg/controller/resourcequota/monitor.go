// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	kcmcache "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

const (
	// readyPoll is how often monitors are asked whether their first list has come.
	readyPoll = 100 * time.Millisecond
	// patience is how long a first list may take before it is told that it does not come.
	patience = 30 * time.Second
)

// UpdateFilter says whether an update of an object may change what it uses of a quota.
type UpdateFilter func(resource schema.GroupVersionResource, oldObj, newObj any) bool

// monitors are the watched resources.
type monitors struct {
	registry  quota.Registry
	informers informerfactory.InformerFactory
	filter    UpdateFilter
	resync    controller.ResyncPeriodFunc
	metrics   *metrics
	// changed is told which resource of which namespace has changed; empty means all of them. initial
	// says that the change can wait for others.
	changed   func(resource schema.GroupResource, namespace string, initial bool)
	readiness *worker.Poller

	// mu guards the following fields.
	mu  sync.RWMutex
	all map[schema.GroupVersionResource]*monitor
	// byResource holds the monitor in whose version a resource is counted.
	byResource map[schema.GroupResource]*monitor
	stopped    bool
}

// monitor is one watched resource.
type monitor struct {
	gvr          schema.GroupVersionResource
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	// evaluator is the one that was added to the registry for this resource; nil if there was one.
	evaluator quota.Evaluator
	since     time.Time
	ready     atomic.Bool
	told      atomic.Bool // that it takes long
}

// pending returns why a resource cannot be listed yet; empty if it can, or is none that is watched.
func (m *monitors) pending(resource schema.GroupResource) string {
	m.mu.RLock()
	mon := m.byResource[resource]
	m.mu.RUnlock()
	if mon == nil || mon.ready.Load() {
		return ""
	}
	if mon.informer.HasSynced() {
		return "" // sooner than the poll has seen it
	}
	return mon.why()
}

// overdue says whether any resource that counts under the names is being waited for in vain.
func (m *monitors) overdue(resources []schema.GroupResource) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.ContainsFunc(resources, func(resource schema.GroupResource) bool {
		mon := m.byResource[resource]
		return mon != nil && !mon.ready.Load() && mon.told.Load()
	})
}

// why says why the first list has not come, as far as the informer knows.
func (mon *monitor) why() string {
	text := fmt.Sprintf("%s could not be listed yet", mon.gvr.GroupResource())
	if informer, ok := mon.informer.GetController().(interface {
		Status(time.Time) kcmcache.Status
	}); ok {
		if err := informer.Status(time.Now()).LastError; err != "" {
			text += " (" + err + ")"
		}
	}
	return text
}

// watched returns the watched resources, sorted.
func (m *monitors) watched() []schema.GroupVersionResource {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := make([]schema.GroupVersionResource, 0, len(m.all))
	for gvr := range m.all {
		found = append(found, gvr)
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// sync watches exactly the given resources. What failed is named in the error; the others are
// watched all the same.
func (m *monitors) sync(resources map[schema.GroupVersionResource]struct{}) (added, removed int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return 0, 0, nil
	}
	var errs []error
	for gvr, mon := range m.all {
		if _, keep := resources[gvr]; !keep {
			errs = append(errs, m.removeLocked(mon))
			m.release(mon)
			removed++
		}
	}
	for gvr := range resources {
		if m.all[gvr] != nil {
			continue
		}
		if err := m.addLocked(gvr); err != nil {
			errs = append(errs, fmt.Errorf("couldn't start monitor for resource %q: %w", gvr, err))
			continue
		}
		added++
	}
	return added, removed, errors.Join(errs...)
}

func (m *monitors) addLocked(gvr schema.GroupVersionResource) error {
	resource := gvr.GroupResource()
	informer, err := m.informers.ForResource(gvr)
	if err != nil {
		return err
	}
	mon := &monitor{gvr: gvr, informer: informer.Informer(), since: time.Now()}
	mon.registration, err = mon.informer.AddEventHandlerWithResyncPeriod(worker.Handler(controllerName, worker.HandlerFuncs[metav1.Object]{
		Update: func(old, cur metav1.Object) {
			// Another object of that name has come in between: the old one is gone.
			if old.GetUID() != cur.GetUID() || m.filter != nil && m.filter(gvr, old, cur) {
				m.changed(resource, cur.GetNamespace(), false)
			}
		},
		Delete: func(obj metav1.Object) { m.changed(resource, obj.GetNamespace(), false) },
	}), m.resync())
	if err != nil {
		return err
	}
	m.all[gvr] = mon
	m.readiness.Wake()
	if m.byResource[resource] == nil || m.registry.Get(resource) == nil {
		m.byResource[resource] = mon
	}
	if m.registry.Get(resource) == nil {
		mon.evaluator = generic.NewObjectCountEvaluator(resource, mon.list(informer.Lister()), "")
		m.registry.Add(mon.evaluator)
	}
	return nil
}

// list returns a function that lists the objects that the monitor's own informer has: nobody asks
// the factory again, which would make an informer anew for a resource that is gone.
func (mon *monitor) list(lister cache.GenericLister) generic.ListFuncByNamespace {
	return func(namespace string) ([]runtime.Object, error) {
		if !mon.informer.HasSynced() {
			return nil, fmt.Errorf("%v not yet synced", mon.gvr)
		}
		return lister.ByNamespace(namespace).List(labels.Everything())
	}
}

func (m *monitors) removeLocked(mon *monitor) error {
	delete(m.all, mon.gvr)
	resource := mon.gvr.GroupResource()
	if m.byResource[resource] == mon {
		delete(m.byResource, resource)
	}
	if mon.evaluator != nil && m.registry.Get(resource) == mon.evaluator {
		m.registry.Remove(mon.evaluator)
	}
	m.metrics.unsynced.DeleteLabelValues(mon.gvr.Group, mon.gvr.Version, mon.gvr.Resource)
	if err := mon.informer.RemoveEventHandler(mon.registration); err != nil {
		return fmt.Errorf("stopping the monitor for resource %q: %w", mon.gvr, err)
	}
	return nil
}

// release gives up the informer of a resource that is gone, if the factory can.
func (m *monitors) release(mon *monitor) {
	if releaser, ok := m.informers.(informerfactory.Releaser); ok {
		releaser.ReleaseInformer(mon.gvr)
	}
}

// checkReadiness has the quotas counted that waited for a resource, once its first list has come,
// and tells when it takes long; more says that others are without one still.
func (m *monitors) checkReadiness(ctx context.Context) (more bool) {
	now := time.Now()
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, mon := range m.all {
		switch labels := []string{mon.gvr.Group, mon.gvr.Version, mon.gvr.Resource}; {
		case mon.ready.Load():
			continue
		case mon.informer.HasSynced():
			mon.ready.Store(true)
			m.metrics.unsynced.DeleteLabelValues(labels...)
			m.changed(mon.gvr.GroupResource(), "", true)
			continue
		case !mon.told.Load() && now.Sub(mon.since) > patience:
			mon.told.Store(true)
			m.metrics.unsynced.WithLabelValues(labels...).Set(1)
			klog.FromContext(ctx).Info("A resource cannot be listed; quotas that name it keep their last values",
				"controller", controllerName, "resource", mon.gvr, "reason", mon.why())
			m.changed(mon.gvr.GroupResource(), "", true)
		}
		more = true
	}
	return more
}

// stop takes all handlers off for good. The informers stay, for others and for the next controller.
func (m *monitors) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	for _, mon := range m.all {
		_ = m.removeLocked(mon)
	}
}
