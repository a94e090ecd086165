// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kcm-dev/kcm/pkg/quota/v1/evaluator/core"
)

// DefaultUpdateFilter returns a function that says whether the quota controller has to count anew
// because of an update: it changes what the object uses, or in which scopes.
func DefaultUpdateFilter() func(resource schema.GroupVersionResource, oldObj, newObj any) bool {
	changed := core.UsageChanged()
	return func(resource schema.GroupVersionResource, oldObj, newObj any) bool {
		old, ok := oldObj.(runtime.Object)
		cur, ok2 := newObj.(runtime.Object)
		return ok && ok2 && changed(resource.GroupResource(), old, cur)
	}
}
