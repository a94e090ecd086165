// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
)

// Needs no cluster: --label-filter finds what it names, and each controller that is built has a spec.
func TestLabels(t *testing.T) {
	specs := map[string]int{}
	for _, spec := range PreviewSpecs("labels").SpecReports {
		for _, label := range spec.Labels() {
			specs[label]++
		}
	}
	known := app.KnownControllers()
	for label := range specs {
		if label != labelSlow && label != labelLeaderElection && !slices.Contains(known, label) {
			t.Errorf("the label %q is no controller's name, nor one of suite_test.go", label)
		}
	}
	for _, d := range app.NewControllerDescriptors() {
		if d.Available() && specs[d.Name] == 0 {
			t.Errorf("no spec has the label %q: doc.go says how to add one", d.Name)
		}
	}
}
