// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
)

// withoutSpecs are the controllers that this build has, or is to have soon, and that may be without specs for now. One
// that has specs is to be taken out, so that it never loses them unnoticed.
var withoutSpecs = []string{
	"daemonset-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"job-controller",
	"statefulset-controller",
}

// Needs no cluster: --label-filter finds what it names, and each controller that is built has its specs.
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
		if d.Available() && specs[d.Name] == 0 && !slices.Contains(withoutSpecs, d.Name) {
			t.Errorf("no spec has the label %q: doc.go says how to add one", d.Name)
		}
	}
}
