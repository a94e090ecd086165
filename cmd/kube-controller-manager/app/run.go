// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	genericapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
)

// errShutdownTimeout is returned when controllers are still running --controller-shutdown-timeout
// after they were told to stop.
var errShutdownTimeout = errors.New("controller shutdown timeout reached")

// verdict says whether a controller is built, and if not, why.
type verdict int

const (
	verdictBuild verdict = iota
	verdictDisabled
	verdictGateOff
	verdictNotAvailable
	verdictNotConfigured
)

// judge decides about one controller. The service account token controller is not subject to
// --controllers: upstream runs it whenever it has a key.
func judge(d *ControllerDescriptor, config *kubectrlmgrconfig.KubeControllerManagerConfiguration, gates featuregate.FeatureGate) verdict {
	byDefault := sets.New[string]()
	if d.DisabledByDefault {
		byDefault.Insert(d.Name)
	}
	switch {
	case !d.SpecialHandling && !genericapp.IsControllerEnabled(d.Name, byDefault, config.Generic.Controllers):
		return verdictDisabled
	case d.blockedBy(gates) != "":
		return verdictGateOff
	case !d.Available():
		return verdictNotAvailable
	case d.Configured != nil && !d.Configured(config):
		return verdictNotConfigured
	default:
		return verdictBuild
	}
}

// selectControllers returns the descriptors whose controllers are to be built, in the order in
// which they are built, and logs why others are not.
func selectControllers(logger klog.Logger, descriptors []*ControllerDescriptor, config *kubectrlmgrconfig.KubeControllerManagerConfiguration, gates featuregate.FeatureGate) []*ControllerDescriptor {
	var first, others []*ControllerDescriptor
	var missing []string
	for _, d := range descriptors {
		switch judge(d, config, gates) {
		case verdictDisabled:
			logger.Info("Warning: controller is disabled", "controller", d.Name)
		case verdictGateOff:
			logger.Info("Controller is disabled by a feature gate", "controller", d.Name, "gate", d.blockedBy(gates))
		case verdictNotAvailable:
			missing = append(missing, d.Name)
		case verdictNotConfigured:
			logger.Info("Warning: skipping controller: it is not configured", "controller", d.Name)
		case verdictBuild:
			if d.SpecialHandling {
				first = append(first, d)
			} else {
				others = append(others, d)
			}
		}
	}
	if len(missing) > 0 {
		logger.Info("Warning: controllers are enabled that are not available in this release", "controllers", missing)
	}
	return append(first, others...)
}

// buildControllers builds the controllers that descriptors describe, one after the other. The
// first constructor that fails ends it: what was built by then is released, and the error
// returned. Controllers that have nothing to do are left out. Nothing runs yet.
func buildControllers(ctx context.Context, cc ControllerContext, descriptors []*ControllerDescriptor) ([]*supervised, error) {
	logger := klog.FromContext(ctx)
	metrics := registerMetrics()
	var built []*supervised
	for _, d := range descriptors {
		build := func(ctx context.Context) (*instance, error) { return buildInstance(ctx, cc, d) }
		first, err := build(klog.NewContext(ctx, klog.LoggerWithName(logger, d.Name)))
		if err != nil {
			err = fmt.Errorf("building %s: %w", d.Name, err)
			for _, s := range built {
				err = errors.Join(err, s.instance().discard(ctx))
			}
			return nil, err
		}
		if first == nil {
			logger.Info("Warning: skipping controller", "controller", d.Name)
			continue
		}
		built = append(built, newSupervised(d.Name, first, build, metrics))
	}
	return built, nil
}

// buildInstance calls a constructor. The instance is nil when there is nothing to do.
func buildInstance(ctx context.Context, cc ControllerContext, d *ControllerDescriptor) (*instance, error) {
	failures := make(chan error, 1)
	scope := &informerScope{controller: d.Name, failed: func(err error) {
		select {
		case failures <- err:
		default: // One failure is enough to have the controller rebuilt.
		}
	}}
	c, err := d.Constructor(ctx, cc.inScope(scope), d.Name)
	if err != nil || c == nil {
		return nil, errors.Join(err, scope.close())
	}
	return &instance{controller: c, scope: scope, failures: failures}, nil
}

// startControllers runs the controllers until ctx is done and all have returned. Each starts after
// its own jittered share of interval. timeout bounds how long it waits for them once ctx is done;
// zero waits without end. It returns errShutdownTimeout when the time is over.
func startControllers(ctx context.Context, controllers []*supervised, interval, timeout time.Duration) error {
	logger := klog.FromContext(ctx)
	var wg sync.WaitGroup
	for _, s := range controllers {
		wg.Go(func() { s.run(ctx, startDelay(interval)) })
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		wg.Wait()
	}()

	<-ctx.Done()
	if !awaitControllers(logger, controllers, returned, timeout) {
		return fmt.Errorf("%w: still running: %v", errShutdownTimeout, running(controllers))
	}
	logger.Info("All controllers terminated")
	return nil
}

// awaitControllers waits for returned, and says meanwhile who is waited for.
func awaitControllers(logger klog.Logger, controllers []*supervised, returned <-chan struct{}, timeout time.Duration) bool {
	remind := 5 * time.Second
	var expired <-chan time.Time
	if timeout > 0 {
		remind = timeout / 3
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	reminder := time.NewTicker(remind)
	defer reminder.Stop()
	for {
		select {
		case <-returned:
			return true
		case <-expired:
			return false
		case <-reminder.C:
			logger.Info("Still waiting for some controllers to terminate...", "controllers", running(controllers))
		}
	}
}

func running(controllers []*supervised) []string {
	var names []string
	for _, s := range controllers {
		if s.status().Phase != phaseStopped {
			names = append(names, s.name)
		}
	}
	return names
}
