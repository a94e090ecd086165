// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// PodNodeNameKeyIndex is the index of Pods by the node they are assigned to.
	PodNodeNameKeyIndex = "spec.nodeName"
	// PodControllerIndex is the index of Pods by their controller; orphans stand under
	// the name of their namespace.
	PodControllerIndex = "podController"
	// ReplicaSetControllerIndex is the same of ReplicaSets.
	ReplicaSetControllerIndex = "replicaSetController"
	// JobControllerIndex is the same of Jobs.
	JobControllerIndex = "jobController"
	// ControllerRevisionControllerIndex is the same of ControllerRevisions.
	ControllerRevisionControllerIndex = "controllerRevisionController"
)

// AddPodNodeNameIndexer adds PodNodeNameKeyIndex unless it is there. Pods without a
// node are not indexed.
func AddPodNodeNameIndexer(podInformer cache.SharedIndexInformer) error {
	return addIndexer(podInformer, PodNodeNameKeyIndex, func(obj any) ([]string, error) {
		pod, ok := obj.(*v1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	})
}

// AddPodControllerIndexer adds PodControllerIndex unless it is there.
func AddPodControllerIndexer(podInformer cache.SharedIndexInformer) error {
	return addIndexer(podInformer, PodControllerIndex, indexByController[*v1.Pod])
}

// AddReplicaSetControllerIndexer adds ReplicaSetControllerIndex unless it is there.
func AddReplicaSetControllerIndexer(replicaSetInformer cache.SharedIndexInformer) error {
	return addIndexer(replicaSetInformer, ReplicaSetControllerIndex, indexByController[*apps.ReplicaSet])
}

// AddControllerRevisionControllerIndexer adds ControllerRevisionControllerIndex unless
// it is there.
func AddControllerRevisionControllerIndexer(revisionInformer cache.SharedIndexInformer) error {
	return addIndexer(revisionInformer, ControllerRevisionControllerIndex, indexByController[*apps.ControllerRevision])
}

// AddJobControllerIndexer adds JobControllerIndex unless it is there.
func AddJobControllerIndexer(jobInformer cache.SharedIndexInformer) error {
	return addIndexer(jobInformer, JobControllerIndex, indexByController[*batch.Job])
}

func indexByController[T metav1.Object](obj any) ([]string, error) {
	owned, ok := obj.(T)
	if !ok {
		return nil, nil
	}
	return []string{PodControllerIndexKey(owned.GetNamespace(), metav1.GetControllerOfNoCopy(owned))}, nil
}

// addIndexer adds an index by name. Several controllers share an informer and ask for
// the same index; the first one makes it.
func addIndexer(informer cache.SharedIndexInformer, name string, index cache.IndexFunc) error {
	if _, exists := informer.GetIndexer().GetIndexers()[name]; exists {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{name: index})
}

// PodControllerIndexKey returns the key under which PodControllerIndex holds the Pods of
// a controller (and ReplicaSetControllerIndex its ReplicaSets), and those without one when owner is nil. The controller's identity is
// there in full: a UID alone would let a reference with a wrong kind or name pass.
func PodControllerIndexKey(namespace string, owner *metav1.OwnerReference) string {
	if owner == nil {
		return namespace
	}
	return strings.Join([]string{namespace, owner.Kind, owner.Name, string(owner.UID)}, "/")
}

// FilterPodsByOwner returns the Pods that the object with this metadata and kind
// controls, and after them, if asked, all orphans of its namespace. The indexer must
// have PodControllerIndex. The Pods are those of the cache, and are read-only.
func FilterPodsByOwner(podIndexer cache.Indexer, owner *metav1.ObjectMeta, ownerKind string, includeOrphanedPods bool) ([]*v1.Pod, error) {
	switch {
	case owner.Namespace == "":
		return nil, errors.New("no owner namespace provided")
	case owner.Name == "":
		return nil, errors.New("no owner name provided")
	case owner.UID == "":
		return nil, errors.New("no owner uid provided")
	case ownerKind == "":
		return nil, errors.New("no owner kind provided")
	}
	keys := []string{PodControllerIndexKey(owner.Namespace, &metav1.OwnerReference{Name: owner.Name, Kind: ownerKind, UID: owner.UID})}
	if includeOrphanedPods {
		keys = append(keys, PodControllerIndexKey(owner.Namespace, nil))
	}
	var pods []*v1.Pod
	for _, key := range keys {
		objs, err := podIndexer.ByIndex(PodControllerIndex, key)
		if err != nil {
			return nil, fmt.Errorf("looking up pods in index %s: %w", PodControllerIndex, err)
		}
		for _, obj := range objs {
			pod, ok := obj.(*v1.Pod)
			if !ok {
				return nil, fmt.Errorf("unexpected object type %T in pod indexer", obj)
			}
			pods = append(pods, pod)
		}
	}
	return pods, nil
}
