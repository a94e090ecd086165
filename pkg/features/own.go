// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import "k8s.io/component-base/featuregate"

// The gates that upstream does not have. Each lets a controller do what upstream's does
// not, and is off unless set: a manager that is not told otherwise behaves as upstream's.
const (
	// KCMStatefulSetLeaveBadRevision: an ordered StatefulSet in a rolling update replaces by itself a Pod of an old
	// revision that has not become ready for a minute or cannot start, so that a bad template can be mended by the next
	// one without deleting Pods by hand (kubernetes/kubernetes#67250).
	KCMStatefulSetLeaveBadRevision featuregate.Feature = "KCMStatefulSetLeaveBadRevision"
)

func ownGates() map[featuregate.Feature]featuregate.VersionedSpecs {
	return map[featuregate.Feature]featuregate.VersionedSpecs{
		KCMStatefulSetLeaveBadRevision: {alpha("1.37")},
	}
}
