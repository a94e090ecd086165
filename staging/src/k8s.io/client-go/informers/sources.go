// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// clientSource returns a source of a resource that reads through a clientset, a real or a fake one.
func clientSource(client kubernetes.Interface, resource schema.GroupVersionResource, namespace string, tweak internalinterfaces.TweakListOptionsFunc) cache.Source {
	gvk := kinds()[resource]
	var lw *clientcache.ListWatch
	if fake, ok := client.(fakeClient); ok {
		lw = fakeListWatch(fake, resource, gvk, namespace)
	} else {
		lw = restListWatch(client, resource, gvk, namespace)
	}
	return Tweaked(cache.NewListWatchSource(clientcache.ToListWatcherWithWatchListSemantics(lw, client)), tweak)
}

// restListWatch asks through a REST client of the clientset. Any of them will do: the path says the
// group, and all decode all types.
func restListWatch(client kubernetes.Interface, resource schema.GroupVersionResource, gvk schema.GroupVersionKind, namespace string) *clientcache.ListWatch {
	request := func(opts metav1.ListOptions) *rest.Request {
		root := []string{"apis", resource.Group, resource.Version}
		if resource.Group == "" {
			root = []string{"api", resource.Version}
		}
		return client.CoreV1().RESTClient().Get().AbsPath(root...).
			NamespaceIfScoped(namespace, namespace != "").
			Resource(resource.Resource).
			SpecificallyVersionedParams(&opts, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"})
	}
	return &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list, err := scheme.Scheme.New(listKind(gvk))
			if err != nil {
				return nil, err
			}
			return list, request(opts).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			return request(opts).Watch(ctx)
		},
	}
}

// fakeClient is a clientset from client-go's fake package.
type fakeClient interface {
	Invokes(action clienttesting.Action, defaultReturnObj runtime.Object) (runtime.Object, error)
	InvokesWatch(action clienttesting.Action) (watch.Interface, error)
}

func fakeListWatch(client fakeClient, resource schema.GroupVersionResource, gvk schema.GroupVersionKind, namespace string) *clientcache.ListWatch {
	return &clientcache.ListWatch{
		ListWithContextFunc: func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			empty, err := scheme.Scheme.New(listKind(gvk))
			if err != nil {
				return nil, err
			}
			list, err := client.Invokes(clienttesting.NewListActionWithOptions(resource, gvk, namespace, opts), empty)
			if err != nil {
				return nil, err
			}
			return list, keepSelected(list, opts.LabelSelector)
		},
		WatchFuncWithContext: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			return client.InvokesWatch(clienttesting.NewWatchActionWithOptions(resource, namespace, opts))
		},
	}
}

// keepSelected drops from a list what the selector does not match, which a fake leaves to its caller.
func keepSelected(list runtime.Object, labelSelector string) error {
	selector, err := labels.Parse(labelSelector)
	if err != nil {
		return fmt.Errorf("label selector %q: %w", labelSelector, err)
	}
	if selector.Empty() {
		return nil
	}
	objs, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var selected []runtime.Object
	for _, obj := range objs {
		if m, err := meta.Accessor(obj); err == nil && selector.Matches(labels.Set(m.GetLabels())) {
			selected = append(selected, obj)
		}
	}
	return meta.SetList(list, selected)
}

// Tweaked returns the source with the options of each list and watch changed, unless tweak is nil.
func Tweaked(source cache.Source, tweak func(*metav1.ListOptions)) cache.Source {
	if tweak == nil {
		return source
	}
	return &tweakedSource{source, tweak}
}

type tweakedSource struct {
	cache.Source
	tweak func(*metav1.ListOptions)
}

func (s *tweakedSource) List(ctx context.Context, opts metav1.ListOptions) (cache.Page, error) {
	s.tweak(&opts)
	return s.Source.List(ctx, opts)
}

func (s *tweakedSource) Watch(ctx context.Context, opts metav1.ListOptions) (cache.EventReader, error) {
	s.tweak(&opts)
	return s.Source.Watch(ctx, opts)
}
