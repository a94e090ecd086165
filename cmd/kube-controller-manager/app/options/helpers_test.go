// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	_ "k8s.io/component-base/logs/json/register" // as main does: adds flags to section logs

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
)

func TestMain(m *testing.M) {
	// The API server library's certificate providers start their queues when
	// they are made, and stop them when they have been run: Serve does that.
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
	)
}

// The controllers that the tests' command lines know: enough for each kind of
// entry in --controllers.
var (
	testControllers = []string{
		names.BootstrapSignerController, names.DeploymentController, names.JobController,
		names.NodeIpamController, names.TokenCleanerController,
	}
	testDisabled = []string{names.BootstrapSignerController, names.TokenCleanerController}
	testAliases  = map[string]string{
		"bootstrapsigner": names.BootstrapSignerController,
		"deployment":      names.DeploymentController,
		"nodeipam":        names.NodeIpamController,
		"tokencleaner":    names.TokenCleanerController,
	}
)

// newTestOptions returns options whose gates and versions are the test's own.
func newTestOptions(t *testing.T) *KubeControllerManagerOptions {
	t.Helper()
	s, err := NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	registry := basecompatibility.NewComponentGlobalsRegistry()
	err = registry.Register(basecompatibility.DefaultKubeComponent,
		compatibility.DefaultBuildEffectiveVersion(), utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset())
	if err != nil {
		t.Fatal(err)
	}
	s.ComponentGlobalsRegistry = registry
	return s
}

// commandLine joins the sections as the command does.
func commandLine(s *KubeControllerManagerOptions) *pflag.FlagSet {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, section := range s.Flags(testControllers, testDisabled, testAliases).FlagSets {
		fs.AddFlagSet(section)
	}
	return fs
}

// parse returns options that were given a command line.
func parse(t *testing.T, args ...string) *KubeControllerManagerOptions {
	t.Helper()
	s := newTestOptions(t)
	if err := commandLine(s).Parse(args); err != nil {
		t.Fatalf("parsing %q: %v", args, err)
	}
	return s
}

// lines returns the problems of an Aggregate as the command prints them.
func lines(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	aggregate, ok := err.(utilerrors.Aggregate)
	if !ok {
		t.Fatalf("not an Aggregate but %T: %v", err, err)
	}
	var all []string
	for _, e := range aggregate.Errors() {
		if strings.Contains(e.Error(), "\n") {
			t.Errorf("more than one line: %q", e)
		}
		all = append(all, e.Error())
	}
	return all
}
