// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func (c *Controller) serviceHandler() cache.ResourceEventHandler {
	return worker.Handler(name, worker.HandlerFuncs[*v1.Service]{
		Add: func(service *v1.Service, initial bool) {
			c.selectors.Set(service)
			if initial {
				c.services.AddInitial(cache.MetaObjectToName(service))
				return
			}
			c.services.Add(cache.MetaObjectToName(service))
		},
		Update: func(_, cur *v1.Service) {
			c.selectors.Set(cur)
			c.services.Add(cache.MetaObjectToName(cur))
		},
		Delete: func(service *v1.Service) {
			c.selectors.Delete(service)
			c.services.Add(cache.MetaObjectToName(service))
		},
	})
}

func (c *Controller) podHandler() cache.ResourceEventHandler {
	return worker.Handler(name, worker.HandlerFuncs[*v1.Pod]{
		Add: func(pod *v1.Pod, initial bool) {
			// The first syncs of all Services see the Pods of the first list.
			if !initial {
				c.pods.Add(selectorindex.FromPod(pod))
			}
		},
		Update: func(old, cur *v1.Pod) {
			if change, ok := selectorindex.FromUpdate(old, cur); ok {
				c.pods.Add(change)
			}
		},
		Delete: func(pod *v1.Pod) { c.pods.Add(selectorindex.FromPod(pod)) },
	})
}

// syncPods enqueues the Services that a change of Pods concerns.
func (c *Controller) syncPods(_ context.Context, change selectorindex.Change) error {
	for _, service := range c.selectors.Affected(change) {
		c.batches.Add(service)
	}
	return nil
}
