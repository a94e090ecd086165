// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	clientset "k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// Kind gives the controller access to the objects it works for, each as a ReplicaSet.
// What it returns from the cache is read-only.
type Kind interface {
	// GroupVersionKind is what owner references to an object of the kind say.
	GroupVersionKind() schema.GroupVersionKind
	// GroupResource names the kind in metrics and errors.
	GroupResource() schema.GroupResource
	// Informer is that of the kind's objects.
	Informer() cache.SharedIndexInformer
	// Get reads from the cache; the error is NotFound when it is not there.
	Get(namespace, name string) (*apps.ReplicaSet, error)
	// List reads all of a namespace from the cache.
	List(namespace string) ([]*apps.ReplicaSet, error)
	// Siblings returns, from the cache, the objects with the same controller as set,
	// set itself included, and those in deletion too.
	Siblings(set *apps.ReplicaSet) ([]*apps.ReplicaSet, error)
	// GetLive reads from the API server.
	GetLive(ctx context.Context, namespace, name string) (*apps.ReplicaSet, error)
	// UpdateStatus writes set.Status under the precondition of set's resourceVersion, and
	// returns what the API server made of it.
	UpdateStatus(ctx context.Context, set *apps.ReplicaSet) (*apps.ReplicaSet, error)
	// Object is the object itself, on which events are recorded.
	Object(set *apps.ReplicaSet) runtime.Object
}

// replicaSets is the Kind of ReplicaSets.
type replicaSets struct {
	informer cache.SharedIndexInformer
	lister   appslisters.ReplicaSetLister
	client   clientset.Interface
}

var _ Kind = &replicaSets{}

func newReplicaSets(informer appsinformers.ReplicaSetInformer, client clientset.Interface) (*replicaSets, error) {
	k := &replicaSets{informer: informer.Informer(), lister: informer.Lister(), client: client}
	return k, controller.AddReplicaSetControllerIndexer(k.informer)
}

func (k *replicaSets) GroupVersionKind() schema.GroupVersionKind {
	return apps.SchemeGroupVersion.WithKind("ReplicaSet")
}

func (k *replicaSets) GroupResource() schema.GroupResource {
	return apps.Resource("replicasets")
}

func (k *replicaSets) Informer() cache.SharedIndexInformer {
	return k.informer
}

func (k *replicaSets) Get(namespace, name string) (*apps.ReplicaSet, error) {
	return k.lister.ReplicaSets(namespace).Get(name)
}

func (k *replicaSets) List(namespace string) ([]*apps.ReplicaSet, error) {
	return k.lister.ReplicaSets(namespace).List(labels.Everything())
}

func (k *replicaSets) Siblings(set *apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return []*apps.ReplicaSet{set}, nil
	}
	objs, err := k.informer.GetIndexer().ByIndex(controller.ReplicaSetControllerIndex, controller.PodControllerIndexKey(set.Namespace, owner))
	if err != nil {
		return nil, fmt.Errorf("looking up replica sets in index %s: %w", controller.ReplicaSetControllerIndex, err)
	}
	siblings := make([]*apps.ReplicaSet, 0, len(objs))
	for _, obj := range objs {
		if sibling, ok := obj.(*apps.ReplicaSet); ok {
			siblings = append(siblings, sibling)
		}
	}
	return siblings, nil
}

func (k *replicaSets) GetLive(ctx context.Context, namespace, name string) (*apps.ReplicaSet, error) {
	return k.client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (k *replicaSets) UpdateStatus(ctx context.Context, set *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	return k.client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
}

func (k *replicaSets) Object(set *apps.ReplicaSet) runtime.Object {
	return set
}

// selects says whether the set's selector matches the labels. A selector that does not
// parse selects nothing, and so does an empty one: an object may be made by hand.
func selects(set *apps.ReplicaSet, podLabels map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(podLabels))
}
