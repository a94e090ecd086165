// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/component-base/featuregate"
)

// FeatureEnabled reads a feature gate that the process may not have registered: asking
// the gate itself for an unknown feature panics. An unknown feature has its default.
func FeatureEnabled(gates featuregate.FeatureGate, feature featuregate.Feature, defaultValue bool) bool {
	if _, known := gates.DeepCopy().GetAll()[feature]; !known {
		return defaultValue
	}
	return gates.Enabled(feature)
}
