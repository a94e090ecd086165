// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection"
	leadermetrics "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/metrics"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/leadermigration"
)

// leaderElectionGrace is how long beyond its duration a lease may be expired, while this process
// believes to hold it, before the health check fails.
const leaderElectionGrace = 20 * time.Second

// errLeaseLost ends the manager: another may lead now.
var errLeaseLost = errors.New("leaderelection lost")

// tenure is what one lease entitles to: the controllers that run while it is held.
type tenure struct {
	// lockName is the Lease's name.
	lockName string
	// fence lets the clients write while the lease is held.
	fence   *gate.Fence
	clients clientBuilders
	lock    resourcelock.Interface         // nil without leader election
	watch   *leaderelection.HealthzAdaptor // the health check of the election; nil: none
	// leaderSeen is called when a leader was seen; nil: nobody asks.
	leaderSeen func()
	// run builds and runs the controllers until its context is done.
	run func(context.Context) error
}

// newTenure returns a tenure without controllers yet, whose clients may not write yet.
func (m *manager) newTenure(ctx context.Context, lockName string) (*tenure, error) {
	t := &tenure{lockName: lockName, fence: gate.NewFence(clock.RealClock{})}
	var err error
	if t.clients, err = createClients(ctx, m.config, t.fence); err != nil {
		return nil, err
	}
	m.registry.addGate(t.clients.gate)
	return t, nil
}

// lead stands for election, for the main lease and, with leader migration, for the second one too.
// Both end when one of them does.
func (m *manager) lead(ctx, background context.Context, cc ControllerContext, main *tenure, recorder resourcelock.EventRecorder, started func()) error {
	generic := m.config.ComponentConfig.Generic
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	main.watch, main.leaderSeen = m.watchDog, m.ready.leaderSeen
	if main.lock, err = newLock(m.config, generic.LeaderElection.ResourceLock, main.lockName, identity, recorder); err != nil {
		return err
	}
	if !generic.LeaderMigrationEnabled {
		return main.elect(ctx, generic.LeaderElection)
	}

	kept, migrated := m.splitForMigration()
	second, err := m.newTenure(background, generic.LeaderMigration.LeaderName)
	if err != nil {
		return err
	}
	if second.lock, err = newLock(m.config, generic.LeaderMigration.ResourceLock, second.lockName, identity, recorder); err != nil {
		return err
	}
	// The second lease is not stood for before the service account tokens that its controllers may
	// need are being made.
	ready := make(chan struct{})
	announce := sync.OnceFunc(func() { close(ready) })
	main.run = func(ctx context.Context) error {
		return m.runControllers(ctx, background, cc, kept, func() { started(); announce() })
	}
	second.run = func(ctx context.Context) error {
		cc.RootClientBuilder, cc.ClientBuilder = second.clients.root, second.clients.controllers
		return m.runControllers(ctx, background, cc, migrated, started)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return main.elect(ctx, generic.LeaderElection) })
	group.Go(func() error {
		select {
		case <-ready:
			return second.elect(ctx, generic.LeaderElection)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// splitForMigration returns the controllers that stay under the main lease and those that the
// configuration moves to the second one. Controllers that another component owns are in neither.
func (m *manager) splitForMigration() (kept, migrated []*ControllerDescriptor) {
	migrator := leadermigration.NewLeaderMigrator(&m.config.ComponentConfig.Generic.LeaderMigration, managerName)
	for _, d := range m.descriptors {
		switch migrator.FilterFunc(d.Name) {
		case leadermigration.ControllerNonMigrated:
			kept = append(kept, d)
		case leadermigration.ControllerMigrated:
			migrated = append(migrated, d)
		}
	}
	return kept, migrated
}

// newIdentity returns what this process calls itself in its leases.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("getting the host name for the identity in leader election: %w", err)
	}
	return host + "_" + uuid.NewString(), nil
}

// newLock returns the lock on a Lease of the given name in the namespace of
// --leader-elect-resource-namespace.
func newLock(c *config.CompletedConfig, lockType, name, identity string, recorder resourcelock.EventRecorder) (resourcelock.Interface, error) {
	election := c.ComponentConfig.Generic.LeaderElection
	lock, err := resourcelock.NewFromKubeconfig(lockType, election.ResourceNamespace, name,
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: recorder}, c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("creating the lock for leader election: %w", err)
	}
	return lock, nil
}

// elect stands for election until ctx is done or the lease, once held, is lost, and runs the
// tenure's controllers while it is held. When ctx is done, or run returns, the controllers stop
// first and then the lease is given back, so that a standby takes over at once. A lost lease
// closes the fence at that instant, and is an error.
func (t *tenure) elect(ctx context.Context, election componentbaseconfig.LeaderElectionConfiguration) error {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lock", t.lock.Describe())
	candidacy, withdraw := context.WithCancel(ctx)
	defer withdraw()
	defer t.fence.Close()

	// The elector's Run returns after OnStartedLeading has, so these need no lock.
	var runErr error
	lost := false
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            t.lock,
		LeaseDuration:   election.LeaseDuration.Duration,
		RenewDeadline:   election.RenewDeadline.Duration,
		RetryPeriod:     election.RetryPeriod.Duration,
		WatchDog:        t.watch,
		ReleaseOnCancel: true,
		Name:            t.lockName,
		Metrics:         leadermetrics.Legacy(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				working, stop := context.WithCancel(context.WithoutCancel(leading))
				defer stop()
				// Whoever sees that the lease is lost must find the fence closed.
				unhook := context.AfterFunc(leading, func() {
					if ctx.Err() == nil {
						t.fence.Close()
					}
					stop()
				})
				runErr = t.run(working)
				unhook()
				lost = leading.Err() != nil && ctx.Err() == nil
				// What still runs after the shutdown time-out must not write once the lease is free.
				t.fence.Close()
				withdraw()
			},
			OnStoppedLeading: t.fence.Close,
			OnNewLeader: func(identity string) {
				if t.leaderSeen != nil {
					t.leaderSeen()
				}
				logger.Info("Leader elected", "leader", identity, "self", identity == t.lock.Identity())
			},
			OnRenewed: t.fence.OpenUntil,
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	elector.Run(candidacy)

	if lost {
		logger.Error(errLeaseLost, "Another process may lead now: stopping")
		return errors.Join(fmt.Errorf("%w: lease %s", errLeaseLost, t.lock.Describe()), runErr)
	}
	return runErr
}
