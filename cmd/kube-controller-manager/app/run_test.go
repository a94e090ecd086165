// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2/ktesting"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"
)

func constructs(build func() (Controller, error)) ControllerConstructor {
	return func(context.Context, ControllerContext, string) (Controller, error) { return build() }
}

func TestJudge(t *testing.T) {
	built := constructs(func() (Controller, error) { return nil, nil })
	tests := []struct {
		name        string
		descriptor  ControllerDescriptor
		controllers string
		gatesOff    []featuregate.Feature
		want        verdict
	}{
		{name: "star", descriptor: ControllerDescriptor{Constructor: built}, controllers: "*", want: verdictBuild},
		{name: "named", descriptor: ControllerDescriptor{Constructor: built}, controllers: "foo", want: verdictBuild},
		{name: "another is named", descriptor: ControllerDescriptor{Constructor: built}, controllers: "bar", want: verdictDisabled},
		{name: "switched off", descriptor: ControllerDescriptor{Constructor: built}, controllers: "*,-foo", want: verdictDisabled},
		{name: "switched off first", descriptor: ControllerDescriptor{Constructor: built}, controllers: "-foo,*", want: verdictDisabled},
		{name: "first mention wins: on", descriptor: ControllerDescriptor{Constructor: built}, controllers: "foo,-foo", want: verdictBuild},
		{name: "first mention wins: off", descriptor: ControllerDescriptor{Constructor: built}, controllers: "-foo,foo", want: verdictDisabled},
		{name: "off by default", descriptor: ControllerDescriptor{Constructor: built, DisabledByDefault: true}, controllers: "*", want: verdictDisabled},
		{name: "off by default, named", descriptor: ControllerDescriptor{Constructor: built, DisabledByDefault: true}, controllers: "*,foo", want: verdictBuild},
		{name: "special handling ignores --controllers", descriptor: ControllerDescriptor{Constructor: built, SpecialHandling: true}, controllers: "-foo", want: verdictBuild},
		{name: "gate on", descriptor: ControllerDescriptor{Constructor: built, FeatureGates: []featuregate.Feature{"A"}}, controllers: "*", want: verdictBuild},
		{name: "one of two gates off", descriptor: ControllerDescriptor{Constructor: built, FeatureGates: []featuregate.Feature{"A", "B"}}, controllers: "*", gatesOff: []featuregate.Feature{"B"}, want: verdictGateOff},
		{name: "not in this release", controllers: "*", want: verdictNotAvailable},
		{name: "not in this release, gate off", descriptor: ControllerDescriptor{FeatureGates: []featuregate.Feature{"A"}}, controllers: "*", gatesOff: []featuregate.Feature{"A"}, want: verdictGateOff},
		{name: "not configured", descriptor: ControllerDescriptor{Constructor: built, Configured: func(*kubectrlmgrconfig.KubeControllerManagerConfiguration) bool { return false }}, controllers: "*", want: verdictNotConfigured},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			gates := featuregate.NewFeatureGate()
			for _, gate := range []featuregate.Feature{"A", "B"} {
				if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{gate: {Default: !slices.Contains(test.gatesOff, gate), PreRelease: featuregate.Beta}}); err != nil {
					t.Fatal(err)
				}
			}
			var config kubectrlmgrconfig.KubeControllerManagerConfiguration
			config.Generic.Controllers = strings.Split(test.controllers, ",")
			test.descriptor.Name = "foo"
			if got := judge(&test.descriptor, &config, gates); got != test.want {
				t.Errorf("judge() = %d, want %d", got, test.want)
			}
		})
	}
}

