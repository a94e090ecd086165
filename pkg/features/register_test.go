// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

//go:embed testdata/gates.tsv
var upstreamGates string

func newGate(t *testing.T) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	if err := registerIn(gate); err != nil {
		t.Fatal(err)
	}
	return gate
}

// rows reads the recording: the releases of its columns, and the lines by gate.
func rows(t *testing.T) (releases []string, gates map[string][]string) {
	t.Helper()
	gates = map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(upstreamGates), "\n") {
		fields := strings.Split(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case fields[0] == "gate":
			releases = fields[1 : len(fields)-1]
		default:
			gates[fields[0]] = fields[1:]
		}
	}
	if len(releases) != 4 || len(gates) < 250 {
		t.Fatalf("recording has %d releases and %d gates", len(releases), len(gates))
	}
	return releases, gates
}

func TestGatesAreUpstreamsAtEveryEmulatedVersion(t *testing.T) {
	releases, gates := rows(t)
	for column, emulated := range releases {
		gate := newGate(t)
		if err := gate.SetEmulationVersion(version.MustParse(emulated)); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, spec := range gate.GetAll() {
			if spec.Version.GreaterThan(version.MustParse(emulated)) {
				continue
			}
			stage := string(spec.PreRelease)
			if stage == "" {
				stage = "GA"
			}
			state := "off"
			if gate.Enabled(name) {
				state = "on"
			}
			got[string(name)] = stage + ":" + state
		}
		for name, fields := range gates {
			want := fields[column]
			if got[name] == "" {
				got[name] = "-"
			}
			if got[name] != want {
				t.Errorf("emulating %s: %s is %s, upstream's is %s", emulated, name, got[name], want)
			}
			delete(got, name)
		}
		for name := range got {
			if _, own := ownGates()[featuregate.Feature(name)]; own && got[name] == "ALPHA:off" {
				continue
			}
			t.Errorf("emulating %s: upstream does not know %s", emulated, name)
		}
	}
}

func TestLockedGatesRefuseTheOtherValue(t *testing.T) {
	_, gates := rows(t)
	fresh := newGate(t)
	for name, fields := range gates {
		gate := fresh.DeepCopy()
		on := strings.HasSuffix(fields[len(fields)-2], ":on")
		err := gate.Set(fmt.Sprintf("%s=%v", name, !on))
		refused := err != nil && strings.Contains(err.Error(), "feature is locked")
		if locked := fields[len(fields)-1] == "yes"; locked != refused {
			t.Errorf("setting %s to %v: locked upstream: %v, error here: %v", name, !on, locked, err)
		}
		if err := fresh.DeepCopy().Set(fmt.Sprintf("%s=%v", name, on)); err != nil {
			t.Errorf("setting %s to its default: %v", name, err)
		}
	}
}

func TestMinCompatibilityVersionTurnsOnWhatNeedsAllComponents(t *testing.T) {
	gate := newGate(t)
	if gate.Enabled("DRAFractionalCapacityRange") {
		t.Error("on while an older component may be there")
	}
	v := version.MustParse(release)
	if err := gate.SetEmulationVersionAndMinCompatibilityVersion(v, v); err != nil {
		t.Fatal(err)
	}
	if !gate.Enabled("DRAFractionalCapacityRange") {
		t.Error("off though all components are of " + release)
	}
}

// The messages are upstream's, recorded by setting each gate.
func TestDependenciesAreRefused(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"AtomicFIFO=false", "StaleControllerConsistencyReplicaSet is enabled, but depends on features that are disabled: [AtomicFIFO]"},
		{"WorkloadWithJob=true", "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"WorkloadWithJob=true,GenericWorkload=true", ""},
		{"APIServerIdentity=false", "UnknownVersionInteroperabilityProxy is enabled, but depends on features that are disabled: [APIServerIdentity]"},
		{"DRADeviceTaints=false", "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]"},
	} {
		err := newGate(t).Set(test.set)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.set, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.set, err, test.want)
		}
	}
}

// The API server library registers some gates itself, without what they need.
func TestDependenciesOfTheProcessGate(t *testing.T) {
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := gate.Set("APIServerIdentity=false"); err == nil {
		t.Error("UnknownVersionInteroperabilityProxy needs APIServerIdentity, and yet no error")
	}
}

func TestRegisterLeavesAloneWhatIsKnown(t *testing.T) {
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	other := featuregate.VersionedSpecs{{Version: version.MustParse("1.30"), Default: true, PreRelease: featuregate.GA}}
	if err := gate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{WorkloadWithJob: other}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := registerIn(gate); err != nil {
			t.Fatal(err)
		}
	}
	if !gate.Enabled(WorkloadWithJob) {
		t.Error("the gate that was there first was changed")
	}
	// Nothing is missing any more, so a closed gate is no obstacle.
	gate.AddFlag(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := registerIn(gate); err != nil {
		t.Errorf("registering all that is known in a closed gate: %v", err)
	}
}

func TestRegisterTooLateIsAnError(t *testing.T) {
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	gate.AddFlag(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := registerIn(gate); err == nil {
		t.Error("no error, yet the gate takes nothing any more")
	}
}

func TestRegisterHandsClientGatesToTheProcessGate(t *testing.T) {
	for range 2 {
		if err := Register(); err != nil {
			t.Fatal(err)
		}
	}
	for _, value := range []bool{false, true} {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, "WatchListClient", value)
		if got := clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient); got != value {
			t.Errorf("--feature-gates=WatchListClient=%v: client-go sees %v", value, got)
		}
	}
}

func TestEnabled(t *testing.T) {
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	if !Enabled(StaleControllerConsistencyReplicaSet) || Enabled(WorkloadWithJob) {
		t.Error("not the defaults")
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, StaleControllerConsistencyReplicaSet, false)
	if Enabled(StaleControllerConsistencyReplicaSet) {
		t.Error("does not follow the process-wide gate")
	}
}

func TestEnabledInFallsBackToTheDefaultOfTheRelease(t *testing.T) {
	empty := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	for feature, want := range map[featuregate.Feature]bool{
		PodDeletionCost: true, StorageVersionAPI: false, APIServerIdentity: true, "NoSuchGate": false,
	} {
		if got := EnabledIn(empty, feature); got != want {
			t.Errorf("%s: got %v, want %v", feature, got, want)
		}
	}
	gate := newGate(t)
	if err := gate.Set("PodDeletionCost=false"); err != nil {
		t.Fatal(err)
	}
	if EnabledIn(gate, PodDeletionCost) {
		t.Error("does not follow the gate that knows the feature")
	}
}

// The constants are what controllers compile against: a name with a slip would
// be a gate that is always off.
func TestEveryConstantIsAGate(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "features.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	gate, seen := newGate(t), 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if name != spec.Names[0].Name || !Knows(gate, featuregate.Feature(name)) {
			t.Errorf("constant %s = %q is not the gate of that name", spec.Names[0].Name, name)
		}
		seen++
		return true
	})
	if seen < 30 {
		t.Errorf("only %d constants seen", seen)
	}
}
