// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apiserverhealthz "k8s.io/apiserver/pkg/server/healthz"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
	genericapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/healthz"
)

// defaultAPIServerTimeout is how long a new leader waits for a healthy API server.
const defaultAPIServerTimeout = 10 * time.Second

// manager is one run of the controller manager. Create it with newManager, run it once.
type manager struct {
	config *config.CompletedConfig
	// descriptors are the controllers that the configuration selects.
	descriptors []*ControllerDescriptor
	watchDog    *leaderelection.HealthzAdaptor // nil without leader election
	health      *healthz.MutableHealthzHandler
	ready       readiness
	registry    controllerRegistry
	informers   informerView
	wg          sync.WaitGroup
	// takeOver ends the standby, once: the caches are filled or being filled when it returns.
	takeOver func() error
	// apiServerTimeout is how long a new leader waits for a healthy API server.
	apiServerTimeout time.Duration
}

func newManager(ctx context.Context, c *config.CompletedConfig) *manager {
	gates := c.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	m := &manager{
		config:           c,
		apiServerTimeout: defaultAPIServerTimeout,
		descriptors:      selectControllers(klog.FromContext(ctx), NewControllerDescriptors(), &c.ComponentConfig, gates),
	}
	var checks []apiserverhealthz.HealthChecker
	if m.elects() {
		m.watchDog = leaderelection.NewLeaderHealthzAdaptor(leaderElectionGrace)
		checks = append(checks, m.watchDog)
	}
	checks = append(checks, apiserverhealthz.NamedCheck("informer-watches", m.informers.check))
	m.health = healthz.NewMutableHealthzHandler(checks...)
	return m
}

func (m *manager) elects() bool {
	return ptr.Deref(m.config.ComponentConfig.Generic.LeaderElection.LeaderElect, false)
}

// run runs the manager until ctx is done or it has failed; Run says more.
func (m *manager) run(ctx context.Context) error {
	// The configuration's recorder is for whoever embeds the manager. Its broadcaster drops what it
	// holds at the end, so the manager's own events, which are about its end, go another way.
	broadcaster := m.config.EventBroadcaster
	broadcaster.StartStructuredLogging(0)
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: m.config.Client.CoreV1().Events("")})
	defer broadcaster.Shutdown()

	events := controller.NewEventPipeline(ctx, m.config.Client, managerName)
	var err error
	events.RunAround(ctx, func(ctx context.Context) { err = m.serveAndLead(ctx, events.Recorder()) })
	return err
}

// serveAndLead serves, and runs the controllers while this process leads.
func (m *manager) serveAndLead(ctx context.Context, recorder resourcelock.EventRecorder) error {
	// The servers and the informers run until the controllers have stopped, which is after ctx is done.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer m.wg.Wait()
	defer stop()
	if err := m.serve(background); err != nil {
		return err
	}

	main, err := m.newTenure(background, m.config.ComponentConfig.Generic.LeaderElection.ResourceName)
	if err != nil {
		return err
	}
	cc, err := CreateControllerContext(m.config, main.clients.root, main.clients.controllers)
	if err != nil {
		return err
	}
	m.informers.show(cc.typedFactory, cc.metadataFactory)
	collectInformers().add(&m.informers, cc.managerName())
	defer collectInformers().remove(&m.informers)
	defer cc.release()
	defer stop()
	if m.takeOver, err = m.standBy(background, cc); err != nil {
		return err
	}
	m.wg.Go(func() { cc.resetRESTMapper(background) })
	informersStarted := sync.OnceFunc(func() { close(cc.InformersStarted) })

	main.run = func(ctx context.Context) error {
		return m.runControllers(ctx, background, cc, m.descriptors, informersStarted)
	}
	if !m.elects() {
		m.ready.leaderSeen()
		main.fence.OpenForever()
		defer main.fence.Close()
		return main.run(ctx)
	}
	return m.lead(ctx, background, cc, main, recorder, informersStarted)
}

// serve starts the servers.
func (m *manager) serve(ctx context.Context) error {
	alive := []apiserverhealthz.HealthChecker{apiserverhealthz.PingHealthz, apiserverhealthz.LogHealthz}
	if m.watchDog != nil {
		alive = append(alive, m.watchDog)
	}
	ready := append(slices.Clone(alive),
		apiserverhealthz.NamedCheck("leader-known", m.ready.checkLeader),
		apiserverhealthz.NamedCheck("informer-caches", m.ready.checkCaches),
		apiserverhealthz.NamedCheck("controllers", m.ready.checkControllers))
	handler, err := newBaseHandler(m.config, pages{
		health: newHealthPages(m.health, alive, ready,
			apiserverhealthz.NamedCheck("resource-watches", m.informers.checkAll)),
		registry:  &m.registry,
		informers: &m.informers,
	})
	if err != nil {
		return err
	}
	return serve(ctx, &m.wg, m.config, handler)
}

// runControllers builds the controllers and runs them until ctx is done. The informers run until
// background is done.
func (m *manager) runControllers(ctx, background context.Context, cc ControllerContext, descriptors []*ControllerDescriptor, started func()) error {
	built := m.ready.build()
	defer built()
	if err := m.takeOver(); err != nil {
		return err
	}
	if err := genericapp.WaitForAPIServer(ctx, m.config.Client, m.apiServerTimeout); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("failed to wait for apiserver being healthy: %w", err)
	}
	cc.ObjectOrMetadataInformerFactory = &startUntil{cc.ObjectOrMetadataInformerFactory, background.Done()}
	controllers, err := buildControllers(ctx, cc, descriptors)
	if err != nil {
		return err
	}
	checks := make([]apiserverhealthz.HealthChecker, 0, len(controllers))
	for _, s := range controllers {
		checks = append(checks, apiserverhealthz.NamedCheck(s.name, s.check))
	}
	m.health.AddHealthChecker(checks...)
	m.registry.add(controllers...)
	cc.startInformers(background)
	built()
	started()
	return startControllers(ctx, controllers, m.config.ComponentConfig.Generic.ControllerStartInterval.Duration, m.config.ControllerShutdownTimeout)
}