func TestSelectControllersBuildsTokensFirstAndNamesTheMissingOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	var config kubectrlmgrconfig.KubeControllerManagerConfiguration
	config.Generic.Controllers = []string{"*", "-off"}
	built := constructs(func() (Controller, error) { return nil, nil })
	selected := selectControllers(logger, []*ControllerDescriptor{
		{Name: "a", Constructor: built},
		{Name: "missing-1"},
		{Name: "off", Constructor: built},
		{Name: "tokens", Constructor: built, SpecialHandling: true},
		{Name: "missing-2"},
		{Name: "b", Constructor: built},
	}, &config, featuregate.NewFeatureGate())

	var order []string
	for _, d := range selected {
		order = append(order, d.Name)
	}
	if diff := cmp.Diff([]string{"tokens", "a", "b"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if got := strings.Count(logged, "not available in this release"); got != 1 {
		t.Errorf("%d lines about missing controllers, want 1:\n%s", got, logged)
	}
	if !strings.Contains(logged, `["missing-1","missing-2"]`) || !strings.Contains(logged, `Warning: controller is disabled controller="off"`) {
		t.Errorf("log does not say what is missing and what is off:\n%s", logged)
	}
}

func testContext() ControllerContext {
	return ControllerContext{InformerFactory: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
}

func TestBuildControllers(t *testing.T) {
	var order []string
	ctor := func(name string, c Controller, err error) *ControllerDescriptor {
		return &ControllerDescriptor{Name: name, Constructor: constructs(func() (Controller, error) {
			order = append(order, name)
			return c, err
		})}
	}
	built, err := buildControllers(t.Context(), testContext(), []*ControllerDescriptor{
		ctor("a", &scripted{name: "a", run: untilDone}, nil),
		ctor("idle", nil, nil),
		ctor("b", &scripted{name: "b", run: untilDone}, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "idle", "b"}, order); diff != "" {
		t.Errorf("order of building (-want +got):\n%s", diff)
	}
	if len(built) != 2 || built[0].name != "a" || built[1].name != "b" {
		t.Errorf("built %v, want a and b without the one that has nothing to do", built)
	}
}

func TestBuildControllersReleasesWhatItBuiltWhenOneFails(t *testing.T) {
	released := false
	_, err := buildControllers(t.Context(), testContext(), []*ControllerDescriptor{
		{Name: "first", Constructor: constructs(func() (Controller, error) {
			return &scripted{name: "first", run: func(ctx context.Context) { released = ctx.Err() != nil }}, nil
		})},
		{Name: "second", Constructor: constructs(func() (Controller, error) { return nil, errors.New("no key file") })},
		{Name: "third", Constructor: constructs(func() (Controller, error) {
			t.Error("the third was built although the second failed")
			return nil, nil
		})},
	})
	if err == nil || err.Error() != "building second: no key file" {
		t.Errorf("error = %v, want it to name the controller and the reason", err)
	}
	if !released {
		t.Error("the first controller was not run with a context that is done")
	}
}

func supervisedScripts(t *testing.T, scripts map[string]func(context.Context)) []*supervised {
	t.Helper()
	var all []*supervised
	for name, script := range scripts {
		g := &generations{scripts: []func(context.Context){script}}
		first, err := g.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newSupervised(name, first, g.build, registerMetrics()))
	}
	return all
}

func TestStartControllersWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		err := startControllers(ctx, supervisedScripts(t, map[string]func(context.Context){
			"quick": untilDone,
			"slow":  func(ctx context.Context) { <-ctx.Done(); time.Sleep(3 * time.Second) },
		}), 0, 10*time.Second)
		if err != nil {
			t.Errorf("error = %v", err)
		}
		if got := time.Since(start); got != time.Minute+3*time.Second {
			t.Errorf("returned after %s, want when the slow one has stopped", got)
		}
	})
}

func TestStartControllersGivesUpAfterTheShutdownTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		hang := make(chan struct{})
		defer close(hang)
		ctx, cancel := context.WithCancel(klogContext(t, logger))
		cancel()
		start := time.Now()
		err := startControllers(ctx, supervisedScripts(t, map[string]func(context.Context){
			"quick":   untilDone,
			"hanging": func(context.Context) { <-hang },
		}), 0, 9*time.Second)
		if !errors.Is(err, errShutdownTimeout) || !strings.Contains(err.Error(), "[hanging]") {
			t.Errorf("error = %v, want the time-out, naming the one that hangs", err)
		}
		if got := time.Since(start); got != 9*time.Second {
			t.Errorf("returned after %s, want 9s", got)
		}
		logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		if got := strings.Count(logged, "Still waiting for some controllers to terminate..."); got < 2 || got > 3 {
			t.Errorf("%d reminders, want one each 3s:\n%s", got, logged)
		}
	})
}

func TestStartControllersWithoutTimeoutWaitsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := startControllers(ctx, supervisedScripts(t, map[string]func(context.Context){
			"slow": func(context.Context) { time.Sleep(time.Minute) },
		}), 0, 0)
		if err != nil || time.Since(start) != time.Minute {
			t.Errorf("returned %v after %s, want nil after 1m", err, time.Since(start))
		}
	})
}

func TestStartControllersSpreadsStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 10 * time.Second
		start := time.Now()
		starts := make(chan time.Duration, 3)
		script := func(ctx context.Context) { starts <- time.Since(start); <-ctx.Done() }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := startControllers(ctx, supervisedScripts(t, map[string]func(context.Context){"a": script, "b": script, "c": script}), interval, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := <-starts; got < interval || got >= 2*interval {
				t.Errorf("a controller started after %s, want within [10s, 20s)", got)
			}
		}
	})
}

func TestStartControllersKeepsTheOthersRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runs := 0
		all := supervisedScripts(t, map[string]func(context.Context){
			"bad":  func(context.Context) { panic("again") },
			"good": func(ctx context.Context) { runs++; <-ctx.Done() },
		})
		if err := startControllers(ctx, all, 0, time.Second); err != nil {
			t.Fatal(err)
		}
		if runs != 1 {
			t.Errorf("the good controller was run %d times, want once", runs)
		}
	})
}
