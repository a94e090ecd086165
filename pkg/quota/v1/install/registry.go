// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install says which resources the quota controller counts, and which changes of them it
// has to look at.
package install

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"

	"github.com/kcm-dev/kcm/pkg/quota/v1/evaluator/core"
)

// DefaultIgnoredResources returns the resources that are never counted: events come in masses and go
// by themselves.
func DefaultIgnoredResources() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{
		{Group: "", Resource: "events"}:              {},
		{Group: "events.k8s.io", Resource: "events"}: {},
	}
}

// NewQuotaConfigurationForControllers returns the configuration for the quota controller, whose
// evaluators list from the caches that f knows. The factory, which may be nil, gives the informer of
// DeviceClasses.
func NewQuotaConfigurationForControllers(f quota.ListerForResourceFunc, i informers.SharedInformerFactory) quota.Configuration {
	return generic.NewConfiguration(core.NewEvaluators(f, i), DefaultIgnoredResources())
}
