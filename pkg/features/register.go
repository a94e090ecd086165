// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features knows the feature gates of Kubernetes 1.37 and which of
// them the controllers here ask for.
//
// Register puts every gate that upstream's kube-controller-manager accepts
// into the process-wide gate (k8s.io/apiserver/pkg/util/feature), so that
// --feature-gates means the same as for upstream. A process that links
// upstream's own registration too is fine: what is known already is left alone.
//
// The gates whose names begin with KCM are ours (own.go), and off unless set.
//
// A controller asks Enabled(features.X), which also works in a process that
// registered nothing: it gives the default of release 1.37 then.
package features

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	_ "k8s.io/apiserver/pkg/features" // registers the API server library's gates
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	cmfeatures "k8s.io/controller-manager/pkg/features"
)

// release is the Kubernetes release that the table of gates is of.
const release = "1.37"

// Register adds all gates to the process-wide gate, except those that are
// there already, and lets client-go take its gates from there. It may be
// called more than once. Call it before --feature-gates is added to a flag
// set: from then on the gate takes nothing new, which is an error here where
// something is missing.
func Register() error {
	if err := registerIn(utilfeature.DefaultMutableFeatureGate); err != nil {
		return err
	}
	clientfeatures.ReplaceFeatureGates(clientGates{utilfeature.DefaultFeatureGate})
	return nil
}

// registerIn adds to gate what it lacks.
func registerIn(gate featuregate.MutableVersionedFeatureGate) error {
	missing, err := allGates()
	if err != nil {
		return err
	}
	for known := range gate.GetAllVersioned() {
		delete(missing, known)
	}
	if len(missing) > 0 {
		if err := gate.AddVersioned(missing); err != nil {
			return fmt.Errorf("adding %d feature gates: %w", len(missing), err)
		}
	}
	known := gate.Dependencies()
	for feature, needs := range dependencies() {
		needs = slices.DeleteFunc(needs, func(need featuregate.Feature) bool { return slices.Contains(known[feature], need) })
		if len(needs) == 0 {
			continue
		}
		err := gate.AddDependencies(map[featuregate.Feature][]featuregate.Feature{feature: needs})
		// A gate that was there before may have stages that contradict the
		// dependency. It is for those who added it to say what it needs.
		if _, added := missing[feature]; added && err != nil {
			return fmt.Errorf("adding what feature gate %s depends on: %w", feature, err)
		}
	}
	return nil
}

// allGates collects what the process-wide gate has, which the API server
// library adds to at init, and the gates of the other libraries and the table.
func allGates() (map[featuregate.Feature]featuregate.VersionedSpecs, error) {
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{
		logsapi.AddFeatureGates,
		metricsfeatures.AddFeatureGates,
		zpagesfeatures.AddFeatureGates,
		cmfeatures.SetupCurrentKubernetesSpecificFeatureGates,
		func(g featuregate.MutableVersionedFeatureGate) error {
			return clientfeatures.AddVersionedFeaturesToExistingFeatureGates(clientRegistry{g})
		},
	} {
		if err := add(gate); err != nil {
			return nil, fmt.Errorf("collecting the feature gates of a library: %w", err)
		}
	}
	all := kubernetesGates()
	maps.Copy(all, ownGates())
	maps.Copy(all, gate.GetAllVersioned())
	maps.Copy(all, utilfeature.DefaultMutableFeatureGate.GetAllVersioned())
	return all, nil
}

// registerOnce is Register for Enabled, which is asked in hot paths.
var registerOnce = sync.OnceValue(func() error { return registerIn(utilfeature.DefaultMutableFeatureGate) })

// Enabled says whether a gate is on in this process. Where the gate cannot be
// registered any more, its default of release 1.37 counts.
func Enabled(feature featuregate.Feature) bool {
	if registerOnce() == nil {
		return utilfeature.DefaultFeatureGate.Enabled(feature)
	}
	return EnabledIn(utilfeature.DefaultMutableFeatureGate, feature)
}

// EnabledIn says whether a feature is on in the given gate. Where the gate does
// not know it, its default of release 1.37 counts. A feature that is not known
// here either is off.
func EnabledIn(gate featuregate.FeatureGate, feature featuregate.Feature) bool {
	if Knows(gate, feature) {
		return gate.Enabled(feature)
	}
	defaults := defaultGate()
	return Knows(defaults, feature) && defaults.Enabled(feature)
}

// defaultGate has all gates at their defaults. It knows none if the tables
// contradict themselves, which the tests rule out.
var defaultGate = sync.OnceValue(func() featuregate.FeatureGate {
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	if err := registerIn(gate); err != nil {
		return featuregate.NewVersionedFeatureGate(version.MustParse(release))
	}
	return gate
})

// Knows says whether a feature has been added to the given gate. To ask a gate
// for one that has not is a panic.
func Knows(gate featuregate.FeatureGate, feature featuregate.Feature) bool {
	mutable, ok := gate.(featuregate.MutableFeatureGate)
	if !ok {
		return false
	}
	_, ok = mutable.GetAll()[feature]
	return ok
}

// clientRegistry lets client-go add its gates to a gate of component-base.
type clientRegistry struct {
	gate featuregate.MutableVersionedFeatureGate
}

// AddVersioned implements clientfeatures.VersionedRegistry.
func (r clientRegistry) AddVersioned(in map[clientfeatures.Feature]clientfeatures.VersionedSpecs) error {
	out := map[featuregate.Feature]featuregate.VersionedSpecs{}
	for name, specs := range in {
		for _, from := range specs {
			to := featuregate.FeatureSpec{Default: from.Default, LockToDefault: from.LockToDefault, Version: from.Version}
			switch from.PreRelease {
			case clientfeatures.Alpha:
				to.PreRelease = featuregate.Alpha
			case clientfeatures.Beta:
				to.PreRelease = featuregate.Beta
			case clientfeatures.GA:
				to.PreRelease = featuregate.GA
			case clientfeatures.Deprecated:
				to.PreRelease = featuregate.Deprecated
			default:
				return fmt.Errorf("feature gate %s of client-go has unknown stage %q", name, from.PreRelease)
			}
			out[featuregate.Feature(name)] = append(out[featuregate.Feature(name)], to)
		}
	}
	return r.gate.AddVersioned(out)
}

// clientGates lets client-go ask a gate of component-base.
type clientGates struct {
	gate featuregate.FeatureGate
}

// Enabled implements clientfeatures.Gates.
func (g clientGates) Enabled(feature clientfeatures.Feature) bool {
	return g.gate.Enabled(featuregate.Feature(feature))
}
