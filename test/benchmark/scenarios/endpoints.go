// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
)

// endpoints: many Services share a namespace, and all their Deployments roll out at once. The lag is the time from a
// pod's readiness, as the harness sees it, to a ready endpoint of it in a slice.
func endpoints() benchmark.Scenario {
	const replicas = 5
	watch := &endpointWatch{}
	app := func(i int) string { return fmt.Sprintf("app-%d", i) }
	return benchmark.Scenario{
		Name:  "endpoints",
		Title: "1,000 Services and 5,000 pods in one namespace, a roll-out of all; lag from readiness to the EndpointSlice",
		Controllers: []string{names.DeploymentController, names.ReplicaSetController,
			names.EndpointsController, names.EndpointSliceController, names.EndpointSliceMirroringController},
		Nodes:   20,
		Timeout: time.Hour,
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			*watch = endpointWatch{env: e, ready: map[types.UID]time.Time{}, shown: map[types.UID]time.Time{}}
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			if err := watch.start(ctx); err != nil {
				return err
			}
			return parallel(ctx, e.N(1000), func(ctx context.Context, i int) error {
				service := &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: app(i)},
					Spec: corev1.ServiceSpec{
						Selector: map[string]string{"app": app(i)},
						Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
					},
				}
				if _, err := e.Client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
					return err
				}
				_, err := e.Client.AppsV1().Deployments(namespace).Create(ctx, newDeployment(app(i), replicas), metav1.CreateOptions{})
				return err
			})
		},
		Warm: func(ctx context.Context, e *benchmark.Env) error {
			return e.Wait(ctx, "the first roll-out", watch.settled(1))
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.Measure(ctx, "", func(ctx context.Context) error {
				patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:2"}]}}}}`)
				watch.observe()
				err := parallel(ctx, e.N(1000), func(ctx context.Context, i int) error {
					_, err := e.Client.AppsV1().Deployments(namespace).Patch(ctx, app(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{})
					return err
				})
				if err != nil {
					return err
				}
				return e.Wait(ctx, "all roll-outs, and their slices", watch.settled(2))
			})
		},
	}
}

// endpointWatch sees when pods are ready, and when slices show it.
type endpointWatch struct {
	env *benchmark.Env

	mu sync.Mutex // guards the following fields
	// ready and shown have the times of pods that are ready, and of those that a slice has as ready.
	ready, shown map[types.UID]time.Time
	observing    bool
}

func (w *endpointWatch) start(ctx context.Context) error {
	w.env.Informers.Apps().V1().Deployments().Informer()
	pods, err := w.env.Informers.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.pod(obj) },
		UpdateFunc: func(_, obj any) { w.pod(obj) },
		DeleteFunc: w.podGone,
	})
	if err != nil {
		return err
	}
	slices, err := w.env.Informers.Discovery().V1().EndpointSlices().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.slice(obj) },
		UpdateFunc: func(_, obj any) { w.slice(obj) },
	})
	if err != nil {
		return err
	}
	if err := w.env.Sync(ctx); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, slices.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// observe starts to tell the report of lags.
func (w *endpointWatch) observe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observing = true
}

func (w *endpointWatch) pod(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp != nil {
		return
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			w.note(pod.UID, w.ready)
		}
	}
}

func (w *endpointWatch) podGone(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ready, pod.UID)
		delete(w.shown, pod.UID)
	}
}

func (w *endpointWatch) slice(obj any) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	for _, endpoint := range slice.Endpoints {
		if endpoint.TargetRef != nil && ptr.Deref(endpoint.Conditions.Ready, false) {
			w.note(endpoint.TargetRef.UID, w.shown)
		}
	}
}

// note notes the first time that a pod is seen in one of the maps, and tells the lag when it is in both. The two
// informers are not in step: where the slice is seen first, there was none.
func (w *endpointWatch) note(uid types.UID, in map[types.UID]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := in[uid]; known {
		return
	}
	in[uid] = time.Now()
	ready, isReady := w.ready[uid]
	shown, isShown := w.shown[uid]
	if w.observing && isReady && isShown {
		w.env.Observe(max(0, shown.Sub(ready)))
	}
}

// settled tells whether all Deployments have rolled out this generation, and slices show all that is ready.
func (w *endpointWatch) settled(generation int64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		deployments, err := w.env.Informers.Apps().V1().Deployments().Lister().List(labels.Everything())
		if err != nil || len(deployments) < w.env.N(1000) {
			return false, err
		}
		for _, d := range deployments {
			done, err := deploymentSettled(w.env, d.Name)(ctx)
			if err != nil || !done || d.Generation < generation {
				return false, err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for uid := range w.ready {
			if _, ok := w.shown[uid]; !ok {
				return false, nil
			}
		}
		return true, nil
	}
}
