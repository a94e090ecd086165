// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// An informer of ours and one of client-go's measure side by side, under the same names.
func TestLegacy(t *testing.T) {
	name, err := clientcache.NewInformerName("test")
	if err != nil {
		t.Fatal(err)
	}
	defer name.Release()
	pods, secrets := corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("secrets")
	informer := cache.NewSharedIndexInformerWithOptions(onePod(), &corev1.Pod{}, clientcache.SharedIndexInformerOptions{
		Identifier:              name.WithResource(pods),
		InformerMetricsProvider: Legacy(),
	})
	// One of client-go's would panic if it could not register.
	clientcache.NewSharedIndexInformerWithOptions(onePod(), &corev1.Secret{}, clientcache.SharedIndexInformerOptions{Identifier: name.WithResource(secrets)})

	registration, err := informer.AddEventHandler(clientcache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(ctx)
	}()
	<-registration.HasSyncedChecker().Done()
	cancel()
	<-stopped

	for _, tc := range []struct{ metric, want string }{
		{"informer_queued_items", `
# HELP informer_queued_items [ALPHA] Number of items currently queued in the FIFO.
# TYPE informer_queued_items gauge
informer_queued_items{group="",name="test",resource="pods",version="v1"} 0
`},
		{"informer_store_resource_version", `
# HELP informer_store_resource_version [ALPHA] The 15 least significant digits of the resource version of the store.
# TYPE informer_store_resource_version gauge
informer_store_resource_version{group="",name="test",resource="pods",version="v1"} 4.56789012345678e+14
informer_store_resource_version{group="",name="test",resource="secrets",version="v1"} 0
`},
	} {
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(tc.want), tc.metric); err != nil {
			t.Error(err)
		}
	}
	if n, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "informer_processing_latency_seconds", map[string]string{"resource": "pods"}); err != nil || n.GetAggregatedSampleCount() != 1 {
		t.Errorf("%d notifications were measured, error %v, want 1", n.GetAggregatedSampleCount(), err)
	}
}

func onePod() *clientcache.ListWatch {
	return &clientcache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "123456789012345678"},
				Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
			}, nil
		},
		WatchFuncWithContext: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFake()
			if opts.SendInitialEvents != nil {
				w.Stop()
			}
			return w, nil
		},
	}
}
