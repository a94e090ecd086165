// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// ServiceHandler returns an event handler that keeps the index and enqueues each Service that comes,
// changes or goes.
func ServiceHandler(controller string, index *Services, w *worker.Worker[cache.ObjectName]) cache.ResourceEventHandler {
	return worker.Handler(controller, worker.HandlerFuncs[*v1.Service]{
		Add: func(service *v1.Service, initial bool) {
			index.Set(service)
			w.AddEvent(cache.MetaObjectToName(service), initial)
		},
		Update: func(_, cur *v1.Service) {
			index.Set(cur)
			w.Add(cache.MetaObjectToName(cur))
		},
		Delete: func(service *v1.Service) {
			index.Delete(service)
			w.Add(cache.MetaObjectToName(service))
		},
	})
}

// PodHandler returns an event handler that enqueues what the events of Pods mean to Services. The
// first list means nothing: the first syncs of all Services see its Pods.
func PodHandler(controller string, w *worker.Worker[Change]) cache.ResourceEventHandler {
	return worker.Handler(controller, worker.HandlerFuncs[*v1.Pod]{
		Add: func(pod *v1.Pod, initial bool) {
			if !initial {
				w.Add(FromPod(pod))
			}
		},
		Update: func(old, cur *v1.Pod) {
			if change, ok := FromUpdate(old, cur); ok {
				w.Add(change)
			}
		},
		Delete: func(pod *v1.Pod) { w.Add(FromPod(pod)) },
	})
}
