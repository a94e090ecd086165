// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"context"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
)

// replicationControllers is the replicaset.Kind of ReplicationControllers.
type replicationControllers struct {
	informer cache.SharedIndexInformer
	lister   corelisters.ReplicationControllerLister
	client   clientset.Interface
}

var _ replicaset.Kind = &replicationControllers{}

func newReplicationControllers(informer coreinformers.ReplicationControllerInformer, client clientset.Interface) *replicationControllers {
	return &replicationControllers{informer: informer.Informer(), lister: informer.Lister(), client: client}
}

func (k *replicationControllers) GroupVersionKind() schema.GroupVersionKind {
	return v1.SchemeGroupVersion.WithKind("ReplicationController")
}

func (k *replicationControllers) GroupResource() schema.GroupResource {
	return v1.Resource("replicationcontrollers")
}

func (k *replicationControllers) Informer() cache.SharedIndexInformer {
	return k.informer
}

func (k *replicationControllers) Get(namespace, name string) (*apps.ReplicaSet, error) {
	rc, err := k.lister.ReplicationControllers(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return asReplicaSet(rc), nil
}

func (k *replicationControllers) List(namespace string) ([]*apps.ReplicaSet, error) {
	return k.listIf(namespace, func(*v1.ReplicationController) bool { return true })
}

// Siblings looks through the namespace rather than an index: ReplicationControllers with
// an owner are rare, and the caller goes through all Pods of the namespace anyway.
func (k *replicationControllers) Siblings(set *apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return []*apps.ReplicaSet{set}, nil
	}
	return k.listIf(set.Namespace, func(rc *v1.ReplicationController) bool {
		other := metav1.GetControllerOfNoCopy(rc)
		return other != nil && other.Kind == owner.Kind && other.Name == owner.Name && other.UID == owner.UID
	})
}

func (k *replicationControllers) listIf(namespace string, wanted func(*v1.ReplicationController) bool) ([]*apps.ReplicaSet, error) {
	all, err := k.lister.ReplicationControllers(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var found []*apps.ReplicaSet
	for _, rc := range all {
		if wanted(rc) {
			found = append(found, asReplicaSet(rc))
		}
	}
	return found, nil
}

func (k *replicationControllers) GetLive(ctx context.Context, namespace, name string) (*apps.ReplicaSet, error) {
	return converted(k.client.CoreV1().ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{}))
}

func (k *replicationControllers) UpdateStatus(ctx context.Context, set *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	return converted(k.client.CoreV1().ReplicationControllers(set.Namespace).UpdateStatus(ctx, asReplicationController(set), metav1.UpdateOptions{}))
}

func (k *replicationControllers) Object(set *apps.ReplicaSet) runtime.Object {
	return asReplicationController(set)
}

func converted(rc *v1.ReplicationController, err error) (*apps.ReplicaSet, error) {
	if err != nil {
		return nil, err
	}
	return asReplicaSet(rc), nil
}
