// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

const (
	// discoveryPeriod is how often a standby asks which resources there are: as often as the
	// controllers do that it stands by for.
	discoveryPeriod = 30 * time.Second
	// takeOverTime is how long after the lease is won the controllers have taken up, for certain,
	// the discovered resources that they want.
	takeOverTime = 2 * discoveryPeriod
)

// standBy prepares for leading: it fills the caches now, unless --leader-elect-standby=cold leaves
// that for when the lease is won. The informers run until ctx is done. takeOver ends the standby
// when this process leads; calling it again does nothing.
func (m *manager) standBy(ctx context.Context, cc ControllerContext) (takeOver func() error, err error) {
	if !m.elects() {
		return func() error { return nil }, m.warm(ctx, cc)
	}
	if m.config.Standby == config.StandbyCold {
		m.ready.warm(nil)
		return sync.OnceValue(func() error { return m.warm(ctx, cc) }), nil
	}
	if err := m.warm(ctx, cc); err != nil {
		return nil, err
	}
	w, err := m.newWarmer(cc, ctx.Done())
	if err != nil {
		return nil, err
	}
	standing, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { w.run(standing) })
	m.wg.Go(wg.Wait)
	return sync.OnceValue(func() error {
		end()
		wg.Wait()
		m.wg.Go(func() { w.releaseAfter(ctx, takeOverTime) })
		return nil
	}), nil
}

// warm starts the informers of all selected controllers.
func (m *manager) warm(ctx context.Context, cc ControllerContext) error {
	caches := map[schema.GroupVersionResource]cache.InformerSynced{}
	for _, d := range m.descriptors {
		for _, gvr := range d.Watches {
			informer, err := cc.InformerFactory.ForResource(gvr)
			if err != nil {
				return fmt.Errorf("warming the informers of %s: %w", d.Name, err)
			}
			caches[gvr] = informer.Informer().HasSynced
		}
	}
	cc.startInformers(ctx)
	m.ready.warm(caches)
	return nil
}

// newWarmer returns a warmer for what the selected controllers discover. The informers that it
// starts run until done is closed.
func (m *manager) newWarmer(cc ControllerContext, done <-chan struct{}) (*warmer, error) {
	client, err := cc.RootClientBuilder.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client of the standby: %w", err)
	}
	w := &warmer{informers: &startUntil{cc.ObjectOrMetadataInformerFactory, done}, discovery: client}
	for _, d := range m.descriptors {
		if d.Discovers != nil {
			w.wanted = append(w.wanted, d.Discovers)
		}
	}
	return w, nil
}

// warmer keeps the informers of a standby running that the controllers will ask for when they have
// asked discovery what there is. Such a resource may be one that cannot be listed, so whether its
// cache is full says nothing about being ready. The controllers find their informers running and
// take them over: nothing is handed over but the lease.
type warmer struct {
	informers informerfactory.InformerFactory
	discovery discovery.ServerResourcesInterface
	wanted    []func([]*metav1.APIResourceList) []schema.GroupVersionResource
	warmed    sets.Set[schema.GroupVersionResource] // run's, and once that has returned, releaseAfter's
}

// run keeps what discovery finds warm until ctx is done.
func (w *warmer) run(ctx context.Context) {
	if len(w.wanted) == 0 {
		return
	}
	wait.UntilWithContext(ctx, w.sync, discoveryPeriod)
}

// sync starts the informers of new resources and stops those of resources that are gone.
func (w *warmer) sync(ctx context.Context) {
	lists, err := w.discovery.ServerPreferredResources()
	if err != nil {
		// What does not answer is not gone: it is kept.
		klog.FromContext(ctx).Info("Not all resources could be discovered, the standby keeps the caches that it has", "err", err)
	}
	found := sets.New[schema.GroupVersionResource]()
	for _, wanted := range w.wanted {
		found.Insert(wanted(lists)...)
	}
	for gvr := range found.Difference(w.warmed) {
		if _, e := w.informers.ForResource(gvr); e != nil {
			klog.FromContext(ctx).Error(e, "Warming the informer of a discovered resource", "resource", gvr)
			found.Delete(gvr)
		}
	}
	w.informers.Start(nil)
	if err != nil {
		found = found.Union(w.warmed)
	}
	for gvr := range w.warmed.Difference(found) {
		release(w.informers, gvr)
	}
	w.warmed = found
}

// releaseAfter stops, once the time is over, the informers that no controller has taken over: their
// resources went between the last discovery of the standby and the first of the leader.
func (w *warmer) releaseAfter(ctx context.Context, after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	for gvr := range w.warmed {
		release(w.informers, gvr)
	}
}
