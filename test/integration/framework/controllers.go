// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clientmetadatainformer "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/metadata/metadatainformer"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/wire"
	"github.com/kcm-dev/kcm/test/controlplane"
)

// stopTimeout is how long Run functions have to return once their context is done.
const stopTimeout = 30 * time.Second

// Controllers runs controllers in the test's process, as the manager would:
// informers of user system:kube-controller-manager, a service account's client
// for each controller.
type Controllers struct {
	// Ctx is done when the controllers are to stop; constructors get it.
	Ctx context.Context
	// Informers and Metadata are the shared factories. Start starts them.
	Informers clientinformers.SharedInformerFactory
	Metadata  clientmetadatainformer.SharedInformerFactory

	env    *Env
	t      testing.TB
	owned  goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup
	via    func(*rest.Config) *rest.Config
	guard  func(http.RoundTripper) http.RoundTripper

	mu sync.Mutex
	// mu guards the following fields.
	running map[string]int
	stopped bool
}

// ControllersOptions change how controllers reach the API server.
type ControllersOptions struct {
	// Via turns a config into one that goes another way, such as a fault
	// proxy's Config. Nil: straight to the API server.
	Via func(*rest.Config) *rest.Config
	// Resync of the informers. 0: none.
	Resync time.Duration
}

// Controllers prepares to run controllers. They are stopped at the end of the
// test, which fails unless all Run functions return in time and every
// goroutine that was started by or for them has ended.
//
// Objects from the informers come without what package wire drops, as in the manager, and a controller
// that writes one back without what was dropped fails the test.
// With KUBE_CACHE_MUTATION_DETECTOR=true in the environment, changes of cached
// objects panic.
func (e *Env) Controllers(t testing.TB, opts ControllersOptions) *Controllers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &Controllers{
		Ctx:     ctx,
		env:     e,
		t:       t,
		cancel:  cancel,
		via:     opts.Via,
		running: map[string]int{},
	}
	if c.via == nil {
		c.via = func(cfg *rest.Config) *rest.Config { return cfg }
	}
	cfg := e.ConfigFor(controlplane.ManagerUser)
	cfg.UserAgent = "shared-informers"
	cfg = c.via(cfg)
	client, kinds := newClient(t, cfg), wire.NewKinds()
	c.guard = kinds.Guard(func(err error) { t.Errorf("an object was written as a cache had it: %v", err) })
	sources, err := wire.NewSourcesFor(cfg, kinds, wire.NewTable())
	if err != nil {
		t.Fatalf("making the sources of the informers: %v", err)
	}
	c.Informers = informers.NewSharedInformerFactoryWithOptions(client, opts.Resync, informers.WithTransform(trim), informers.WithSources(sources.Typed))
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatalf("making a metadata client: %v", err)
	}
	c.Metadata = metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, opts.Resync, metadatainformer.WithTransform(trim), metadatainformer.WithSources(sources.Metadata))
	t.Cleanup(c.Stop)
	c.owned = ownGoroutines(t) // last: what constructors start is owned, too
	return c
}

// trim drops what the manager's informers drop, too.
func trim(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// Client returns the client of a controller: that of its service account in
// kube-system, with the rights that RBAC gives it.
func (c *Controllers) Client(serviceAccount string) kubernetes.Interface {
	c.t.Helper()
	return newClient(c.t, c.Config(serviceAccount))
}

// Config returns the config of a controller's service account.
func (c *Controllers) Config(serviceAccount string) *rest.Config {
	cfg := c.via(c.env.ServiceAccountConfig(serviceAccount))
	cfg.Wrap(c.guard)
	return cfg
}

// Run starts a controller: run must return once its context is done. The
// informers that its constructor asked for are started, too.
func (c *Controllers) Run(name string, run func(ctx context.Context)) {
	c.mu.Lock()
	c.running[name]++
	c.mu.Unlock()
	c.StartInformers()
	c.wg.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.running[name]--; c.running[name] == 0 {
				delete(c.running, name)
			}
			if !c.stopped {
				c.t.Errorf("controller %s returned before it was stopped", name)
			}
		}()
		run(c.Ctx)
	})
}

// StartInformers starts the informers that have been asked for so far.
func (c *Controllers) StartInformers() {
	c.Informers.StartWithContext(c.Ctx)
	c.Metadata.Start(c.Ctx.Done())
}

// Stop stops the controllers and the informers, waits for them and fails the
// test if any goroutine is left. It may be called before the end of the test,
// to start others in their place, and more than once.
func (c *Controllers) Stop() {
	c.mu.Lock()
	again := c.stopped
	c.stopped = true
	c.mu.Unlock()
	if again {
		return
	}
	c.owned.disown()
	c.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.wg.Wait()
		c.Informers.Shutdown()
		c.Metadata.Shutdown()
	}()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Errorf("%v after the stop, these controllers run still: %v\n%s", stopTimeout, c.running, labelled(c.owned.label))
		return
	}
	if left := waitForNone(c.owned.label); left != "" {
		c.t.Errorf("goroutines of controllers are left after the stop:\n%s", left)
	}
}
